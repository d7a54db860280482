// Models of several architectures and weight types on Vulkan devices, compared with cpu:scalar on the same file along
// the same tokens; on SwiftShader, which compiles slowly, only if there is no other. tools/gpu/agreement.py compares
// more of them, on any device.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "devices/each_api.h"
#include "models/evaluate.h"
#include "models/quantize/quantizer.h"
#include "models/reference.h"
#include "ops/arithmetic.h"

namespace shunt::models {
namespace {

constexpr std::size_t kTokens = 16;  // more than the tiny models' attention windows

struct Case {
  const char* model;
  const char* type;
};

std::ostream& operator<<(std::ostream& out, const Case& row) { return out << row.model << " as " << row.type; }

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.model) + "_" + info.param.type;
  std::erase(name, '-');
  return name;
}

// A model file of some type, removed with the object.
class TypedFile {
 public:
  explicit TypedFile(const Case& row)
      : path_(testing::TempDir() + "/" + row.model + row.type + std::to_string(getpid()) + ".gguf") {
    const Status made =
        quantize_file(SHUNT_TEST_DATA "/architectures/" + std::string(row.model) + ".gguf", path_, row.type, {});
    EXPECT_TRUE(made.has_value()) << made.error().message;
  }
  ~TypedFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TypedFile(const TypedFile&) = delete;
  TypedFile& operator=(const TypedFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns the first reference tokens that the file contains.
std::vector<Token> tokens_for(const Model& model) {
  const auto given = Loaded::take(model.metadata().i32s("shunt.reference.tokens"));
  return {given.begin(), given.begin() + kTokens};
}

Agreement agreement_of(const Model& model, const Model& exact_model, const std::string& device) {
  const SessionOptions options{.context = 32, .numerics = Numerics::exact};
  const auto runtime = Loaded::take(Runtime::create({.threads = 2, .devices = device}));
  const auto exact_runtime = Loaded::take(Runtime::create({.threads = 2, .devices = "cpu:scalar"}));
  const auto session = Loaded::take(Session::create(model, *runtime, options));
  const auto exact = Loaded::take(Session::create(exact_model, *exact_runtime, options));
  return Loaded::take(compare(*session, *exact, tokens_for(model), {.alone = 1, .progress = {}}));
}

class DeviceArchitectures : public testing::TestWithParam<Case> {};

TEST_P(DeviceArchitectures, AgreeWithTheScalarCpu) {
  const auto registry = Loaded::take(open_devices({.devices = "vulkan", .threads = 1, .pin_to_cpus = {}, .known = {}}));
  std::vector<std::string> devices;
  for (const Device* device : test::quick_ones(registry.devices())) devices.push_back(device->info().id);
  if (devices.empty()) {
    ASSERT_FALSE(test::is_expected("vulkan")) << "it is absent";
    GTEST_SKIP() << "vulkan is absent";
  }
  const TypedFile file(GetParam());
  const auto model = Loaded::take(Model::load(file.path()));
  for (const std::string& device : devices) {
    const Agreement found = agreement_of(*model, *model, device);
    std::printf("%s %s on %s: NMSE %.1e, mean KL %.1e, %zu of %zu\n", GetParam().model, GetParam().type, device.c_str(),
                found.nmse, found.mean_kl, found.same, found.decided);
    EXPECT_EQ(found.tokens, kTokens);
    EXPECT_TRUE(found.ok()) << device;
    EXPECT_GT(found.decided, kTokens / 4) << "tokens that say something";
  }
}

// Rows of the tiny models are too short for blocks of 256: Q4_K_M gives them Q5_0 and Q8_0, and F16 if they are not
// whole blocks of 32 either.
constexpr Case kCases[] = {{"gemma3", "F16"},   {"gemma3", "Q8_0"},   {"gemma3", "Q4_K_M"},
                           {"gpt-oss", "F16"},  {"gpt-oss", "Q8_0"},  {"gpt-oss", "Q4_K_M"},
                           {"qwen3moe", "F16"}, {"qwen3moe", "Q8_0"}, {"qwen3moe", "Q4_K_M"}};

INSTANTIATE_TEST_SUITE_P(Vulkan, DeviceArchitectures, testing::ValuesIn(kCases), name_of_case);

TEST(Agreement, IsNotThereWhereAModelLacksAPart) {
  const std::string path = SHUNT_TEST_DATA "/architectures/gemma3.gguf";
  const auto model = Loaded::take(Model::load(path));
  const Agreement same = agreement_of(*model, *model, "cpu:scalar");
  EXPECT_EQ(same.nmse, 0);
  EXPECT_EQ(same.largest_kl, 0);
  EXPECT_EQ(same.mean_nll, same.exact_mean_nll);
  EXPECT_EQ(same.same, same.decided);
  EXPECT_EQ(same.same_best, same.tokens);
  EXPECT_TRUE(same.ok());
  const auto other = Loaded::take(Model::load(path, [](ModelConfig& config) { config.window = 0; }));
  const Agreement found = agreement_of(*other, *model, "cpu:scalar");
  EXPECT_GT(found.nmse, bounds_of(Numerics::exact).nmse);
  EXPECT_FALSE(found.ok());
  EXPECT_LT(found.nmse, 1) << "only what is beyond the window differs";
}

TEST(Agreement, NeedsTokensThatFitAndOneVocabulary) {
  const auto tiny = Loaded::take(Model::load(SHUNT_TEST_DATA "/architectures/gemma3.gguf"));
  const auto trained = Loaded::take(Model::load(kTrainedModel));
  const auto runtime = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:scalar"}));
  const SessionOptions options{.context = 32};
  const auto session = Loaded::take(Session::create(*tiny, *runtime, options));
  const auto other = Loaded::take(Session::create(*trained, *runtime, options));
  const std::vector<Token> tokens(session->context() + 1, 1);
  for (const std::size_t count : {std::size_t{0}, tokens.size()})
    EXPECT_EQ(compare(*session, *session, std::span(tokens).first(count), {}).error().code, Code::invalid);
  EXPECT_EQ(compare(*session, *other, std::span(tokens).first(1), {}).error().code, Code::invalid);
}

}  // namespace
}  // namespace shunt::models
