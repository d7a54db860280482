// A layer's attention over keys and values that the step adds tokens to.
#pragma once

#include <utility>

#include "shunt/graph.h"

namespace shunt::test {

inline constexpr std::uint32_t kCachePageTokens = 32;
inline constexpr std::uint32_t kCacheHeads = 4;
inline constexpr std::uint32_t kCacheColumns = 64;
inline constexpr std::uint64_t kCachePageBytes =
    std::uint64_t{kCachePageTokens} * kCacheHeads * kCacheColumns * sizeof(float);

// Its states are "keys" and "values", its inputs "x", "positions", "sequences" and "pages".
inline Graph attention_over_caches(std::uint32_t tokens, std::uint32_t cache_pages) {
  GraphBuilder builder;
  const Shape of_tokens{tokens, kCacheHeads, kCacheColumns};
  const Shape of_cache{cache_pages, kCachePageTokens, kCacheHeads, kCacheColumns};
  const Tensor x = builder.input("x", DType::F32, of_tokens, Extent::tokens);
  const Tensor positions = builder.input("positions", DType::I32, {tokens}, Extent::tokens);
  const Tensor sequences = builder.input("sequences", DType::I32, {tokens}, Extent::tokens);
  const Tensor pages = builder.input("pages", DType::I32, {1, cache_pages});
  const auto written = [&](const char* name, Tensor what) {
    return builder.cache_write(builder.state(name, DType::F32, of_cache), what, positions, sequences, pages);
  };
  const Tensor keys = written("keys", builder.silu(x));
  const Tensor values = written("values", builder.scale(x));
  builder.output(builder.attention(x, keys, values, positions, sequences, pages, {}, {{Attr::scale, 0.125F}}));
  return *std::move(builder).finish();
}

}  // namespace shunt::test
