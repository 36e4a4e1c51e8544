// Random calls of channels, queues, profiling and operands: see fuzz.cc.
#include "api/acl/include/acl/acl_prof.h"
#include "api/acl/include/acl/acl_tdt.h"
#include "api/acl/include/acl/acl_tdt_queue.h"
#include "api/acl/include/aclnn/acl_meta.h"
#include "tests/acl/fuzz_pool.h"

namespace {

Pool channels([](void* h) { acltdtDestroyChannel(As<acltdtChannelHandle>(h)); });
Pool items([](void* h) { acltdtDestroyDataItem(As<acltdtDataItem>(h)); });
Pool item_sets([](void* h) { acltdtDestroyDataset(As<acltdtDataset>(h)); });
Pool queue_buffers([](void* h) { acltdtFreeBuf(h); });
Pool stamps([](void* h) { aclprofDestroyStamp(h); });
Pool profiles([](void* h) { aclprofDestroyConfig(As<aclprofConfig>(h)); });
Pool operands([](void* h) { aclDestroyTensor(As<aclTensor>(h)); });

}  // namespace

aclError QueueStep(Rng& rng) {
  static float host[16] = {};
  auto* channel = As<acltdtChannelHandle>(channels.Pick(rng));
  auto* item = As<acltdtDataItem>(items.Pick(rng));
  auto* set = As<acltdtDataset>(item_sets.Pick(rng));
  void* buffer = queue_buffers.Pick(rng);
  const auto queue = static_cast<uint32_t>(rng() % 12);
  const int64_t dims[2] = {static_cast<int64_t>(rng() % 3) - 1, 4};
  size_t size = 0;
  void* made = nullptr;
  aclError code = ACL_SUCCESS;
  switch (rng() % 18) {
    case 0: channels.Put(acltdtCreateChannelWithCapacity(rng() % 2, "c", rng() % 4)); return code;
    case 1: channels.Put(acltdtCreateChannel(0, rng() % 8 ? "d" : nullptr)); return code;
    case 2: return rng() % 4 ? code : acltdtDestroyChannel(channel);
    case 3: return rng() % 8 ? acltdtCleanChannel(channel) : acltdtStopChannel(channel);
    case 4:
      return acltdtSendTensor(channel, set,
                              static_cast<int32_t>(rng() % 3) - (rng() % 16 == 0 ? 3 : 0));
    case 5: return acltdtReceiveTensor(channel, set, static_cast<int32_t>(rng() % 2));
    case 6: return acltdtQueryChannelSize(channel, rng() % 8 ? &size : nullptr);
    case 7:
      items.Put(acltdtCreateDataItem(static_cast<acltdtTensorType>(rng() % 7), dims, rng() % 3,
                                     ACL_FLOAT, rng() % 8 ? host : nullptr, rng() % sizeof host));
      return code;
    case 8: return rng() % 4 ? code : acltdtDestroyDataItem(item);
    case 9: item_sets.Put(acltdtCreateDataset()); return acltdtAddDataItem(set, item);
    case 10: {
      const acltdtDataItem* got = acltdtGetDataItem(set, rng() % 3);
      int64_t found[4];
      acltdtGetDataTypeFromItem(got);
      return acltdtGetDimsFromItem(got, found, rng() % 4);
    }
    case 11: return rng() % 4 ? code : acltdtDestroyDataset(set);
    case 12: {
      acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
      const uint32_t depth = rng() % 4;
      acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, rng() % 8 ? 4 : 3, &depth);
      uint32_t id = 0;
      if (rng() % 8 == 0) code = acltdtCreateQueue(attributes, &id);
      acltdtDestroyQueueAttr(attributes);
      return code;
    }
    case 13: return rng() % 16 ? code : acltdtDestroyQueue(queue);
    case 14:
      code = acltdtAllocBuf(rng() % 3 ? 64 : 100000, 0, rng() % 8 ? &made : nullptr);
      queue_buffers.Put(made);
      return code;
    case 15: return acltdtEnqueue(queue, buffer, static_cast<int32_t>(rng() % 2));
    case 16:
      code = acltdtDequeue(queue, &made, static_cast<int32_t>(rng() % 2));
      queue_buffers.Put(made);
      return code;
    default: return rng() % 2 ? acltdtSetBufDataLen(buffer, rng() % 100) : acltdtFreeBuf(buffer);
  }
}

aclError ProfileStep(Rng& rng) {
  void* stamp = stamps.Pick(rng);
  auto* config = As<aclprofConfig>(profiles.Pick(rng));
  uint32_t range = static_cast<uint32_t>(rng() % 8);
  switch (rng() % 12) {
    case 0: return aclprofInit("profile_of_fuzz", rng() % 8 ? 15 : 0);
    case 1: return rng() % 32 ? ACL_SUCCESS : aclprofFinalize();
    case 2: {
      uint32_t device = rng() % 3;
      profiles.Put(aclprofCreateConfig(&device, rng() % 2, ACL_AICORE_NONE, nullptr, 1));
      return ACL_SUCCESS;
    }
    case 3: return aclprofStart(config);
    case 4: return aclprofStop(config);
    case 5: stamps.Put(aclprofCreateStamp()); return ACL_SUCCESS;
    case 6: return aclprofSetStampTraceMessage(stamp, "text", rng() % 6);
    case 7: return rng() % 2 ? aclprofPush(stamp) : aclprofPop();
    case 8: return aclprofMark(stamp);
    case 9: return rng() % 2 ? aclprofRangeStart(stamp, &range) : aclprofRangeStop(range);
    case 10: {
      const int64_t dims[2] = {static_cast<int64_t>(rng() % 3) - 1, INT64_MAX};
      operands.Put(aclCreateTensor(dims, rng() % 3, ACL_FLOAT, rng() % 2 ? dims : nullptr, 0,
                                   ACL_FORMAT_ND, dims, rng() % 2, nullptr));
      return ACL_SUCCESS;
    }
    default: {
      auto* tensor = As<aclTensor>(operands.Pick(rng));
      aclDataType type;
      return rng() % 4 ? aclGetDataType(tensor, &type) : aclDestroyTensor(tensor);
    }
  }
}

namespace {

void* TakeMemory(void*, size_t bytes) {
  void* memory = nullptr;
  aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  return memory;
}
void GiveMemory(void*, void* memory) { aclrtFree(memory); }
void* AddressOf(void* memory) { return memory; }

aclError Allocate(Rng& rng, void* stream) {
  static int object = 0;
  if (rng() % 4 == 0) return aclrtAllocatorUnregister(stream);
  aclrtAllocatorDesc desc = aclrtAllocatorCreateDesc();
  aclrtAllocatorSetObjToDesc(desc, rng() % 8 ? &object : nullptr);
  aclrtAllocatorSetAllocFuncToDesc(desc, TakeMemory);
  aclrtAllocatorSetFreeFuncToDesc(desc, GiveMemory);
  aclrtAllocatorSetGetAddrFromBlockFuncToDesc(desc, rng() % 8 ? AddressOf : nullptr);
  const aclError code = aclrtAllocatorRegister(stream, desc);
  aclrtAllocatorDestroyDesc(desc);
  return code;
}

}  // namespace

// Never backward, and streams start only such as stand lower: no client waits for its own circle.
aclError JumpStep(Rng& rng, void* stream, void* other, void* memory) {
  const bool down = reinterpret_cast<uintptr_t>(other) < reinterpret_cast<uintptr_t>(stream);
  aclrtLabel labels[2] = {};
  aclrtLabelList list = nullptr;
  switch (rng() % 4) {
    case 0: return down ? aclrtActiveStream(other, stream) : ACL_SUCCESS;
    case 1:
      return down ? aclrtSwitchStream(memory, static_cast<aclrtCondition>(rng() % 7), memory,
                                      ACL_RT_SWITCH_INT64, other, nullptr, stream)
                  : ACL_SUCCESS;
    case 2: return Allocate(rng, stream);
    default: break;
  }
  for (aclrtLabel& label : labels) aclrtCreateLabel(&label);
  aclrtCreateLabelList(labels, rng() % 8 ? 2 : 0, &list);
  const aclError code =
      aclrtSwitchLabelByIndex(memory, static_cast<uint32_t>(1 + rng() % 3), list, stream);
  for (aclrtLabel label : labels)
    if (rng() % 8) aclrtSetLabel(label, stream);
  for (aclrtLabel label : labels) aclrtDestroyLabel(label);
  aclrtDestroyLabelList(list);
  return code;
}

void ReleaseQueueHandles() {
  for (Pool* pool : {&channels, &items, &item_sets, &queue_buffers, &stamps, &profiles, &operands})
    pool->ReleaseAll();
}
