// Channels of tensors (acltdt): a dataset that is sent is copied, and received as items of its own.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/acl/context.h"
#include "api/acl/error.h"
#include "api/acl/include/acl/acl_tdt.h"
#include "api/acl/waiting_queue.h"

namespace ge::acl {
namespace {

struct DataItem {
  static constexpr int kHandleKind = 20;
  acltdtTensorType kind = ACL_TENSOR_DATA_UNDEFINED;
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<int64_t> dims;
  void* data = nullptr;
  size_t bytes = 0;
  std::vector<char> own;  // of a received item
};

struct ChannelDataset {
  static constexpr int kHandleKind = 21;
  std::vector<void*> items;     // handles
  std::vector<void*> received;  // those of them that the dataset has made
  std::string name;
};

using Message = std::vector<std::shared_ptr<DataItem>>;

// Channels of one name have one queue while any of them lives.
struct Channel {
  static constexpr int kHandleKind = 22;
  std::string name;
  std::shared_ptr<WaitingQueue<Message>> queue;
};

struct Names {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<WaitingQueue<Message>>> queues;
};
Names& AllNames() {
  static auto* names = new Names;
  return *names;
}

constexpr size_t kUnbounded = size_t{1} << 20, kMinCapacity = 2, kMaxCapacity = 8192;
constexpr const char* kNoItem = "not a live data item";
constexpr const char* kNoDataset = "not a live dataset of a channel";
constexpr const char* kNoChannel = "not a live channel";

acltdtChannelHandle* MakeChannel(uint32_t device, const char* name, size_t capacity,
                                 const char* function) {
  if (name == nullptr || name[0] == 0 || std::strlen(name) > 127) {
    Fail(ACL_ERROR_INVALID_PARAM, function, "a name has 1 to 127 characters");
    return nullptr;
  }
  if (!Initialized() || device >= static_cast<uint32_t>(DeviceCount())) {
    Fail(ACL_ERROR_INVALID_DEVICE, function, "aclInit was not called, or no such device");
    return nullptr;
  }
  auto channel = std::make_shared<Channel>();
  channel->name = name;
  Names& names = AllNames();
  std::lock_guard lock(names.mutex);
  std::erase_if(names.queues, [](const auto& entry) { return entry.second.expired(); });
  channel->queue = names.queues[name].lock();
  if (!channel->queue) {
    channel->queue = std::make_shared<WaitingQueue<Message>>(capacity);
    names.queues[name] = channel->queue;
  }
  return static_cast<acltdtChannelHandle*>(Live<Channel>().Add(std::move(channel)));
}

void Forget(ChannelDataset* dataset) {
  for (void* item : dataset->received) Live<DataItem>().Remove(item);
  dataset->received.clear();
  dataset->items.clear();
}

template <class T>
T OfItem(const acltdtDataItem* item, T none, T DataItem::* member, const char* function) {
  if (!Live<DataItem>().With(item, [&](DataItem& i) { none = i.*member; }))
    Fail(ACL_ERROR_INVALID_PARAM, function, kNoItem);
  return none;
}

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims,
                                            size_t dimNum, aclDataType dataType, void* data,
                                            size_t size) {
  const bool tensor = tdtType == ACL_TENSOR_DATA_TENSOR ||
                      tdtType == ACL_TENSOR_DATA_SLICE_TENSOR ||
                      tdtType == ACL_TENSOR_DATA_END_TENSOR;
  if ((!tensor && tdtType != ACL_TENSOR_DATA_END_OF_SEQUENCE &&
       tdtType != ACL_TENSOR_DATA_ABNORMAL) ||
      (dims == nullptr) != (dimNum == 0) || dimNum > ACL_MAX_DIM_CNT ||
      (size > 0 && data == nullptr)) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__,
         "unknown type, dims without their number, or size without data");
    return nullptr;
  }
  auto item = std::make_shared<DataItem>();
  item->kind = tdtType;
  item->dtype = dataType;
  item->dims.assign(dims, dims + dimNum);
  item->data = data;
  item->bytes = size;
  return static_cast<acltdtDataItem*>(Live<DataItem>().Add(std::move(item)));
}
GE_ACL aclError acltdtDestroyDataItem(acltdtDataItem* dataItem) {
  ACL_NEEDS(Live<DataItem>().Remove(dataItem) != nullptr, kNoItem);
  return ACL_SUCCESS;
}
GE_ACL acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem) {
  return OfItem(dataItem, ACL_TENSOR_DATA_UNDEFINED, &DataItem::kind, __func__);
}
GE_ACL aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) {
  return OfItem(dataItem, ACL_DT_UNDEFINED, &DataItem::dtype, __func__);
}
GE_ACL void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) {
  return OfItem<void*>(dataItem, nullptr, &DataItem::data, __func__);
}
GE_ACL size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) {
  return OfItem<size_t>(dataItem, 0, &DataItem::bytes, __func__);
}
GE_ACL size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) {
  size_t count = 0;
  if (!Live<DataItem>().With(dataItem, [&](DataItem& i) { count = i.dims.size(); }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoItem);
  return count;
}
GE_ACL aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims,
                                      size_t dimNum) {
  std::vector<int64_t> found;
  ACL_NEEDS(Live<DataItem>().With(dataItem, [&](DataItem& i) { found = i.dims; }), kNoItem);
  ACL_NEEDS(dimNum >= found.size(), "dimNum is below the item's number of dims");
  ACL_NEEDS(dims != nullptr || found.empty(), "dims is null");
  std::copy(found.begin(), found.end(), dims);
  return ACL_SUCCESS;
}
// Tensors are never sliced here.
GE_ACL aclError acltdtGetSliceInfoFromItem(const acltdtDataItem* dataItem, size_t* sliceNum,
                                           size_t* sliceId) {
  ACL_NEEDS(sliceNum != nullptr && sliceId != nullptr, "a null pointer");
  ACL_NEEDS(Live<DataItem>().Get(dataItem) != nullptr, kNoItem);
  *sliceNum = *sliceId = 0;
  return ACL_SUCCESS;
}

GE_ACL acltdtDataset* acltdtCreateDataset() {
  return static_cast<acltdtDataset*>(
      Live<ChannelDataset>().Add(std::make_shared<ChannelDataset>()));
}
GE_ACL aclError acltdtDestroyDataset(acltdtDataset* dataset) {
  const auto found = Live<ChannelDataset>().Remove(dataset);
  ACL_NEEDS(found != nullptr, kNoDataset);
  Forget(found.get());
  return ACL_SUCCESS;
}
GE_ACL acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) {
  void* item = nullptr;
  if (!Live<ChannelDataset>().With(dataset, [&](ChannelDataset& d) {
        if (index < d.items.size()) item = d.items[index];
      }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoDataset);
  return static_cast<acltdtDataItem*>(item);
}
GE_ACL aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem) {
  ACL_NEEDS(Live<DataItem>().Get(dataItem) != nullptr, kNoItem);
  bool mixed = false;
  ACL_NEEDS(Live<ChannelDataset>().With(dataset,
                                        [&](ChannelDataset& d) {
                                          mixed = !d.received.empty();
                                          if (!mixed) d.items.push_back(dataItem);
                                        }),
            kNoDataset);
  ACL_NEEDS(!mixed, "the dataset holds received items");
  return ACL_SUCCESS;
}
GE_ACL size_t acltdtGetDatasetSize(const acltdtDataset* dataset) {
  size_t size = 0;
  if (!Live<ChannelDataset>().With(dataset, [&](ChannelDataset& d) { size = d.items.size(); }))
    Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoDataset);
  return size;
}
GE_ACL const char* acltdtGetDatasetName(const acltdtDataset* dataset) {
  const auto found = Live<ChannelDataset>().Get(dataset);
  if (!found) Fail(ACL_ERROR_INVALID_PARAM, __func__, kNoDataset);
  return found ? found->name.c_str() : nullptr;
}

GE_ACL acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name) {
  return MakeChannel(deviceId, name, kUnbounded, __func__);
}
GE_ACL acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                            size_t capacity) {
  if (capacity < kMinCapacity || capacity > kMaxCapacity) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "capacity must be 2 to 8192");
    return nullptr;
  }
  return MakeChannel(deviceId, name, capacity, __func__);
}
GE_ACL aclError acltdtStopChannel(acltdtChannelHandle* handle) {
  const auto channel = Live<Channel>().Get(handle);
  ACL_NEEDS(channel != nullptr, kNoChannel);
  channel->queue->Stop();
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtDestroyChannel(acltdtChannelHandle* handle) {
  ACL_NEEDS(Live<Channel>().Remove(handle) != nullptr, kNoChannel);
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtCleanChannel(acltdtChannelHandle* handle) {
  const auto channel = Live<Channel>().Get(handle);
  ACL_NEEDS(channel != nullptr, kNoChannel);
  channel->queue->Clear();
  return ACL_SUCCESS;
}
GE_ACL aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size) {
  ACL_NEEDS(size != nullptr, "size is null");
  const auto channel = Live<Channel>().Get(handle);
  ACL_NEEDS(channel != nullptr, kNoChannel);
  *size = channel->queue->size();
  return ACL_SUCCESS;
}

GE_ACL aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                                 int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  const auto channel = Live<Channel>().Get(handle);
  ACL_NEEDS(channel != nullptr, kNoChannel);
  std::vector<void*> items;
  ACL_NEEDS(Live<ChannelDataset>().With(dataset, [&](ChannelDataset& d) { items = d.items; }),
            kNoDataset);
  Message message;
  for (const void* item : items) {
    const auto from = Live<DataItem>().Get(item);
    ACL_NEEDS(from != nullptr, "an item of the dataset is gone");
    auto copy = std::make_shared<DataItem>(*from);
    const auto* bytes = static_cast<const char*>(from->data);
    copy->own.assign(bytes, bytes + from->bytes);
    copy->data = copy->own.data();
    message.push_back(std::move(copy));
  }
  if (aclError code = channel->queue->Put(std::move(message), timeout))
    ACL_FAIL(code, code == ACL_ERROR_RT_QUEUE_FULL ? "the channel is full" : "it was stopped");
  return ACL_SUCCESS;
}

GE_ACL aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                                    int32_t timeout) {
  ACL_NEEDS(timeout >= -1, "timeout is below -1");
  const auto channel = Live<Channel>().Get(handle);
  ACL_NEEDS(channel != nullptr, kNoChannel);
  const auto found = Live<ChannelDataset>().Get(dataset);
  ACL_NEEDS(found != nullptr, kNoDataset);
  Message message;
  if (aclError code = channel->queue->Take(&message, timeout))
    ACL_FAIL(code, code == ACL_ERROR_RT_QUEUE_EMPTY ? "the channel is empty" : "it was stopped");
  std::vector<void*> handles;
  for (auto& item : message) handles.push_back(Live<DataItem>().Add(std::move(item)));
  const bool kept = Live<ChannelDataset>().With(dataset, [&](ChannelDataset& d) {
    d.received.swap(handles);  // handles: what it had received before
    d.items = d.received;
    d.name = channel->name;
  });
  for (void* old : handles) Live<DataItem>().Remove(old);
  ACL_NEEDS(kept, kNoDataset);
  return ACL_SUCCESS;
}
