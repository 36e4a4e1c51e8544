// Programs by posix_spawn: the child's output goes to a pipe that is read to its end before the
// wait.
#include "emit/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

extern char** environ;

namespace ge::emit {

namespace {

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

constexpr const char* kScratchPrefix = "ge-cc-";

// A living scratch folder is locked by its process; the kernel unlocks those of processes that were
// killed. Young folders are left alone: their lock may be about to be taken.
void RemoveAbandoned(const std::string& base) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(base, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with(kScratchPrefix)) continue;
    const int fd = open(it->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat s{};
    std::error_code ignored;
    if (fstat(fd, &s) == 0 && s.st_uid == geteuid() && std::time(nullptr) - s.st_mtime > 60 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
      std::filesystem::remove_all(it->path(), ignored);
    }
    close(fd);
  }
}

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& argv) {
  ProcessResult result;
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return result;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  pid_t pid = -1;
  int error = posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  if (error == 0) {
    result.output = ReadAll(fds[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  } else {
    result.output = argv[0] + ": " + std::strerror(error);
  }
  close(fds[0]);
  return result;
}

std::string FindProgram(std::string_view name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string_view::npos) {
    return access(std::string(name).c_str(), X_OK) == 0 ? std::string(name) : "";
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string candidate = std::string(rest.substr(0, colon)) + "/" + std::string(name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

Result<std::string> ReadWholeFile(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error(Code::kNotFound, path + ": " + std::strerror(errno));
  std::string text = ReadAll(fd);
  close(fd);
  return text;
}

Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  std::string temporary = path + ".XXXXXX";
  int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return Error(Code::kResourceExhausted, temporary + ": " + std::strerror(errno));
  while (!bytes.empty()) {
    ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  bool whole = bytes.empty() && fchmod(fd, 0644) == 0;
  whole = close(fd) == 0 && whole;
  if (whole && rename(temporary.c_str(), path.c_str()) == 0) return {};
  int error = errno;
  unlink(temporary.c_str());
  return Error(Code::kResourceExhausted, path + ": " + std::strerror(error));
}

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("TMPDIR");
  const std::string folder = base != nullptr && *base ? base : "/tmp";
  RemoveAbandoned(folder);
  path_ = folder + "/" + kScratchPrefix + "XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    path_.clear();
    return;
  }
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace ge::emit
