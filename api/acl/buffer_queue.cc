// Queues of buffers (acltdt): named, bounded, within this process.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "api/acl/include/acl/acl_tdt_queue.h"
#include "api/acl/waiting_queue.h"

namespace ge::acl {
namespace {

struct Buffer {
  static constexpr int kHandleKind = 23;
  std::vector<char> data, user;
  size_t length = 0;
};

struct QueueAttributes {
  static constexpr int kHandleKind = 24;
  std::string name;
  uint32_t depth = 2;
};

using Buffers = WaitingQueue<std::shared_ptr<Buffer>>;
struct Queues {
  std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<Buffers>> list;
  uint32_t next = 0;
};
Queues& AllQueues() {
  static auto* queues = new Queues;
  return *queues;
}

std::shared_ptr<Buffers> FindQueue(uint32_t id) {
  Queues& queues = AllQueues();
  std::lock_guard lock(queues.mutex);
  const auto it = queues.list.find(id);
  return it == queues.list.end() ? nullptr : it->second;
}

constexpr size_t kMaxQueues = 8192, kMaxName = 127;
constexpr const char* kNoBuffer = "not a live buffer";
constexpr const char* kNoAttributes = "not live queue attributes";

#define ACL_QUEUE(name, id)        \
  const auto name = FindQueue(id); \
  if (!name) ACL_FAIL(ACL_ERROR_INVALID_QUEUE_ID, "no queue has the id " + std::to_string(id))

const char* Why(aclError code) {
  return code == ACL_ERROR_RT_QUEUE_FULL    ? "the queue is full"
         : code == ACL_ERROR_RT_QUEUE_EMPTY ? "the queue is empty"
                                            : "the queue was destroyed";
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL acltdtQueueAttr* acltdtCreateQueueAttr() {
  return static_cast<acltdtQueueAttr*>(
      Live<QueueAttributes>().Add(std::make_shared<QueueAttributes>()));
}
GE_ACL aclError acltdtDestroyQueueAttr(const acltdtQueueAttr* attr) {
  ACL_NEEDS(Live<QueueAttributes>().Remove(attr) != nullptr, kNoAttributes);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtSetQueueAttr(acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                                   const void* param) {
  ACL_NEEDS(param != nullptr, "param is null");
  std::string name;
  uint32_t depth = 0;
  if (type == ACL_TDT_QUEUE_NAME_PTR) {
    const char* text = nullptr;
    ACL_NEEDS(len == sizeof text, "the name is given by a pointer to a pointer");
    std::memcpy(&text, param, sizeof text);
    ACL_NEEDS(text != nullptr && strnlen(text, kMaxName + 1) <= kMaxName,
              "a name has at most 127 characters");
    name = text;
  } else {
    ACL_NEEDS(type == ACL_TDT_QUEUE_DEPTH_UINT32 && len == sizeof depth,
              "unknown type or wrong size of its value");
    std::memcpy(&depth, param, sizeof depth);
    ACL_NEEDS(depth >= 2 && depth <= 8192, "the depth must be 2 to 8192");
  }
  ACL_NEEDS(Live<QueueAttributes>().With(attr,
                                         [&](QueueAttributes& a) {
                                           if (depth != 0) {
                                             a.depth = depth;
                                           } else {
                                             a.name = name;
                                           }
                                         }),
            kNoAttributes);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtGetQueueAttr(const acltdtQueueAttr* attr, acltdtQueueAttrType type,
                                   size_t len, size_t* paramRetSize, void* param) {
  ACL_NEEDS(param != nullptr && paramRetSize != nullptr, "a null pointer");
  const auto found = Live<QueueAttributes>().Get(attr);
  ACL_NEEDS(found != nullptr, kNoAttributes);
  if (type == ACL_TDT_QUEUE_NAME_PTR) {
    const char* text = found->name.c_str();  // lives as long as the attributes
    ACL_NEEDS(len >= sizeof text, "len is below 8");
    std::memcpy(param, &text, sizeof text);
    *paramRetSize = sizeof text;
  } else {
    ACL_NEEDS(type == ACL_TDT_QUEUE_DEPTH_UINT32 && len >= sizeof found->depth,
              "unknown type, or len is below 4");
    std::memcpy(param, &found->depth, sizeof found->depth);
    *paramRetSize = sizeof found->depth;
  }
  return ACL_SUCCESS;
}

GE_ACL aclError acltdtCreateQueue(const acltdtQueueAttr* attr, uint32_t* qid) {
  ACL_NEEDS(qid != nullptr, "qid is null");
  uint32_t depth = 0;
  ACL_NEEDS(Live<QueueAttributes>().With(attr, [&](QueueAttributes& a) { depth = a.depth; }),
            kNoAttributes);
  if (!CurrentContext()) ACL_FAIL(ACL_ERROR_RT_CONTEXT_NULL, kNoContext);
  Queues& queues = AllQueues();
  std::lock_guard lock(queues.mutex);
  if (queues.list.size() >= kMaxQueues) ACL_FAIL(ACL_ERROR_STORAGE_OVER_LIMIT, "8192 queues");
  *qid = queues.next++;
  queues.list[*qid] = std::make_shared<Buffers>(depth);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtDestroyQueue(uint32_t qid) {
  ACL_QUEUE(queue, qid);
  {
    Queues& queues = AllQueues();
    std::lock_guard lock(queues.mutex);
    queues.list.erase(qid);
  }
  queue->Stop();
  queue->Clear();
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtEnqueue(uint32_t qid, acltdtBuf buf, int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  ACL_QUEUE(queue, qid);
  const auto buffer = Live<Buffer>().Get(buf);
  ACL_NEEDS(buffer != nullptr, kNoBuffer);
  if (aclError code = queue->Put(buffer, timeout)) ACL_FAIL(code, Why(code));
  Live<Buffer>().Remove(buf);  // the queue's from now on
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtDequeue(uint32_t qid, acltdtBuf* buf, int32_t timeout) {
  ACL_NEEDS(buf != nullptr && timeout >= -1, "buf is null, or timeout is below -1");
  ACL_QUEUE(queue, qid);
  std::shared_ptr<Buffer> buffer;
  if (aclError code = queue->Take(&buffer, timeout)) ACL_FAIL(code, Why(code));
  *buf = Live<Buffer>().Add(std::move(buffer));
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtEnqueueData(uint32_t qid, const void* data, size_t dataSize,
                                  const void* userData, size_t userDataSize, int32_t timeout,
                                  uint32_t) {
  ACL_NEEDS(data != nullptr && dataSize > 0 && timeout >= -1,
            "data is empty, or timeout is below -1");
  ACL_NEEDS(userData != nullptr || userDataSize == 0, "userData is null");
  ACL_QUEUE(queue, qid);
  auto buffer = std::make_shared<Buffer>();
  const auto* bytes = static_cast<const char*>(data);
  const auto* user = static_cast<const char*>(userData);
  buffer->data.assign(bytes, bytes + dataSize);
  buffer->user.assign(user, user + userDataSize);
  buffer->length = dataSize;
  if (aclError code = queue->Put(std::move(buffer), timeout)) ACL_FAIL(code, Why(code));
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                                  void* userData, size_t userDataSize, int32_t timeout) {
  ACL_NEEDS(data != nullptr && dataSize > 0 && retDataSize != nullptr && timeout >= -1,
            "a null pointer, size 0, or timeout is below -1");
  ACL_NEEDS(userData != nullptr || userDataSize == 0, "userData is null");
  ACL_QUEUE(queue, qid);
  std::shared_ptr<Buffer> buffer;
  if (aclError code = queue->Take(&buffer, timeout)) ACL_FAIL(code, Why(code));
  ACL_NEEDS(buffer->length <= dataSize && buffer->user.size() <= userDataSize,
            "the data is larger than the memory given");
  std::memcpy(data, buffer->data.data(), buffer->length);
  if (!buffer->user.empty()) std::memcpy(userData, buffer->user.data(), buffer->user.size());
  *retDataSize = buffer->length;
  return ACL_SUCCESS;
}
// Within one process everybody may do everything.
GE_ACL aclError acltdtGrantQueue(uint32_t qid, int32_t pid, uint32_t permission, int32_t) {
  ACL_QUEUE(queue, qid);
  ACL_NEEDS(permission != 0 && permission < 8, "unknown permission");
  ACL_NEEDS(pid > 0, "no such process");
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtAttachQueue(uint32_t qid, int32_t, uint32_t* permission) {
  ACL_NEEDS(permission != nullptr, "permission is null");
  ACL_QUEUE(queue, qid);
  *permission = ACL_TDT_QUEUE_PERMISSION_MANAGE | ACL_TDT_QUEUE_PERMISSION_DEQUEUE |
                ACL_TDT_QUEUE_PERMISSION_ENQUEUE;
  return ACL_SUCCESS;
}

GE_ACL aclError acltdtAllocBuf(size_t size, uint32_t type, acltdtBuf* buf) {
  ACL_NEEDS(buf != nullptr && size > 0 && type <= 1, "buf is null, size 0, or unknown type");
  if (size > size_t{1} << 32) ACL_FAIL(ACL_ERROR_BAD_ALLOC, "a buffer has at most 4 GB");
  auto buffer = std::make_shared<Buffer>();
  buffer->data.resize(size);
  buffer->length = size;
  *buf = Live<Buffer>().Add(std::move(buffer));
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtFreeBuf(acltdtBuf buf) {
  ACL_NEEDS(Live<Buffer>().Remove(buf) != nullptr, kNoBuffer);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtGetBufData(const acltdtBuf buf, void** dataPtr, size_t* size) {
  ACL_NEEDS(dataPtr != nullptr && size != nullptr, "a null pointer");
  ACL_NEEDS(Live<Buffer>().With(buf,
                                [&](Buffer& b) {
                                  *dataPtr = b.data.data();
                                  *size = b.data.size();
                                }),
            kNoBuffer);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtSetBufDataLen(acltdtBuf buf, size_t len) {
  bool fits = false;
  ACL_NEEDS(Live<Buffer>().With(buf,
                                [&](Buffer& b) {
                                  fits = len > 0 && len <= b.data.size();
                                  if (fits) b.length = len;
                                }),
            kNoBuffer);
  ACL_NEEDS(fits, "len is 0 or above the buffer's size");
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtGetBufDataLen(acltdtBuf buf, size_t* len) {
  ACL_NEEDS(len != nullptr, "len is null");
  ACL_NEEDS(Live<Buffer>().With(buf, [&](Buffer& b) { *len = b.length; }), kNoBuffer);
  return ACL_SUCCESS;
}
