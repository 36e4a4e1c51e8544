// Devices and contexts: which device a thread works on, and who owns its streams.
//
// A device exists while it is set (counted); its primary context is made by the first SetDevice. A
// thread has one current context or none. A context's streams die with it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "api/acl/handles.h"

namespace ge::acl {

class Stream;

struct Context {
  static constexpr int kHandleKind = 1;
  int device = 0;
  bool primary = false;
  void* handle = nullptr;
  std::mutex mutex;
  std::shared_ptr<Stream> default_stream;  // made on first use
  std::vector<std::weak_ptr<Stream>> streams;
  std::map<int, int64_t> options;
};

inline constexpr const char* kNoContext =
    "the thread has no current context: call aclrtSetDevice or aclrtSetCurrentContext first";

inline constexpr const char* kOptionValue =
    "the value must be 0 or 1 (ACL_OPT_DETERMINISTIC: 0, 1 or 2)";

std::shared_ptr<Context> CurrentContext();
int DeviceCount();
bool Initialized();
// The stream of a handle; for null the current context's default stream. Null: dead handle or no
// context; then *code says which.
std::shared_ptr<Stream> StreamOf(const void* handle, int* code);
// All streams of a context, or of all contexts of a device.
std::vector<std::shared_ptr<Stream>> StreamsOf(Context& context);

}  // namespace ge::acl
