// The thread's last error: a code for aclrtGetLastError, a message for aclGetRecentErrMsg.
#include "api/acl/error.h"

#include <cstdio>
#include <cstdlib>

namespace ge::acl {
namespace {

struct LastError {
  aclError code = ACL_SUCCESS;
  std::string message;  // not yet asked for
  std::string given;    // what aclGetRecentErrMsg returned last
};

LastError& Mine() {
  thread_local LastError error;
  return error;
}

bool PrintsErrors() {
  static const bool prints = [] {
    const char* value = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    return value != nullptr && value[0] == '1';
  }();
  return prints;
}

}  // namespace

aclError Fail(aclError code, const char* function, const std::string& message) {
  LastError& mine = Mine();
  mine.code = code;
  mine.message = "E" + std::to_string(code) + ": " + function + ": " + message + "\n";
  if (PrintsErrors()) std::printf("[ERROR] ASCENDCL %s", mine.message.c_str());
  return code;
}

void Warn(const char* function, const std::string& message) {
  LastError& mine = Mine();
  mine.message = std::string("warning: ") + function + ": " + message + "\n";
  if (PrintsErrors()) std::printf("[WARNING] ASCENDCL %s", mine.message.c_str());
}

aclError NotSupported(const char* function) {
  return Fail(ACL_ERROR_API_NOT_SUPPORT, function,
              "not supported by this library: it needs Ascend hardware");
}

aclError Fail(const Status& status, aclError fallback, const char* function) {
  aclError code = fallback;
  if (status.code() == Code::kResourceExhausted) code = ACL_ERROR_GE_MEMORY_ALLOCATION;
  if (status.code() == Code::kInternal) code = ACL_ERROR_GE_INTERNAL_ERROR;
  return Fail(code, function, status.message());
}

}  // namespace ge::acl

using ge::acl::Mine;

GE_ACL const char* aclGetRecentErrMsg() {
  auto& mine = Mine();
  if (mine.message.empty()) return nullptr;
  mine.given.swap(mine.message);
  mine.message.clear();
  return mine.given.c_str();
}

GE_ACL aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  if (level != ACL_RT_THREAD_LEVEL) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "unknown level");
  return Mine().code;
}

GE_ACL aclError aclrtGetLastError(aclrtLastErrLevel level) {
  const aclError code = aclrtPeekAtLastError(level);
  Mine().code = ACL_SUCCESS;
  return code;
}
