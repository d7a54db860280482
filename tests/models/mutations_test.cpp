// Damaged model files of several architectures give a useful error or a model.
#include <gtest/gtest.h>

#include "models/model.h"
#include "mutations.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

constexpr int kMutations = test::kSanitized ? 1000 : 5000;  // sanitizers also fuzz model files

class MutatedModel : public testing::TestWithParam<const char*> {};

TEST_P(MutatedModel, IsRefusedOrLoads) {
  const auto original = bytes_of_file(SHUNT_TEST_DATA "/architectures/" + std::string(GetParam()) + ".gguf");
  ASSERT_FALSE(original.empty());
  const auto whole = GgufFile::from_memory(original);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  Mutations mutations(original, (*whole)->data_offset(), 11);
  int loaded = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::vector<std::byte> bytes = mutations.next();
    const auto model = Model::from_memory(bytes);
    if (model)
      ++loaded;
    else
      ASSERT_FALSE(model.error().message.empty()) << "mutation " << i;
  }
  // Most damage hits names and numbers that matter; some hits bytes that nothing depends on.
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kMutations);
}

INSTANTIATE_TEST_SUITE_P(Files, MutatedModel, testing::Values("gemma2", "qwen2moe", "gpt-oss"),
                         [](const auto& file) { return "File" + std::to_string(file.index); });

}  // namespace
}  // namespace shunt::models
