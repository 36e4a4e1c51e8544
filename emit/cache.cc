// See cache.h.
#include "emit/cache.h"

#include <cstdlib>
#include <filesystem>

#include "base/hash.h"
#include "emit/process.h"

namespace ge::emit {

namespace {

std::string DefaultFolder() {
  if (const char* dir = std::getenv("GE_CACHE_DIR"); dir != nullptr && *dir) return dir;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home) {
    return std::string(home) + "/.cache/ge";
  }
  return "";
}

bool IsHash(std::string_view s) {
  return s.size() == 32 && s.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

CodeCache::CodeCache(const std::string& dir) : dir_(dir.empty() ? DefaultFolder() : dir) {
  if (dir_ == "off") dir_.clear();
  if (dir_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  if (error) dir_.clear();
}

std::string CodeCache::Find(const std::string& kernel_hash) {
  if (!enabled()) return "";
  Result<std::string> name = ReadWholeFile(dir_ + "/" + kernel_hash + ".k");
  if (!name.ok() || !IsHash(*name)) return "";
  std::string path = dir_ + "/" + *name + ".o";
  if (path == last_object_) return path;
  Result<std::string> object = ReadWholeFile(path);
  if (!object.ok() || HashHex(*object) != *name) return "";
  last_object_ = path;
  return path;
}

std::string CodeCache::Add(std::string_view object) {
  if (!enabled()) return "";
  std::string path = dir_ + "/" + HashHex(object) + ".o";
  return WriteFileAtomically(path, object).ok() ? path : "";
}

void CodeCache::Link(const std::string& kernel_hash, const std::string& object_path) {
  if (!enabled()) return;
  std::string name = std::filesystem::path(object_path).stem();
  // A failure only means that the kernel is compiled again.
  (void)WriteFileAtomically(dir_ + "/" + kernel_hash + ".k", name).ok();
}

}  // namespace ge::emit
