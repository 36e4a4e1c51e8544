// Status and Result<T>: how an edge (bad model, damaged file, missing compiler) reports a failure.
//
// An error carries a code, one sentence, and a chain of contexts that callers add on the way up:
// "resnet50.onnx: node conv1: dims overflow". Bugs inside GE do not use this: they use GE_CHECK
// (base/check.h). No exceptions. The member names follow std::expected.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace ge {

enum class Code {
  kOk = 0,
  kInvalidArgument,    // the caller's input is wrong
  kUnsupported,        // correct input that GE does not handle
  kNotFound,           // a file, a name
  kDataLoss,           // damaged or truncated data
  kResourceExhausted,  // memory, disk, limits
  kUnavailable,        // e.g. no C compiler, no AMX permission
  kInternal,           // a fault of GE that an edge can still report
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Returns this status with "context: " put in front of its message. Ok stays ok.
  Status In(const std::string& context) && {
    if (!ok()) message_ = context + ": " + message_;
    return std::move(*this);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose; not ok
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  Result In(const std::string& context) && {
    if (!ok()) status_ = std::move(status_).In(context);
    return std::move(*this);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status Error(Code code, std::string message) { return Status(code, std::move(message)); }
inline Status Invalid(std::string m) { return Status(Code::kInvalidArgument, std::move(m)); }
inline Status Unsupported(std::string m) { return Status(Code::kUnsupported, std::move(m)); }

}  // namespace ge

// Returns the failure of a Status expression to the caller.
#define GE_TRY(expression)                                                           \
  do {                                                                               \
    if (::ge::Status ge_status_ = (expression); !ge_status_.ok()) return ge_status_; \
  } while (0)

#define GE_CONCAT_INNER(a, b) a##b
#define GE_CONCAT(a, b) GE_CONCAT_INNER(a, b)
// GE_ASSIGN(auto x, F()): x is the value of the Result, or its failure is returned.
#define GE_ASSIGN(declaration, expression) \
  GE_ASSIGN_INNER(GE_CONCAT(ge_result_, __LINE__), declaration, expression)
#define GE_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                            \
  if (!result.ok()) return result.status();              \
  declaration = std::move(result).value()
