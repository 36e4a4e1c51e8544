// See trace.h.
#include "rt/trace.h"

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace ge::rt {
namespace {

// As the inside of a JSON string. Bytes above 127 are taken to be UTF-8.
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

// "a/t.json", 2 -> "a/t.2.json"
std::string Numbered(const std::string& path, int number) {
  if (number <= 1) return path;
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool has_end = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const size_t at = has_end ? dot : path.size();
  return path.substr(0, at) + "." + std::to_string(number) + path.substr(at);
}

const char* Category(om::TaskKind kind) {
  switch (kind) {
    case om::TaskKind::kLaunch: return "kernel";
    case om::TaskKind::kHost: return "host";
    case om::TaskKind::kBind: return "bind";
    case om::TaskKind::kSpill: return "spill";
    case om::TaskKind::kFetch: return "fetch";
    default: return "jump";
  }
}

}  // namespace

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::unique_ptr<Trace> Trace::FromEnvironment(const om::Plan& plan, int workers) {
  const char* path = std::getenv("GE_TRACE");
  if (path == nullptr || *path == 0) return nullptr;
  static std::atomic<int> count{0};
  return std::make_unique<Trace>(Numbered(path, ++count), plan, workers);
}

Trace::Trace(std::string path, const om::Plan& plan, int workers)
    : path_(std::move(path)), plan_(plan), start_(NowNs()), events_(static_cast<size_t>(workers)) {
  for (std::vector<Event>& events : events_) events.reserve(4096);
}

Trace::~Trace() {
  if (!Write()) std::fprintf(stderr, "ge: %s: the trace cannot be written\n", path_.c_str());
}

bool Trace::Write() const {
  std::FILE* file = std::fopen(path_.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
               "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":"
               "\"%s\"}}",
               Escaped(plan_.model_name).c_str());
  for (size_t w = 0; w < events_.size(); ++w) {
    std::fprintf(file,
                 ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"args\":{"
                 "\"name\":\"worker %zu\"}}",
                 w, w);
  }
  for (size_t w = 0; w < events_.size(); ++w) {
    for (const Event& e : events_[w]) {
      const om::Task& task = plan_.tasks[static_cast<size_t>(e.task)];
      const std::string& kernel =
          task.kernel >= 0 ? plan_.kernels[static_cast<size_t>(task.kernel)].name : task.host;
      std::fprintf(file,
                   ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%zu,"
                   "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"task\":%d,\"chunks\":%" PRId64
                   ",\"runs\":\"%s\",\"estimated_us\":%.3f}}",
                   Escaped(task.name).c_str(), Category(task.kind), w,
                   static_cast<double>(e.begin_ns - start_) / 1e3,
                   static_cast<double>(e.end_ns - e.begin_ns) / 1e3, e.task, e.chunks,
                   Escaped(kernel).c_str(), static_cast<double>(task.cost) / 1e3);
    }
  }
  std::fprintf(file, "\n]}\n");
  const bool written = std::ferror(file) == 0;
  return std::fclose(file) == 0 && written;
}

}  // namespace ge::rt
