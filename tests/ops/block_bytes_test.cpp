// Quants unpacked to bytes give the elements that decoding gives. On one instruction set: the baseline.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/simd_targets.h"
// Must follow simd_targets.h:
#include "hwy/highway.h"
#include "ops/quantize/block_bytes-inl.h"
#include "ops/quantize/encode.h"

namespace shunt::block_bytes_tests {
namespace {

template <DType kDType>
void check() {
  using Bytes = HWY_NAMESPACE::BlockBytes<kDType>;
  if constexpr (Bytes::kElements != 0) {
    SCOPED_TRACE(name_of(kDType));
    static_assert(Bytes::kElements == 32 || Bytes::kElements == 256);
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int step = 0; step < 50; ++step) {
      std::vector<float> floats(Bytes::kElements);
      for (float& v : floats) v = normal(random);
      std::vector<std::byte> block(info_of(kDType).block_bytes);
      encode_row(kDType, floats.data(), floats.size(), block.data());
      decode_row(kDType, block.data(), floats.size(), floats.data());
      alignas(64) std::uint8_t bytes[256];
      alignas(64) float scales[16];
      alignas(64) float offsets[16];
      Bytes::read(block.data(), bytes, scales, offsets);
      for (std::size_t i = 0; i < Bytes::kElements; ++i) {
        const std::size_t group = i / Bytes::kGroup;
        ASSERT_LE(bytes[i], Bytes::kMost) << i;
        const float quant = static_cast<float>(bytes[i]) - static_cast<float>(Bytes::kCentre);
        const float offset = Bytes::kCentre == 0 ? offsets[group] : 0;
        ASSERT_NEAR(scales[group] * quant + offset, floats[i],
                    1e-6F * (std::abs(scales[group] * quant) + std::abs(offset)))
            << i;
      }
    }
  }
}

TEST(BlockBytes, GiveWhatDecodingGives) {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) check<DType::name>();
#include "ops/dtypes.def"
#undef SHUNT_DTYPE
}

}  // namespace
}  // namespace shunt::block_bytes_tests
