#include "models/mixture.h"

#include <gtest/gtest.h>

namespace shunt::models {
namespace {

DType choice(std::string_view type, const std::string& name, std::uint32_t layers = 32, bool tied = false,
             const Shape& shape = {512, 512}) {
  auto mixture = mixture_from_name(type);
  EXPECT_TRUE(mixture.has_value()) << type;
  return choose_dtype(*mixture, {.name = name, .dtype = DType::F16, .shape = shape}, layers, tied).dtype;
}

std::vector<std::uint32_t> layers_with(std::string_view type, std::string_view part, DType dtype,
                                       std::uint32_t layers) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    if (choice(type, "blk." + std::to_string(layer) + "." + std::string(part) + ".weight", layers) == dtype)
      list.push_back(layer);
  return list;
}

using Layers = std::vector<std::uint32_t>;

TEST(Mixture, MediumSpendsMoreBitsOnSomeLayers) {
  const Layers expected{0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
  EXPECT_EQ(layers_with("Q4_K_M", "attn_v", DType::Q6_K, 32), expected);
  EXPECT_EQ(layers_with("Q4_K_M", "ffn_down", DType::Q6_K, 32), expected);
  EXPECT_EQ(layers_with("Q4_K_M", "ffn_down_exps", DType::Q6_K, 32), expected);
  EXPECT_EQ(layers_with("Q4_K_M", "attn_q", DType::Q4_K, 32).size(), 32U);
  EXPECT_EQ(layers_with("Q5_K_M", "ffn_down", DType::Q6_K, 32), expected);
  EXPECT_EQ(layers_with("Q4_K_M", "ffn_down", DType::Q6_K, 8), (Layers{0, 3, 6, 7}));
  EXPECT_EQ(layers_with("Q4_K_M", "ffn_down", DType::Q6_K, 6), (Layers{2, 5}));
}

TEST(Mixture, SmallSpendsThemOnTheFirst) {
  EXPECT_EQ(layers_with("Q4_K_S", "attn_v", DType::Q5_K, 32), (Layers{0, 1, 2, 3}));
  EXPECT_EQ(layers_with("Q4_K_S", "ffn_down", DType::Q5_K, 32), (Layers{0, 1, 2, 3}));
  EXPECT_EQ(layers_with("Q4_K_S", "ffn_down", DType::Q5_K, 16), (Layers{0, 1}));
  EXPECT_EQ(layers_with("Q4_K_S", "ffn_down", DType::Q5_K, 6), Layers{});
}

TEST(Mixture, OutputAndEmbeddingHaveTheirOwnDtype) {
  for (const char* type : {"Q4_K_M", "Q4_K_S"}) {
    EXPECT_EQ(choice(type, "output.weight"), DType::Q6_K);
    EXPECT_EQ(choice(type, "token_embd.weight"), DType::Q6_K);
  }
  EXPECT_EQ(choice("Q4_0", "output.weight"), DType::Q6_K);
  EXPECT_EQ(choice("Q4_0", "token_embd.weight"), DType::Q4_0);
  EXPECT_EQ(choice("Q4_0", "token_embd.weight", 32, true), DType::Q6_K);
  EXPECT_EQ(choice("Q8_0", "output.weight"), DType::Q8_0);
  EXPECT_EQ(choice("Q4_K", "output.weight"), DType::Q6_K);
}

TEST(Mixture, NormsVectorsAndRoutersStay) {
  for (const Mixture& mixture : mixtures()) {
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_norm.weight", 32, false, {512}), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_q_norm.weight", 32, false, {4, 512}), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.ffn_gate_inp.weight"), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_q.bias", 32, false, {512}), DType::F16);
  }
}

TEST(Mixture, RowsThatAreNotWholeBlocksFallToQ8AndF16) {
  auto mixture = mixture_from_name("Q4_K_M");
  ASSERT_TRUE(mixture.has_value());
  const auto choose = [&](std::uint32_t columns) {
    return choose_dtype(*mixture, {.name = "blk.0.attn_q.weight", .dtype = DType::F32, .shape = {8, columns}}, 2,
                        false);
  };
  EXPECT_EQ(choose(256).note, "");
  EXPECT_EQ(choose(96).dtype, DType::Q8_0);
  EXPECT_EQ(choose(96).note, "Q8_0 instead of Q4_K: rows of 96 are not whole blocks of 256");
  EXPECT_EQ(choose(100).dtype, DType::F16);
}

TEST(Mixture, NamesAndNumbersAreThoseOfLlamaCpp) {
  EXPECT_EQ(mixture_name(15), "Q4_K_M");
  EXPECT_EQ(mixture_name(32), "BF16");
  EXPECT_EQ(mixture_name(99), "");
  auto unknown = mixture_from_name("Q3_X");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("Q4_K_S Q4_K_M"), std::string::npos);
}

}  // namespace
}  // namespace shunt::models
