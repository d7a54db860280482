#include "models/summary.h"

#include <gtest/gtest.h>

#include <numeric>

namespace shunt::models {
namespace {

TEST(Summary, TellsWhatTheTrainedModelIs) {
  auto model = GgufFile::open(SHUNT_TEST_DATA "/tiny-llama-f16.gguf");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const ModelSummary summary = summarize(**model);
  EXPECT_EQ(summary.architecture, "llama");
  EXPECT_EQ(summary.name, "tiny-llama");
  EXPECT_EQ(summary.file_type, "F16");
  EXPECT_EQ(summary.parameters, 5231616U);
  EXPECT_EQ(summary.file_bytes, 10516032U);
  EXPECT_EQ(summary.tensors.size(), 56U);
  EXPECT_EQ(summary.tensors[1].name, "output_norm.weight");
  ASSERT_EQ(summary.dtypes.size(), 2U);
  EXPECT_EQ(summary.dtypes[0].dtype, "F32");
  EXPECT_FALSE(summary.dtypes[0].is_foreign);
  EXPECT_EQ(summary.dtypes[0].tensors, 13U);
  EXPECT_EQ(summary.dtypes[0].bytes + summary.dtypes[1].bytes, summary.tensor_bytes);
  ASSERT_EQ(summary.metadata.size(), 29U);
  EXPECT_EQ(summary.metadata[4].key, "llama.block_count");
  EXPECT_EQ(summary.metadata[4].type, "u32");
  EXPECT_EQ(*summary.metadata[4].value, MetadataValue(std::uint32_t{6}));
  EXPECT_FALSE(summary.metadata[4].is_array);
  EXPECT_TRUE(summary.metadata[18].is_array);
  EXPECT_EQ(summary.metadata[18].elements, 1991U);
  EXPECT_EQ(abbreviated(*summary.metadata[18].value).substr(0, 31), "[\"<unk>\", \"<s>\", \"</s>\", \"<|im_");
}

TEST(Summary, LongValuesAreAbbreviated) {
  EXPECT_EQ(abbreviated(std::vector<std::int32_t>{1, 2, 3}, 2), "[1, 2, ...]");
  EXPECT_EQ(abbreviated(std::vector<bool>{true, false}, 2), "[true, false]");
  EXPECT_EQ(abbreviated(std::vector<float>{}, 2), "[]");
  EXPECT_EQ(abbreviated(std::string(70, 'x'), 2), std::string(64, 'x') + "... (70 bytes)");
  EXPECT_EQ(abbreviated(std::string(63, 'x') + "\xE2\x96\x81", 2), std::string(63, 'x') + "... (66 bytes)");
  EXPECT_EQ(abbreviated(std::uint8_t{7}), "7");
  EXPECT_EQ(abbreviated(1e-5F), "1e-05");
}

}  // namespace
}  // namespace shunt::models
