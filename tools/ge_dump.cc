// ge dump: files that AscendCL's dumps wrote (docs/acl.md), as .npy files beside them or elsewhere.
//
// A file is the length of a header (u64), the header (protobuf, DumpData), then the tensors' bytes,
// inputs first. Everything read from it is checked against the file's size.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/npy.h"
#include "tools/verbs.h"

namespace ge {
namespace {

namespace fs = std::filesystem;

// The fields of one protobuf message: calls f(field, number, bytes) for each; false if it is cut.
template <class F>
bool ForFields(std::string_view bytes, F&& f) {
  const auto varint = [&](uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto c = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      *value |= uint64_t{c & 127u} << shift;
      if (c < 128) return true;
    }
    return false;
  };
  while (!bytes.empty()) {
    uint64_t tag = 0, value = 0;
    if (!varint(&tag) || !varint(&value)) return false;
    if ((tag & 7) == 0) {
      f(tag >> 3, value, std::string_view());
    } else if ((tag & 7) == 2) {
      if (value > bytes.size()) return false;
      f(tag >> 3, uint64_t{0}, bytes.substr(0, value));
      bytes.remove_prefix(value);
    } else {
      return false;
    }
  }
  return true;
}

DType TypeOf(uint64_t number) {
  static constexpr DType kTypes[] = {
      DType::kNone, DType::kF32, DType::kF16, DType::kI8,  DType::kU8,   DType::kI16, DType::kU16,
      DType::kI32,  DType::kI64, DType::kU32, DType::kU64, DType::kBool, DType::kF64};
  if (number < std::size(kTypes)) return kTypes[number];
  return number == 16   ? DType::kC64
         : number == 17 ? DType::kC128
         : number == 27 ? DType::kBF16
                        : DType::kNone;
}

struct DumpedTensor {
  bool input = false;
  std::string name;
  Array array;
  uint64_t bytes = 0;
};

bool ReadDims(std::string_view shape, std::vector<int64_t>* dims) {
  bool whole = true;
  const bool read = ForFields(shape, [&](uint64_t field, uint64_t value, std::string_view packed) {
    if (field != 1) return;
    if (packed.empty()) dims->push_back(static_cast<int64_t>(value));
    while (!packed.empty()) {
      uint64_t dim = 0;
      int shift = 0;
      bool more = true;
      for (; more && !packed.empty() && shift < 64; shift += 7) {
        dim |= uint64_t{static_cast<uint8_t>(packed.front()) & 127u} << shift;
        more = static_cast<uint8_t>(packed.front()) >= 128;
        packed.remove_prefix(1);
      }
      whole = whole && !more;
      dims->push_back(static_cast<int64_t>(dim));
    }
  });
  return read && whole;
}

bool ReadTensor(std::string_view message, DumpedTensor* t) {
  bool good = true;
  const uint64_t size_field = t->input ? 5 : 6;
  const bool read = ForFields(message, [&](uint64_t field, uint64_t value, std::string_view bytes) {
    if (field == 1) t->array.dtype = TypeOf(value);
    if (field == 3) good = ReadDims(bytes, &t->array.dims) && good;
    if (field == size_field) t->bytes = value;
    if (field == 4 && !t->input)
      good = ForFields(bytes,
                       [&](uint64_t f, uint64_t, std::string_view text) {
                         if (f == 1) t->name = text;
                       }) &&
             good;
  });
  return read && good;
}

Result<std::vector<DumpedTensor>> ReadDump(const std::string& path, std::string* op) {
  GE_ASSIGN(const std::vector<std::byte> file, ReadFile(path));
  std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const Status bad = Invalid(path + ": not a dump file");
  uint64_t header = 0;
  if (bytes.size() < sizeof header) return bad;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header > bytes.size()) return bad;
  std::vector<DumpedTensor> inputs, outputs;
  bool good = true;
  const bool read =
      ForFields(bytes.substr(0, header), [&](uint64_t field, uint64_t, std::string_view message) {
        if (field == 6) *op = message;
        if (field != 3 && field != 4) return;
        auto& list = field == 4 ? inputs : outputs;
        list.emplace_back().input = field == 4;
        good = good && ReadTensor(message, &list.back());
      });
  if (!read || !good) return bad;
  bytes.remove_prefix(header);
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  for (DumpedTensor& t : inputs) {
    int64_t elements = 1;
    for (const int64_t d : t.array.dims) {
      if (d < 0 || (d > 0 && elements > (int64_t{1} << 48) / d)) return bad;
      elements *= d;
    }
    if (t.bytes > bytes.size() || t.array.dtype == DType::kNone ||
        static_cast<uint64_t>(BytesFor(t.array.dtype, elements)) != t.bytes)
      return bad;
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    t.array.bytes.assign(data, data + t.bytes);
    bytes.remove_prefix(t.bytes);
  }
  return inputs;
}

Status Convert(const std::string& path, const std::string& folder) {
  std::string op;
  GE_ASSIGN(const std::vector<DumpedTensor> tensors, ReadDump(path, &op));
  int count[2] = {0, 0};
  const fs::path base =
      folder.empty() ? fs::path(path) : fs::path(folder) / fs::path(path).filename();
  for (const DumpedTensor& t : tensors) {
    const std::string name =
        fmt::format("{}.{}.{}.npy", base.string(), t.input ? "input" : "output", count[t.input]++);
    GE_TRY(WriteNpy(name, t.array));
    std::printf("%s: %s %s%s %s\n", name.c_str(), op.c_str(),
                std::string(Name(t.array.dtype)).c_str(),
                fmt::format("[{}]", fmt::join(t.array.dims, ",")).c_str(), t.name.c_str());
  }
  return {};
}

Status ConvertAll(const std::vector<std::string>& paths, const std::string& folder) {
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) return Error(Code::kUnavailable, folder + ": " + error.message());
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, error)) {
      GE_TRY(Convert(path, folder));
      continue;
    }
    bool found = false;
    fs::recursive_directory_iterator entry(path, error), last;
    for (; !error && entry != last; entry.increment(error)) {
      const auto end = entry->path().extension();
      if (!entry->is_regular_file(error) || end == ".npy" || end == ".csv") continue;
      GE_TRY(Convert(entry->path().string(), folder));
      found = true;
    }
    if (error) return Error(Code::kUnavailable, path + ": " + error.message());
    if (!found) return Error(Code::kNotFound, path + ": no dump file in this folder");
  }
  return {};
}

}  // namespace

void AddDumpVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("dump", "tensors of AscendCL's dump files as .npy");
  auto paths = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  verb->add_option("files", *paths, "dump files, or folders of them")->required();
  verb->add_option("--output", *folder, "folder for the .npy files (default: beside each file)");
  verb->callback(
      [paths, folder, &exit_code] { exit_code = ExitCode(ConvertAll(*paths, *folder)); });
}

}  // namespace ge
