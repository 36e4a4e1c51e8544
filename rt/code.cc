// memfd and dlopen. Where /proc is missing, a temporary file takes the memory file's place.
#include "rt/code.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace ge::rt {
namespace {

Status Failed(const std::string& what) {
  return Error(Code::kUnavailable, "cannot load its code: " + what);
}

bool WriteAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

Result<void*> OpenByName(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* reason = dlerror();
  return Failed(reason != nullptr ? reason : "unknown reason");
}

Result<void*> OpenFromFile(std::span<const std::byte> bytes) {
  const char* folder = std::getenv("TMPDIR");
  std::string name = std::string(folder != nullptr ? folder : "/tmp") + "/ge_code_XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) return Failed(std::strerror(errno));
  const bool written = WriteAll(fd, bytes);
  close(fd);
  Result<void*> handle = written ? OpenByName(name) : Failed(std::strerror(errno));
  unlink(name.c_str());
  return handle;
}

// Reads a byte of each page of constants. A masked load from a page that was never touched, with no
// lane set, faults and is mended each time, and the page stays unmapped: a hundred times slower.
void TouchConstants(const void* symbol) {
  Dl_info place;
  if (dladdr(symbol, &place) == 0) return;
  const auto* base = static_cast<const char*>(place.dli_fbase);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    const ElfW(Phdr)& s = segments[i];
    if (s.p_type != PT_LOAD || s.p_flags != PF_R) continue;
    constexpr size_t kPage = 4096;
    for (size_t at = 0; at < s.p_memsz; at += kPage)
      (void)*static_cast<const volatile char*>(base + s.p_vaddr + at);
  }
}

template <double (*F)(double)>
double Call1(double x) {
  return F(x);
}
template <double (*F)(double, double)>
double Call2(double x, double y) {
  return F(x, y);
}

}  // namespace

Result<CodeObject> CodeObject::Load(std::span<const std::byte> shared_object, size_t kernels) {
  CodeObject code;
  code.fd_ = memfd_create("ge_code", MFD_CLOEXEC);
  if (code.fd_ >= 0 && access("/proc/self/fd", X_OK) == 0) {
    if (!WriteAll(code.fd_, shared_object)) return Failed(std::strerror(errno));
    GE_ASSIGN(code.handle_, OpenByName("/proc/self/fd/" + std::to_string(code.fd_)));
  } else {
    GE_ASSIGN(code.handle_, OpenFromFile(shared_object));
  }
  const auto* table = static_cast<const ge_code_table*>(dlsym(code.handle_, "ge_code"));
  if (table == nullptr) return Failed("it has no kernel table");
  if (table->abi_version != GE_KERNEL_ABI_VERSION) {
    return Failed("kernel interface version " + std::to_string(table->abi_version) +
                  ", this runtime has version " + std::to_string(GE_KERNEL_ABI_VERSION));
  }
  if (table->count != kernels) {
    return Failed("it has " + std::to_string(table->count) + " kernels, the plan has " +
                  std::to_string(kernels));
  }
  code.kernels_ = std::span(table->kernels, table->count);
  TouchConstants(table);
  return code;
}

CodeObject::CodeObject(CodeObject&& other) noexcept { *this = std::move(other); }

CodeObject& CodeObject::operator=(CodeObject&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(fd_, other.fd_);
  std::swap(kernels_, other.kernels_);
  return *this;
}

CodeObject::~CodeObject() {
  if (handle_ != nullptr) dlclose(handle_);
  if (fd_ >= 0) close(fd_);
}

const ge_math_table& MathTable() {
  // In the order of ge_math1 and ge_math2.
  static const ge_math_table table = {
      GE_M_COUNT1,
      GE_M_COUNT2,
      {Call1<std::exp>, Call1<std::log>, Call1<std::sin>, Call1<std::cos>, Call1<std::tan>,
       Call1<std::asin>, Call1<std::acos>, Call1<std::atan>, Call1<std::sinh>, Call1<std::cosh>,
       Call1<std::tanh>, Call1<std::asinh>, Call1<std::acosh>, Call1<std::atanh>, Call1<std::erf>,
       Call1<std::lgamma>, Call1<std::expm1>, Call1<std::log1p>, Call1<std::cbrt>},
      {Call2<std::pow>, Call2<std::fmod>, Call2<std::atan2>}};
  return table;
}

}  // namespace ge::rt
