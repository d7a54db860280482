// Quantized files on the SIMD device, against the scalar device.
#include "models/gguf/gguf_bytes.h"
#include "models/quantize/quantizer.h"
#include "models/reference.h"
#include "models/short_run.h"

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
    const auto tokens = prompt_ids(index);
    expect_like(last_logits(*fast.session, tokens, tokens.size()), last_logits(*exact.session, tokens, tokens.size()),
                1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizedModel,
                         testing::Values("Q8_0", "Q4_0", "Q5_1", "Q2_K", "Q4_K_M", "Q4_K_S", "Q6_K", "IQ4_XS", "MXFP4",
                                         "BF16"));

}  // namespace
}  // namespace shunt::models
