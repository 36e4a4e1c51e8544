// Programs by posix_spawn: the child's output goes to a pipe that is read to its end before the
// wait. Signals that end the process are taken by a thread that waits for them, so that what it
// does need not be safe in a handler; the threads that run programs stand still from then on.
#include "emit/process.h"

#include <fcntl.h>
#include <signal.h>
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
#include <mutex>
#include <set>
#include <thread>

extern char** environ;

namespace ge::emit {

namespace {

// What a signal ends. Never destroyed: the thread that waits for signals outlives main.
struct Living {
  std::mutex mutex;
  sigset_t signals;      // those that are waited for
  bool watched = false;  // are there any?
  bool ending = false;
  std::set<pid_t> programs;  // each leads a process group, if watched
  std::set<std::string> folders;
};

Living& TheLiving() {
  static Living& living = *new Living;
  return living;
}

// The process is about to end: nothing is started or reported any more.
[[noreturn]] void StandStill() {
  for (;;) pause();
}

void EndBy(int signal) {
  Living& living = TheLiving();
  std::set<std::string> folders;
  {
    std::lock_guard lock(living.mutex);
    living.ending = true;
    for (pid_t pid : living.programs) kill(-pid, SIGKILL);
    folders = living.folders;
  }
  // Another thread may be writing a file in one, so more than once.
  for (int i = 0; i < 3; ++i) {
    for (const std::string& folder : folders) {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  }
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  raise(signal);
}

// Starts a program; 0, or the error. It is known to EndBy from the start.
int Start(pid_t* pid, char** args, posix_spawn_file_actions_t* actions) {
  Living& living = TheLiving();
  std::unique_lock lock(living.mutex);
  if (living.ending) {
    lock.unlock();
    StandStill();
  }
  if (!living.watched) {
    lock.unlock();
    return posix_spawnp(pid, args[0], actions, nullptr, args, environ);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (int s : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&living.signals, s) == 1) sigdelset(&mask, s);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(pid, args[0], actions, &attributes, args, environ);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) living.programs.insert(*pid);
  return error;
}

// Before the wait, after which the number may be another process's.
void Forget(pid_t pid) {
  Living& living = TheLiving();
  std::unique_lock lock(living.mutex);
  living.programs.erase(pid);
  if (!living.ending) return;
  lock.unlock();
  StandStill();
}

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
  int error = Start(&pid, args.data(), &actions);
  posix_spawn_file_actions_destroy(&actions);
  close(fds[1]);
  if (error == 0) {
    result.output = ReadAll(fds[0]);
    Forget(pid);
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

void CleanUpOnSignals() {
  Living& living = TheLiving();
  sigset_t blocked;
  sigemptyset(&living.signals);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (int s : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old{};
    if (sigaction(s, nullptr, &old) != 0 || old.sa_handler == SIG_IGN ||
        sigismember(&blocked, s) == 1)
      continue;
    sigaddset(&living.signals, s);
    living.watched = true;
  }
  if (!living.watched || pthread_sigmask(SIG_BLOCK, &living.signals, nullptr) != 0) return;
  std::thread([&living] {
    int signal = 0;
    if (sigwait(&living.signals, &signal) == 0) EndBy(signal);
  }).detach();
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
  {
    std::lock_guard lock(TheLiving().mutex);
    if (mkdtemp(path_.data()) == nullptr) {
      path_.clear();
      return;
    }
    TheLiving().folders.insert(path_);
  }
  lock_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) flock(lock_, LOCK_EX | LOCK_NB);
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  {
    std::lock_guard lock(TheLiving().mutex);
    TheLiving().folders.erase(path_);
  }
  if (lock_ >= 0) close(lock_);
}

}  // namespace ge::emit
