// How long each operator of a model takes: a subscription, whose records a thread reads from a
// pipe.
//   operators MODEL.om INPUT.bin RUNS
#include <unistd.h>

#include <map>
#include <thread>

#include "acl/acl_prof.h"
#include "common.h"

namespace {

struct Times {
  std::map<std::string, std::pair<int, double>> of;  // count, microseconds
  uint64_t last_end = 0;
  bool in_order = true;
};

std::string TextAt(const std::vector<char>& data, uint32_t i,
                   decltype(&aclprofGetOpNameLen) length_of, decltype(&aclprofGetOpName) get) {
  size_t length = 0;
  CHECK_ACL(length_of(data.data(), data.size(), i, &length));
  std::string text(length, 0);
  CHECK_ACL(get(data.data(), data.size(), i, text.data(), length));
  text.resize(length - 1);
  return text;
}

void Read(int fd, uint32_t model, Times* times) {
  size_t size = 0;
  CHECK_ACL(aclprofGetOpDescSize(&size));
  std::vector<char> data(size * 64);
  size_t held = 0;
  for (ssize_t n = 0; (n = read(fd, data.data() + held, data.size() - held)) > 0;) {
    held += static_cast<size_t>(n);
    const std::vector<char> whole(data.begin(),
                                  data.begin() + static_cast<ptrdiff_t>(held / size * size));
    std::memmove(data.data(), data.data() + whole.size(), held - whole.size());
    held -= whole.size();
    uint32_t count = 0;
    if (!whole.empty()) CHECK_ACL(aclprofGetOpNum(whole.data(), whole.size(), &count));
    for (uint32_t i = 0; i < count; ++i) {
      if (aclprofGetModelId(whole.data(), whole.size(), i) != model) continue;
      const std::string name = TextAt(whole, i, aclprofGetOpTypeLen, aclprofGetOpType) + " " +
                               TextAt(whole, i, aclprofGetOpNameLen, aclprofGetOpName);
      const uint64_t start = aclprofGetOpStart(whole.data(), whole.size(), i);
      times->in_order = times->in_order && start >= times->last_end;
      times->last_end = aclprofGetOpEnd(whole.data(), whole.size(), i);
      auto& [runs, total] = times->of[name];
      ++runs;
      total += 1e-3 * static_cast<double>(aclprofGetOpDuration(whole.data(), whole.size(), i));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  StartDevice();
  uint32_t model = 0;
  CHECK_ACL(aclmdlLoadFromFile(argv[1], &model));
  int ends[2];
  if (pipe(ends) != 0) return 1;
  aclprofSubscribeConfig* config = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, &ends[1]);
  CHECK_ACL(aclprofModelSubscribe(model, config));
  Times times;
  std::thread reader(Read, ends[0], model, &times);
  aclmdlDesc* desc = aclmdlCreateDesc();
  CHECK_ACL(aclmdlGetDesc(desc, model));
  const int runs = std::atoi(argv[3]);
  {
    const Buffers buffers(desc);
    buffers.SetInput(0, ReadFile(argv[2]));
    for (int i = 0; i < runs; ++i) CHECK_ACL(aclmdlExecute(model, buffers.input, buffers.output));
  }
  CHECK_ACL(aclprofModelUnSubscribe(model));
  CHECK_ACL(aclprofDestroySubscribeConfig(config));
  close(ends[1]);
  reader.join();
  bool complete = !times.of.empty() && times.in_order;
  for (const auto& [name, time] : times.of) {
    std::printf("%9.2f us  %s\n", time.second / time.first, name.c_str());
    complete = complete && time.first % runs == 0;
  }
  CHECK_ACL(aclmdlDestroyDesc(desc));
  CHECK_ACL(aclmdlUnload(model));
  close(ends[0]);
  if (!complete) {
    std::fprintf(stderr, "records are missing or out of order\n");
    return 1;
  }
  EndDevice();
  return 0;
}
