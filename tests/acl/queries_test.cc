// What models tell of themselves: image preprocessing; subscriptions of profiling; configurations
// of dumps, right and wrong. GE_ACL_MODEL's folder holds the models that run_clients compiles.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "api/acl/include/acl/acl.h"
#include "api/acl/include/acl/acl_dump.h"
#include "api/acl/include/acl/acl_prof.h"
#include "tests/acl/device_test.h"

namespace {

std::string Beside(const std::string& name) {
  const char* model = std::getenv("GE_ACL_MODEL");
  return model == nullptr ? "" : std::filesystem::path(model).parent_path() / name;
}

class AclQueries : public DeviceTest {
 protected:
  void SetUp() override {
    if (std::getenv("GE_ACL_MODEL") == nullptr) GTEST_SKIP() << "GE_ACL_MODEL is not set";
    DeviceTest::SetUp();
  }
  void TearDown() override {
    if (std::getenv("GE_ACL_MODEL") == nullptr) return;
    DeviceTest::TearDown();
  }
  static uint32_t Load(const std::string& name) {
    uint32_t id = 0;
    EXPECT_EQ(aclmdlLoadFromFile(Beside(name).c_str(), &id), ACL_SUCCESS);
    return id;
  }
};

TEST_F(AclQueries, StaticAipp) {
  const uint32_t model = Load("static_aipp.om");
  aclmdlInputAippType type = ACL_DATA_WITHOUT_AIPP;
  size_t attached = 0;
  EXPECT_EQ(aclmdlGetAippType(model, 0, &type, &attached), ACL_SUCCESS);
  EXPECT_EQ(type, ACL_DATA_WITH_STATIC_AIPP);
  EXPECT_EQ(attached, ACL_INVALID_NODE_INDEX);
  auto info = std::make_unique<aclAippInfo>();
  ASSERT_EQ(aclmdlGetFirstAippInfo(model, 0, info.get()), ACL_SUCCESS);
  EXPECT_EQ(info->inputFormat, ACL_RGB888_U8);
  EXPECT_EQ(info->srcImageSizeW, 32);
  EXPECT_EQ(info->srcImageSizeH, 32);
  EXPECT_EQ(info->cropSwitch, 0);
  EXPECT_EQ(info->meanChn0, 127);
  EXPECT_EQ(info->meanChn2, 127);
  EXPECT_EQ(info->meanChn3, 0);
  EXPECT_FLOAT_EQ(info->varReciChn1, 0.0078125f);
  EXPECT_FLOAT_EQ(info->varReciChn3, 1.0f);
  EXPECT_EQ(info->srcFormat, ACL_FORMAT_NCHW);
  EXPECT_EQ(info->srcDatatype, ACL_FLOAT);
  EXPECT_EQ(info->srcDimNum, 4u);
  ASSERT_EQ(info->shapeCount, 1u);
  EXPECT_EQ(info->outDims[0].srcSize, 3072u);
  EXPECT_EQ(info->outDims[0].srcDims.dims[3], 3);
  EXPECT_EQ(info->outDims[0].aippOutSize, 3072u * 4);
  EXPECT_EQ(info->outDims[0].aippOutdims.dims[1], 3);
  EXPECT_EQ(aclmdlGetFirstAippInfo(model, 1, info.get()), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlGetFirstAippInfo(model, 0, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclmdlUnload(model), ACL_SUCCESS);
  EXPECT_EQ(aclmdlGetFirstAippInfo(model, 0, info.get()),
            static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID));
}

TEST_F(AclQueries, DynamicAippAndNone) {
  const uint32_t dynamic = Load("dynamic_aipp.om"), plain = Load("small.om");
  auto info = std::make_unique<aclAippInfo>();
  EXPECT_EQ(aclmdlGetFirstAippInfo(dynamic, 0, info.get()), ACL_ERROR_NOT_STATIC_AIPP);
  EXPECT_EQ(aclmdlGetFirstAippInfo(plain, 0, info.get()), ACL_ERROR_NOT_STATIC_AIPP);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("input 0"), std::string::npos);
  aclmdlInputAippType type = ACL_DATA_WITHOUT_AIPP;
  size_t attached = 0;
  EXPECT_EQ(aclmdlGetAippType(dynamic, 0, &type, &attached), ACL_SUCCESS);
  EXPECT_EQ(type, ACL_DATA_WITH_DYNAMIC_AIPP);
  EXPECT_EQ(attached, 1u);
  EXPECT_EQ(aclmdlGetAippType(dynamic, 1, &type, &attached), ACL_SUCCESS);
  EXPECT_EQ(type, ACL_DYNAMIC_AIPP_NODE);
  EXPECT_EQ(aclmdlGetAippType(plain, 0, &type, &attached), ACL_SUCCESS);
  EXPECT_EQ(type, ACL_DATA_WITHOUT_AIPP);
}

TEST_F(AclQueries, SubscriptionsAreCheckedAndSurviveTheirReader) {
  const uint32_t model = Load("small.om");
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, nullptr), nullptr);
  EXPECT_EQ(aclprofCreateSubscribeConfig(2, ACL_AICORE_NONE, &ends[1]), nullptr);
  auto* config = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, &ends[1]);
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(aclprofModelSubscribe(model + 100, config), ACL_ERROR_INVALID_MODEL_ID);
  EXPECT_EQ(aclprofModelUnSubscribe(model), ACL_ERROR_INVALID_MODEL_ID);
  EXPECT_EQ(aclprofModelSubscribe(model, config), ACL_SUCCESS);
  EXPECT_EQ(aclprofModelSubscribe(model, config), ACL_ERROR_PROF_REPEAT_SUBSCRIBE);
  EXPECT_EQ(aclprofInit("/tmp", 4), ACL_ERROR_PROF_API_CONFLICT);
  close(ends[0]);  // nobody reads: the run goes on, and no signal ends the process
  aclmdlDesc* desc = aclmdlCreateDesc();
  ASSERT_EQ(aclmdlGetDesc(desc, model), ACL_SUCCESS);
  aclmdlDataset *in = aclmdlCreateDataset(), *out = aclmdlCreateDataset();
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(aclrtMalloc(&x, aclmdlGetInputSizeByIndex(desc, 0), ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMalloc(&y, aclmdlGetOutputSizeByIndex(desc, 0), ACL_MEM_MALLOC_HUGE_FIRST), 0);
  aclDataBuffer* buffers[] = {aclCreateDataBuffer(x, aclmdlGetInputSizeByIndex(desc, 0)),
                              aclCreateDataBuffer(y, aclmdlGetOutputSizeByIndex(desc, 0))};
  ASSERT_EQ(aclmdlAddDatasetBuffer(in, buffers[0]), ACL_SUCCESS);
  ASSERT_EQ(aclmdlAddDatasetBuffer(out, buffers[1]), ACL_SUCCESS);
  EXPECT_EQ(aclmdlExecute(model, in, out), ACL_SUCCESS);
  EXPECT_EQ(aclmdlUnload(model), ACL_SUCCESS);  // takes its subscription along
  EXPECT_EQ(aclprofModelUnSubscribe(model), ACL_ERROR_INVALID_MODEL_ID);
  EXPECT_EQ(aclprofDestroySubscribeConfig(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroySubscribeConfig(config), ACL_ERROR_INVALID_PARAM);
  close(ends[1]);
  for (aclDataBuffer* b : buffers) EXPECT_EQ(aclDestroyDataBuffer(b), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDataset(in), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDataset(out), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(x), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(y), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDesc(desc), ACL_SUCCESS);
}

TEST_F(AclQueries, RecordsThatAreMadeUp) {
  size_t size = 0, length = 0;
  ASSERT_EQ(aclprofGetOpDescSize(&size), ACL_SUCCESS);
  std::string made(size * 2, '\x7f');
  uint32_t count = 0;
  EXPECT_EQ(aclprofGetOpNum(made.data(), made.size(), &count), ACL_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(aclprofGetOpNum(made.data(), size + 1, &count), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofGetOpNameLen(made.data(), made.size(), 0, &length), ACL_ERROR_INVALID_PARAM);
  char text[64];
  EXPECT_EQ(aclprofGetOpType(made.data(), made.size(), 0, text, 64), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofGetOpName(made.data(), made.size(), 5, text, 64), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofGetOpDuration(made.data(), made.size(), 1), 0u);
  EXPECT_EQ(aclprofGetModelId(nullptr, 0, 0), 0u);
  EXPECT_EQ(aclprofGetOpFlag(made.data(), made.size(), 0), ACL_SUBSCRIBE_NONE);
}

TEST_F(AclQueries, StepsInTheOrderOfAStream) {
  aclprofStepInfo* step = aclprofCreateStepInfo();
  EXPECT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclprofGetStepTimestamp(step, static_cast<aclprofStepTag>(7), nullptr),
            ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtSynchronizeDevice(), ACL_SUCCESS);
  aclprofDestroyStepInfo(step);
  EXPECT_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(AclQueries, DumpConfigurations) {
  const std::string file = Scratch("acl_dump.json");
  const auto set = [&](const std::string& text) {
    std::ofstream(file) << "{\"dump\": {" << text << "}}";
    return aclmdlSetDump(file.c_str());
  };
  const std::string path = "\"dump_path\": \"" + Scratch("acl_dump") + "\", ";
  EXPECT_EQ(set(path + "\"dump_list\": [{}]"), ACL_ERROR_DUMP_NOT_RUN);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_ERROR_DUMP_NOT_RUN);
  ASSERT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  EXPECT_EQ(aclmdlInitDump(), ACL_ERROR_DUMP_ALREADY_RUN);
  EXPECT_EQ(aclmdlSetDump("/nowhere/dump.json"), ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(set(path + "\"dump_list\": [{\"model_name\": \"m\"}], \"dump_mode\": \"all\""), 0);
  EXPECT_EQ(std::string(acldumpGetPath(DATA_DUMP)), Scratch("acl_dump"));
  EXPECT_EQ(set(path + "\"dump_list\": [], \"dump_op_switch\": \"on\""), ACL_SUCCESS);
  EXPECT_EQ(set("\"dump_scene\": \"lite_exception\""), ACL_SUCCESS);
  for (const std::string& wrong :
       {path + "\"dump_mode\": \"everything\"", path + "\"dump_data\": \"sums\"",
        path + "\"dump_level\": \"top\"", path + "\"dump_op_switch\": \"maybe\"",
        path + "\"dump_list\": {}", path + "\"dump_list\": [3]",
        path + "\"dump_list\": [{\"layer\": [\"a\"]}]",
        path + "\"dump_list\": [{}], \"dump_step\": \"3-1\"",
        path + "\"dump_list\": [{}], \"dump_step\": \"x\"", std::string("\"dump_list\": [{}]"),
        std::string("\"dump_path\": \"/proc/nothing/here\", \"dump_list\": [{}]"),
        path + "\"dump_scene\": \"other\"",
        path + "\"dump_scene\": \"lite_exception\", \"dump_list\": [{}]"})
    EXPECT_EQ(set(wrong), ACL_ERROR_INVALID_DUMP_CONFIG) << wrong;
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  EXPECT_EQ(acldumpGetPath(DATA_DUMP), nullptr);
  EXPECT_EQ(acldumpGetPath(static_cast<acldumpType>(99)), nullptr);
}

TEST_F(AclQueries, InputsOfARunThatFailsAreDumped) {
  const std::string folder = Scratch("acl_failures"), file = folder + ".json";
  std::filesystem::remove_all(folder);
  std::ofstream(file) << R"({"dump": {"dump_scene": "lite_exception", "dump_path": ")" << folder
                      << "\"}}";
  ASSERT_EQ(aclmdlInitDump(), ACL_SUCCESS);
  ASSERT_EQ(aclmdlSetDump(file.c_str()), ACL_SUCCESS);
  const uint32_t model = Load("dynamic.om");
  const int64_t dims[] = {1, 3, 32, 31};  // the model reads 32 columns
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 4, dims, ACL_FORMAT_NCHW);
  void *x = nullptr, *y = nullptr;
  ASSERT_EQ(aclrtMalloc(&x, 12288, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  ASSERT_EQ(aclrtMalloc(&y, 40, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  aclmdlDataset *in = aclmdlCreateDataset(), *out = aclmdlCreateDataset();
  aclDataBuffer* buffers[] = {aclCreateDataBuffer(x, 12288), aclCreateDataBuffer(y, 40)};
  ASSERT_EQ(aclmdlAddDatasetBuffer(in, buffers[0]), ACL_SUCCESS);
  ASSERT_EQ(aclmdlAddDatasetBuffer(out, buffers[1]), ACL_SUCCESS);
  ASSERT_EQ(aclmdlSetDatasetTensorDesc(in, desc, 0), ACL_SUCCESS);
  EXPECT_NE(aclmdlExecute(model, in, out), ACL_SUCCESS);
  size_t files = 0;
  const std::string begin = "exception_info.dynamic." + std::to_string(model) + ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/extra-info/data-dump/0"))
    files += entry.path().filename().string().starts_with(begin);
  EXPECT_EQ(files, 1u);
  EXPECT_EQ(aclmdlFinalizeDump(), ACL_SUCCESS);
  EXPECT_NE(aclmdlExecute(model, in, out), ACL_SUCCESS);  // not dumped any more
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder + "/extra-info/data-dump/0"),
                          std::filesystem::directory_iterator()),
            1);
  EXPECT_EQ(aclmdlUnload(model), ACL_SUCCESS);
  for (aclDataBuffer* b : buffers) EXPECT_EQ(aclDestroyDataBuffer(b), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDataset(in), ACL_SUCCESS);
  EXPECT_EQ(aclmdlDestroyDataset(out), ACL_SUCCESS);
  aclDestroyTensorDesc(desc);
  EXPECT_EQ(aclrtFree(x), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(y), ACL_SUCCESS);
  std::filesystem::remove_all(folder);
}

TEST(AclInitFile, Profiler) {
  const std::string folder = Scratch("acl_profiler"), file = folder + ".json";
  std::filesystem::remove_all(folder);
  const auto init = [&](const std::string& profiler) {
    std::ofstream(file) << "{\"profiler\": " << profiler << "}";
    return aclInit(file.c_str());
  };
  EXPECT_EQ(init("{\"switch\": \"maybe\"}"), ACL_ERROR_INVALID_PROFILING_CONFIG);
  EXPECT_EQ(init("{\"switch\": \"off\"}"), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  ASSERT_EQ(init("{\"switch\": \"on\", \"output\": \"" + folder + "\"}"), ACL_SUCCESS);
  EXPECT_EQ(aclprofInit("/tmp", 4), ACL_ERROR_REPEAT_INITIALIZE);
  void* stamp = aclprofCreateStamp();
  EXPECT_EQ(aclprofSetStampTraceMessage(stamp, "a mark of ours", 14), ACL_SUCCESS);
  EXPECT_EQ(aclprofMark(stamp), ACL_SUCCESS);
  aclprofDestroyStamp(stamp);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  std::ifstream trace(folder + "/PROF_" + std::to_string(getpid()) + "/trace.json");
  const std::string text((std::istreambuf_iterator<char>(trace)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("a mark of ours"), std::string::npos) << text;
  std::filesystem::remove_all(folder);
}

}  // namespace
