// CompileKernels: distinct kernels by hash; the ones that the cache lacks are compiled in batches
// by several compiler processes; one link makes the shared object. See emit.h.
//
// Invariant: the object needs no symbol of the process that loads it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/hash.h"
#include "emit/cache.h"
#include "emit/emit.h"
#include "emit/process.h"

namespace ge::emit {

namespace {

constexpr int kEmitVersion = 5;  // raise when the same TileIR must give other code
constexpr size_t kBatchKernels = 12;

#if defined(__aarch64__)
constexpr const char* kThisMachine = "aarch64";
#else
constexpr const char* kThisMachine = "x86_64";
#endif

// clang compiles for every machine; a gcc is for the one that it was built for.
void AddTarget(const SocSpec& soc, const CompilerSpec& cc, std::vector<std::string>* flags) {
  if (cc.is_clang && soc.machine != kThisMachine)
    flags->push_back("--target=" + soc.machine + "-linux-gnu");
}

std::vector<std::string> CompilerFlags(const SocSpec& soc, const CompilerSpec& cc,
                                       const std::string& sanitize) {
  std::vector<std::string> flags = {"-O2",
                                    "-std=gnu11",
                                    "-w",
                                    "-fPIC",
                                    "-fvisibility=hidden",
                                    "-ffreestanding",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-ffp-contract=off",
                                    "-fwrapv",
                                    "-fno-strict-aliasing",
                                    "-ffunction-sections",
                                    "-fno-stack-protector",
                                    "-fcf-protection=none",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fno-unwind-tables",
                                    "-fno-ident"};
  if (cc.is_clang) {
    flags.insert(flags.end(), {"-fno-vectorize"});
  } else {
    flags.insert(flags.end(), {"-fno-tree-vectorize", "-Wno-psabi", "-fno-ipa-cp"});
  }
  AddTarget(soc, cc, &flags);
  flags.insert(flags.end(), soc.cc_flags.begin(), soc.cc_flags.end());
  if (!sanitize.empty()) {
    flags.push_back("-fsanitize=" + sanitize);
    flags.push_back("-fno-sanitize=alignment");  // element-aligned vector access is meant
    if (sanitize.find("address") == std::string::npos)
      flags.push_back("-fsanitize-undefined-trap-on-error");
  }
  return flags;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& w : words) text += w + " ";
  return text;
}

constexpr const char* kCopyByStrings = R"(
void* memcpy(void* d, const void* s, size n) {
  void* r = d;
  __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
  return r;
}
void* memset(void* d, int c, size n) {
  void* r = d;
  __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
  return r;
}
)";
// Volatile: the compiler must not make a call of the function out of its own loop.
constexpr const char* kCopyByLoops = R"(
typedef unsigned long word __attribute__((aligned(1), may_alias));
void* memcpy(void* d, const void* s, size n) {
  size i = 0;
  for (; i + 8 <= n; i += 8) *(volatile word*)((char*)d + i) = *(const word*)((const char*)s + i);
  for (; i < n; i++) ((volatile char*)d)[i] = ((const char*)s)[i];
  return d;
}
void* memset(void* d, int c, size n) {
  size i = 0;
  for (; i + 8 <= n; i += 8) *(volatile word*)((char*)d + i) = (unsigned char)c * 0x0101010101010101ul;
  for (; i < n; i++) ((volatile char*)d)[i] = (char)c;
  return d;
}
)";

// What the linked object holds besides kernels: the table, and the four functions that compilers
// may call.
std::string TableUnit(const SocSpec& soc, const std::vector<std::string>& hashes) {
  std::string text =
      "typedef struct { unsigned abi_version, count; const void* const* kernels; } table;\n"
      "typedef unsigned long size;\n";
  text += soc.IsArm() ? kCopyByLoops : kCopyByStrings;
  text +=
      "void* memmove(void* d, const void* s, size n) {\n"
      "  if ((size)d - (size)s >= n) return memcpy(d, s, n);\n"
      "  for (volatile char *p = d; n--;) p[n] = ((const volatile char*)s)[n];\n"
      "  return d;\n}\n"
      "int memcmp(const void* a, const void* b, size n) {\n"
      "  for (const volatile unsigned char *p = a, *q = b; n--; p++, q++) if (*p != *q) return *p "
      "- *q;\n"
      "  return 0;\n}\n";
  for (const std::string& h : hashes) text += fmt::format("extern char k_{}[];\n", h);
  text += "static const void* const kernels[] = {";
  for (const std::string& h : hashes) text += fmt::format("k_{}, ", h);
  text += "0};\n__attribute__((visibility(\"default\"))) const table ge_code = ";
  return text + fmt::format("{{1, {}, kernels}};\n", hashes.size());
}

std::string Comment(const std::string& text) {
  std::string out = "// ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "// ";
  }
  return out + "\n";
}

// With GE_KEEP=dir: the C of each kernel with its TileIR, and the prelude it needs.
void Keep(const tile::Kernel& kernel, const std::string& hash, const std::string& code,
          const SocSpec& soc) {
  const char* dir = std::getenv("GE_KEEP");
  if (dir == nullptr || *dir == '\0') return;
  mkdir(dir, 0755);
  std::string name = kernel.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
  }
  std::string file = fmt::format("{}/{}-{}.c", dir, name.substr(0, 80), hash.substr(0, 8));
  (void)WriteFileAtomically(file, "#include \"prelude.h\"\n" + Comment(ToString(kernel)) + code)
      .ok();
  (void)WriteFileAtomically(std::string(dir) + "/prelude.h", Prelude(soc)).ok();
}

struct Batch {
  std::vector<int> kernels;  // indices into the distinct kernels
  std::string source;        // C text
  std::string object;        // path of the result
  Status status;
};

// State of one CompileKernels call.
struct Build {
  const SocSpec& soc;
  CompilerSpec compiler;
  const CompileOptions& options;
  ScratchFolder folder;
  CodeCache cache;
  std::vector<const tile::Kernel*> kernels;  // distinct
  std::vector<std::string> hashes;
  std::vector<std::string> objects;  // by distinct kernel: path of its object
  std::mutex mutex;
  int done = 0, total = 0;
};

std::string SourceOf(const Build& b, const Batch& batch) {
  std::string source = Prelude(b.soc);
  for (int k : batch.kernels) {
    std::string code = EmitKernel(*b.kernels[k], b.soc, "k_" + b.hashes[k]);
    Keep(*b.kernels[k], b.hashes[k], code, b.soc);
    source += "__attribute__((weak)) " + code;
  }
  return source;
}

// The error of a compiler or linker whose file is past the limit on sizes, or on a full disk; OK if
// it failed for another reason.
Status Unwritten(const std::string& file, const std::string& output) {
  for (const auto& [text, error] : {std::pair{"File size limit exceeded", EFBIG},
                                    {"File too large", EFBIG},
                                    {"No space left on device", ENOSPC}})
    if (output.find(text) != std::string::npos)
      return Error(Code::kResourceExhausted, file + ": " + std::strerror(error));
  return {};
}

Status CompileBatch(Build& b, Batch& batch, int number) {
  std::string source = b.folder.File(fmt::format("b{}.c", number));
  batch.object = b.folder.File(fmt::format("b{}.o", number));
  GE_TRY(WriteFileAtomically(source, batch.source));
  std::vector<std::string> argv = {b.compiler.path};
  for (std::string& f : CompilerFlags(b.soc, b.compiler, b.options.sanitize))
    argv.push_back(std::move(f));
  argv.insert(argv.end(), {"-c", source, "-o", batch.object});
  ProcessResult run = RunProcess(argv);
  if (run.exit_code != 0) {
    GE_TRY(Unwritten(batch.object, run.output));
    return Error(Code::kInternal,
                 fmt::format("{} failed on generated code ({}):\n{}", b.compiler.id,
                             b.kernels[batch.kernels[0]]->name, run.output.substr(0, 2000)));
  }
  if (access(batch.object.c_str(), R_OK) != 0)
    return Error(Code::kInternal, b.compiler.path + " compiled generated code and made no file");
  if (!b.cache.enabled()) return {};
  Result<std::string> bytes = ReadWholeFile(batch.object);
  if (!bytes.ok()) return bytes.status();
  std::lock_guard lock(b.mutex);
  std::string cached = b.cache.Add(*bytes);
  if (cached.empty()) return {};
  batch.object = cached;
  for (int k : batch.kernels) b.cache.Link(b.hashes[k], cached);
  return {};
}

// Deals the missing kernels to batches of similar size, the long ones first.
std::vector<Batch> DealBatches(const Build& b, std::vector<int> missing, size_t jobs) {
  std::stable_sort(missing.begin(), missing.end(), [&](int x, int y) {
    return b.kernels[x]->values.size() > b.kernels[y]->values.size();
  });
  size_t count = std::max((missing.size() + kBatchKernels - 1) / kBatchKernels,
                          std::min(jobs, missing.size()));
  std::vector<Batch> batches(count);
  for (size_t i = 0; i < missing.size(); ++i) batches[i % count].kernels.push_back(missing[i]);
  return batches;
}

Status CompileMissing(Build& b, std::vector<int> missing) {
  size_t jobs = b.options.jobs > 0 ? static_cast<size_t>(b.options.jobs)
                                   : std::max(1u, std::thread::hardware_concurrency());
  std::vector<Batch> batches = DealBatches(b, std::move(missing), jobs);
  // Printing simplifies Exprs, whose arena belongs to one thread.
  for (Batch& batch : batches) batch.source = SourceOf(b, batch);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < batches.size();) {
      batches[i].status = CompileBatch(b, batches[i], static_cast<int>(i));
      std::lock_guard lock(b.mutex);
      b.done += static_cast<int>(batches[i].kernels.size());
      if (b.options.progress) b.options.progress(b.done, b.total);
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(jobs, batches.size()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  for (Batch& batch : batches) {
    GE_TRY(std::move(batch.status));
    for (int k : batch.kernels) b.objects[k] = batch.object;
  }
  return {};
}

Result<std::string> Link(const Build& b) {
  std::string table = b.folder.File("table.c"), out = b.folder.File("code.so");
  GE_TRY(WriteFileAtomically(table, TableUnit(b.soc, b.hashes)));
  std::vector<std::string> objects = b.objects;
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  std::vector<std::string> argv = {b.compiler.path,
                                   "-shared",
                                   "-O2",
                                   "-w",
                                   "-fPIC",
                                   "-ffreestanding",
                                   "-fno-builtin",
                                   "-fvisibility=hidden",
                                   "-fno-stack-protector",
                                   "-fcf-protection=none",
                                   "-fno-asynchronous-unwind-tables",
                                   "-Wl,--gc-sections",
                                   "-Wl,-z,noexecstack",
                                   "-Wl,--build-id=none",
                                   "-Wl,-s"};
  AddTarget(b.soc, b.compiler, &argv);
  if (b.compiler.is_clang && b.soc.machine != kThisMachine) argv.push_back("-fuse-ld=lld");
  if (b.options.sanitize.find("address") == std::string::npos) {
    argv.insert(argv.end(), {"-nostdlib", "-Wl,--no-undefined"});
  } else {
    argv.push_back("-fsanitize=" + b.options.sanitize);
  }
  argv.push_back(table);
  argv.insert(argv.end(), objects.begin(), objects.end());
  argv.insert(argv.end(), {"-o", out});
  ProcessResult run = RunProcess(argv);
  if (run.exit_code != 0) {
    GE_TRY(Unwritten(out, run.output));
    return Error(Code::kInternal, "linking generated code failed:\n" + run.output.substr(0, 2000));
  }
  if (access(out.c_str(), R_OK) != 0)
    return Error(Code::kInternal, b.compiler.path + " linked generated code and made no file");
  return ReadWholeFile(out);
}

// What all kernels of one compilation have in their hash.
std::string CommonKey(const SocSpec& soc, const std::string& sanitize,
                      const std::string& compiler_id) {
  return fmt::format("\n{} {} {} {} {}{}{}\n{}\n{}", kEmitVersion, soc.vector_bytes, soc.l2_bytes,
                     soc.masks, Joined(soc.cc_flags),
                     soc.bf16  ? "bf16"
                     : soc.amx ? "amx"
                               : "",
                     sanitize, compiler_id, HashHex(Prelude(soc)));
}

}  // namespace

std::string KernelHash(const tile::Kernel& kernel, const SocSpec& soc,
                       const std::string& compiler_id) {
  return HashHex(ToString(kernel, true) + CommonKey(soc, "", compiler_id));
}

Result<CompilerSpec> FindCompiler(const std::string& preferred) {
  std::vector<std::string> names;
  const char* env = std::getenv("GE_CC");
  if (!preferred.empty()) {
    names = {preferred};
  } else if (env != nullptr && *env) {
    names = {env};
  } else {
    names = {"clang-19", "clang", "gcc", "cc"};
  }
  std::string tried;
  for (const std::string& name : names) {
    tried += (tried.empty() ? "" : ", ") + name;
    std::string path = FindProgram(name);
    if (path.empty()) continue;
    ProcessResult run = RunProcess({path, "--version"});
    if (run.exit_code != 0) continue;
    std::string id = run.output.substr(0, run.output.find('\n'));
    return CompilerSpec{path, id, id.find("clang") != std::string::npos};
  }
  return Error(Code::kUnavailable, "no C compiler found (tried: " + tried + "; set GE_CC)");
}

Result<CodeObject> CompileKernels(std::span<const tile::Kernel* const> kernels, const SocSpec& soc,
                                  const CompileOptions& options) {
  CompilerSpec compiler = options.compiler;
  if (compiler.path.empty()) {
    GE_ASSIGN(compiler, FindCompiler());
  }
  Build b{soc, compiler, options, {}, CodeCache(options.cache_dir), {}, {}, {}, {}, 0, 0};
  if (!b.folder.ok())
    return Error(Code::kResourceExhausted,
                 "cannot create a folder for temporary files; see TMPDIR");
  CodeObject code;
  const std::string common = CommonKey(soc, options.sanitize, compiler.id);
  std::unordered_map<std::string, int> known;
  for (const tile::Kernel* k : kernels) {
    std::string hash = HashHex(ToString(*k, true) + common);
    auto [it, fresh] = known.try_emplace(hash, static_cast<int>(b.kernels.size()));
    if (fresh) b.kernels.push_back(k), b.hashes.push_back(hash);
    code.index.push_back(it->second);
  }
  b.objects.resize(b.kernels.size());
  std::vector<int> missing;
  for (size_t i = 0; i < b.kernels.size(); ++i) {
    b.objects[i] = b.cache.Find(b.hashes[i]);
    if (b.objects[i].empty()) missing.push_back(static_cast<int>(i));
  }
  b.total = static_cast<int>(missing.size());
  code.compiled = b.total;
  code.cached = static_cast<int>(b.kernels.size()) - b.total;
  if (!missing.empty()) GE_TRY(CompileMissing(b, std::move(missing)));
  GE_ASSIGN(code.bytes, Link(b));
  code.hash = b.hashes;
  return code;
}

}  // namespace ge::emit
