// Reads one line of text from a picture with a compiled PP-OCR recogniser: how a program uses the
// runtime.
//
//   ocr MODEL.om KEYS.txt PICTURE
//
// The model's input is f32[1,3,48,width] in BGR, scaled to [-1, 1]; its output f32[1,steps,classes]
// holds the probabilities of CTC labels: 0 is blank, k is line k of KEYS, the last class is a
// space.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "rt/runtime.h"
#include "tools/picture.h"

namespace {

double MsSince(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count();
}

int Fail(const ge::Status& s) {
  std::fprintf(stderr, "ocr: %s\n", s.message().c_str());
  return 1;
}

// CTC by the best path: repeated labels collapse, blanks vanish.
std::string Decode(const float* p, int64_t steps, int64_t classes,
                   const std::vector<std::string>& keys) {
  std::string text;
  int64_t last = 0;
  for (int64_t t = 0; t < steps; ++t) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (p[t * classes + c] > p[t * classes + best]) best = c;
    if (best != 0 && best != last)
      text += best - 1 < static_cast<int64_t>(keys.size()) ? keys[best - 1] : " ";
    last = best;
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: ocr MODEL.om KEYS.txt PICTURE\n");
    return 2;
  }
  std::vector<std::string> keys;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) keys.push_back(line);
  if (keys.empty()) return Fail(ge::Invalid(std::string(argv[2]) + ": no characters"));

  const auto t0 = std::chrono::steady_clock::now();
  auto model = ge::rt::Model::Load(argv[1]);
  if (!model.ok()) return Fail(model.status());
  auto run = ge::rt::Run::Create(*model);
  if (!run.ok()) return Fail(run.status());
  const double load_ms = MsSince(t0);

  ge::PictureFormat format{.height = 48, .bgr = true, .mean = 0.5f, .std = 0.5f};
  auto pixels = ge::ReadPicture(argv[3], format);
  if (!pixels.ok()) return Fail(pixels.status());
  ge::rt::Tensor input{1,
                       {1, 3, format.height, format.width},
                       pixels->data(),
                       static_cast<int64_t>(pixels->size() * 4)};
  ge::rt::Tensor output;
  double first_ms = 0, best_ms = 1e30;
  for (int i = 0; i < 10; ++i) {
    output = {};
    const auto t = std::chrono::steady_clock::now();
    if (ge::Status s = (*run)->Execute({&input, 1}, {&output, 1}); !s.ok()) return Fail(s);
    const double ms = MsSince(t);
    if (i == 0) first_ms = ms;
    best_ms = std::min(best_ms, ms);
  }
  if (output.dims.size() != 3)
    return Fail(ge::Invalid("the model's output is not [1, steps, classes]"));
  std::printf(
      "text: %s\n",
      Decode(static_cast<const float*>(output.data), output.dims[1], output.dims[2], keys).c_str());
  std::printf("load %.2f ms, first run %.2f ms, run %.2f ms (%d threads)\n", load_ms, first_ms,
              best_ms, (*model)->threads());
  return 0;
}
