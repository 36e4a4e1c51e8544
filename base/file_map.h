// FileMap: a file's bytes in memory. Reading maps it read-only; writing creates a file of a known
// size with its disk blocks reserved, so that a full disk is an error here and no SIGBUS later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace ge {

class FileMap {
 public:
  static Result<FileMap> Open(const std::string& path);         // read-only
  static Result<FileMap> OpenPrivate(const std::string& path);  // writable copy, file untouched
  static Result<FileMap> Create(const std::string& path, int64_t bytes);  // shared, writable
  FileMap() = default;
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::span<std::byte> writable() { return {data_, size_}; }  // not for Open

 private:
  std::byte* data_ = nullptr;  // null for an empty file
  size_t size_ = 0;
};

}  // namespace ge
