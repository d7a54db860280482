// Quantized files on the SIMD device, against the scalar device.
#include <cmath>

#include "models/gguf/gguf_bytes.h"
#include "models/quantize/quantizer.h"
#include "models/reference.h"

namespace shunt::models {
namespace {

class QuantizedModel : public testing::TestWithParam<const char*> {};

TEST_P(QuantizedModel, AgreesWithTheScalarDevice) {
  TestFolder folder;
  const std::string path = folder.file(GetParam());
  const Status written = quantize_file(kTrainedModel, path, GetParam());
  ASSERT_TRUE(written.has_value()) << written.error().message;
  Loaded fast(path, "cpu:simd", {.context = 256});
  Loaded exact(path, "cpu:scalar", {.context = 256, .cache_dtype = DType::F32});
  for (const std::size_t index : {std::size_t{0}, std::size_t{8}}) {
    auto tokens = prompt_ids(index);
    const auto a = last_logits(*fast.session, tokens, tokens.size());
    const auto b = last_logits(*exact.session, tokens, tokens.size());
    ASSERT_EQ(a.size(), b.size());
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      error += std::pow(double{a[i]} - b[i], 2);
      power += std::pow(double{b[i]}, 2);
    }
    EXPECT_LE(error / power, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizedModel,
                         testing::Values("Q8_0", "Q4_0", "Q5_1", "Q2_K", "Q4_K_M", "Q4_K_S", "Q6_K", "IQ4_XS", "MXFP4",
                                         "BF16"));

}  // namespace
}  // namespace shunt::models
