// Failing: every function of the API that fails ends in Fail, which keeps the thread's last code
// and a message that says what was wrong, for aclGetRecentErrMsg.
#pragma once

#include <string>

#include "api/acl/include/acl/acl.h"
#include "base/status.h"

#define GE_ACL extern "C" __attribute__((visibility("default")))

namespace ge::acl {

// Records and returns `code`. `function` is the public function's name.
aclError Fail(aclError code, const char* function, const std::string& message);
aclError NotSupported(const char* function);
// Something that worked and will surprise: a message, but no code.
void Warn(const char* function, const std::string& message);
// A failure of the runtime: its code by what went wrong, `fallback` if nothing closer is known.
aclError Fail(const Status& status, aclError fallback, const char* function);

}  // namespace ge::acl

#define ACL_FAIL(code, message) \
  return ::ge::acl::Fail(static_cast<aclError>(code), __func__, message)
// Null pointers and the like: `if (x == nullptr) ACL_FAIL(...)` in one word.
#define ACL_NEEDS(condition, message)                             \
  do {                                                            \
    if (!(condition)) ACL_FAIL(ACL_ERROR_INVALID_PARAM, message); \
  } while (0)
