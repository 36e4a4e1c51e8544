// The .om file's bytes, little-endian:
//
//   Preamble      magic, version, header and file size, counts
//   SectionRecord per section: kind, offset, bytes, checksum
//   feature names, one per line
//   checksum of all the above (8 bytes)
//   sections, 64-byte aligned; weights page-aligned
//
// Invariant of a read file: sections lie inside the file and do not overlap the header; plan, code
// and description have been compared with their checksums.
#include "om/file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/file_map.h"
#include "base/hash.h"

namespace ge::om {
namespace {

constexpr std::array<char, 8> kMagic = {'\x89', 'G', 'E', 'o', 'm', '\r', '\n', '\x1a'};
constexpr int64_t kPage = 4096, kLine = 64;
constexpr int64_t kMaxExternal = int64_t{1} << 46;
constexpr uint32_t kMaxSections = 64, kMaxFeatureBytes = 4096;

struct Preamble {
  std::array<char, 8> magic;
  uint32_t version, header_bytes;
  int64_t file_bytes;
  uint32_t sections, feature_bytes;
};
struct SectionRecord {
  uint32_t kind, zero;
  int64_t offset, bytes;
  uint64_t checksum;
};
static_assert(sizeof(Preamble) == 32 && sizeof(SectionRecord) == 32);

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

Status Damaged(const std::string& what) {
  return Error(Code::kDataLoss, "not a usable .om file: " + what);
}

std::string JoinLines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    lines.emplace_back(text.substr(0, end));
  }
  return lines;
}

template <class T>
T ReadRecord(std::span<const std::byte> file, size_t at) {
  T record;
  std::memcpy(&record, file.data() + at, sizeof(T));
  return record;
}

// ---- External weights: one line "offset bytes checksum path" for each

std::string EncodeExternal(const std::vector<ExternalWeight>& weights) {
  std::vector<std::string> lines;
  for (const ExternalWeight& w : weights) {
    lines.push_back(std::to_string(w.offset) + " " + std::to_string(w.bytes) + " " +
                    std::to_string(w.checksum) + " " + w.path);
  }
  return JoinLines(lines);
}

template <class T>
bool TakeNumber(std::string_view& line, T* value) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), *value);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  return true;
}

// Files lie below the .om's folder; their ranges are whole pages' starts and do not overlap.
Status DecodeExternal(std::string_view text, std::vector<ExternalWeight>* weights) {
  int64_t end = 0;
  for (const std::string& whole : SplitLines(text)) {
    std::string_view line = whole;
    ExternalWeight w;
    if (!TakeNumber(line, &w.offset) || !TakeNumber(line, &w.bytes) ||
        !TakeNumber(line, &w.checksum) || line.empty())
      return Damaged("bad list of external weights");
    w.path = line;
    if (w.path[0] == '/' || w.path.find("..") != std::string::npos)
      return Damaged("external weights lie outside its folder");
    if (w.offset % kPage != 0 || w.offset < end || w.bytes <= 0 ||
        w.bytes > kMaxExternal - w.offset)
      return Damaged("external weights have impossible places");
    end = w.offset + w.bytes;
    weights->push_back(std::move(w));
  }
  return {};
}

// ---- Writing

struct Layout {
  std::vector<SectionRecord> table;
  int64_t header_bytes = 0, file_bytes = 0;
};

Layout Place(const std::vector<std::pair<Section, int64_t>>& sections, int64_t feature_bytes) {
  Layout layout;
  layout.header_bytes =
      static_cast<int64_t>(sizeof(Preamble) + sections.size() * sizeof(SectionRecord) +
                           sizeof(uint64_t)) +
      feature_bytes;
  int64_t at = layout.header_bytes;
  for (const auto& [kind, bytes] : sections) {
    at = RoundUp(at, kind == Section::kWeights ? kPage : kLine);
    layout.table.push_back({static_cast<uint32_t>(kind), 0, at, bytes, 0});
    at += bytes;
  }
  layout.file_bytes = at;
  return layout;
}

void WriteHeader(const Layout& layout, const std::string& features, std::byte* out) {
  const Preamble preamble{kMagic,
                          kFormatVersion,
                          static_cast<uint32_t>(layout.header_bytes),
                          layout.file_bytes,
                          static_cast<uint32_t>(layout.table.size()),
                          static_cast<uint32_t>(features.size())};
  std::byte* at = out;
  const auto put = [&at](const void* data, size_t bytes) {
    if (bytes != 0) std::memcpy(at, data, bytes);
    at += bytes;
  };
  put(&preamble, sizeof(preamble));
  put(layout.table.data(), layout.table.size() * sizeof(SectionRecord));
  put(features.data(), features.size());
  const uint64_t checksum = Hash64(out, static_cast<size_t>(at - out));
  put(&checksum, sizeof(checksum));
}

Status Fill(const OmContents& contents, const std::string& plan, Layout& layout,
            const std::string& features, const std::string& path) {
  GE_ASSIGN(FileMap map, FileMap::Create(path, layout.file_bytes));
  std::byte* file = map.writable().data();
  for (SectionRecord& s : layout.table) {
    std::byte* at = file + s.offset;
    const auto put = [&](const std::string& text) {
      std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(at));
    };
    switch (static_cast<Section>(s.kind)) {
      case Section::kPlan: put(plan); break;
      case Section::kCode: put(contents.code); break;
      case Section::kDescription: put(contents.description); break;
      case Section::kIr: put(contents.ir_text); break;
      case Section::kExternal: put(EncodeExternal(contents.external)); break;
      case Section::kWeights:
        if (contents.fill_weights) GE_TRY(contents.fill_weights(at));
    }
    s.checksum = Hash64(at, static_cast<size_t>(s.bytes));
  }
  WriteHeader(layout, features, file);
  return {};
}

std::string TemporaryName(const std::string& path) {
  static std::atomic<int> count{0};
  return path + ".tmp" + std::to_string(getpid()) + "." + std::to_string(count++);
}

// ---- Reading

Status CheckPreamble(std::span<const std::byte> file, const Preamble& p) {
  if (p.version != kFormatVersion) {
    return Damaged("format version " + std::to_string(p.version) + ", this build reads version " +
                   std::to_string(kFormatVersion));
  }
  if (p.file_bytes != static_cast<int64_t>(file.size())) {
    return Damaged("it should have " + std::to_string(p.file_bytes) + " bytes and has " +
                   std::to_string(file.size()));
  }
  if (p.sections > kMaxSections || p.feature_bytes > kMaxFeatureBytes) return Damaged("bad header");
  const size_t header =
      sizeof(Preamble) + p.sections * sizeof(SectionRecord) + p.feature_bytes + sizeof(uint64_t);
  if (header != p.header_bytes || header > file.size()) return Damaged("bad header");
  const size_t covered = header - sizeof(uint64_t);
  if (Hash64(file.data(), covered) != ReadRecord<uint64_t>(file, covered)) {
    return Damaged("the header's checksum differs");
  }
  return {};
}

Status TakeSection(std::span<const std::byte> file, const Preamble& p, const SectionRecord& s,
                   bool verify_weights, OmView* view, std::span<const std::byte>* plan) {
  const std::string name = "section " + std::to_string(s.kind);
  const auto size = static_cast<int64_t>(file.size());
  if (s.offset < p.header_bytes || s.offset > size || s.bytes < 0 || s.bytes > size - s.offset) {
    return Damaged(name + " lies outside the file");
  }
  const auto kind = static_cast<Section>(s.kind);
  const auto bytes = file.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.bytes));
  // What a run does not read (the IR) or reads in full anyway (weights) is checked on request.
  const bool verify = (kind != Section::kWeights && kind != Section::kIr) || verify_weights;
  if (verify && Hash64(bytes.data(), bytes.size()) != s.checksum) {
    return Damaged(name + ": its checksum differs");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  switch (kind) {
    case Section::kPlan: *plan = bytes; break;
    case Section::kCode: view->code = bytes; break;
    case Section::kDescription: view->description = text; break;
    case Section::kIr: view->ir_text = text; break;
    case Section::kExternal: GE_TRY(DecodeExternal(text, &view->external)); break;
    case Section::kWeights:
      if (s.offset % kLine != 0) return Damaged("weights are not aligned");
      view->weights = bytes;
      break;
    default: return Damaged(name + " is unknown");
  }
  view->sections.push_back({kind, s.offset, s.bytes, s.checksum});
  return {};
}

}  // namespace

Status WriteOm(const std::string& path, const OmContents& contents) {
  GE_TRY(CheckPlan(contents.plan, contents.weight_bytes, -1));
  const std::string plan = EncodePlan(contents.plan), features = JoinLines(contents.cpu_features);
  if (features.size() > kMaxFeatureBytes) return Invalid("too many CPU features");
  const auto bytes = [](const std::string& s) { return static_cast<int64_t>(s.size()); };
  std::vector<std::pair<Section, int64_t>> sections{
      {Section::kPlan, bytes(plan)},
      {Section::kDescription, bytes(contents.description)},
      {Section::kIr, bytes(contents.ir_text)},
      {Section::kCode, bytes(contents.code)}};
  if (contents.external.empty())
    sections.emplace_back(Section::kWeights, contents.weight_bytes);
  else
    sections.emplace_back(Section::kExternal, bytes(EncodeExternal(contents.external)));
  Layout layout = Place(sections, bytes(features));
  const std::string temporary = TemporaryName(path);
  Status status = Fill(contents, plan, layout, features, temporary);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Error(Code::kInvalidArgument, path + ": cannot write: " + std::strerror(errno));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

Result<OmView> ReadOm(std::span<const std::byte> file, bool verify_weights) {
  if (file.size() < sizeof(Preamble))
    return Damaged("it has only " + std::to_string(file.size()) + " bytes");
  const auto preamble = ReadRecord<Preamble>(file, 0);
  if (preamble.magic != kMagic) return Damaged("its first bytes are foreign");
  GE_TRY(CheckPreamble(file, preamble));
  OmView view;
  std::span<const std::byte> plan;
  for (uint32_t i = 0; i < preamble.sections; ++i) {
    const auto s = ReadRecord<SectionRecord>(file, sizeof(Preamble) + i * sizeof(SectionRecord));
    GE_TRY(TakeSection(file, preamble, s, verify_weights, &view, &plan));
  }
  const size_t features = sizeof(Preamble) + preamble.sections * sizeof(SectionRecord);
  view.cpu_features =
      SplitLines({reinterpret_cast<const char*>(file.data()) + features, preamble.feature_bytes});
  GE_ASSIGN(view.plan, DecodePlan(plan));
  const int64_t weight_bytes = view.external.empty()
                                   ? static_cast<int64_t>(view.weights.size())
                                   : view.external.back().offset + view.external.back().bytes;
  GE_TRY(CheckPlan(view.plan, weight_bytes, -1));
  return view;
}

}  // namespace ge::om
