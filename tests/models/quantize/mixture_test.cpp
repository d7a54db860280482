#include "models/quantize/mixture.h"

#include <gtest/gtest.h>

namespace shunt::models {
namespace {

DType choice(std::string_view type, const std::string& name, const MixtureModel& model = {.layers = 32},
             const Shape& shape = {512, 512}) {
  auto mixture = mixture_from_name(type);
  EXPECT_TRUE(mixture.has_value()) << type;
  return choose_dtype(*mixture, {.name = name, .dtype = DType::F16, .shape = shape}, model).dtype;
}

std::vector<std::uint32_t> layers_with(std::string_view type, std::string_view part, DType dtype,
                                       std::uint32_t layers) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    if (choice(type, "blk." + std::to_string(layer) + "." + std::string(part) + ".weight", {.layers = layers}) == dtype)
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

TEST(Mixture, LowBitTypesRaiseValuesDownAndAttentionOutput) {
  EXPECT_EQ(layers_with("Q3_K_M", "attn_v", DType::Q5_K, 32), (Layers{0, 1}));
  EXPECT_EQ(layers_with("Q3_K_M", "attn_v", DType::Q4_K, 32).size(), 30U);
  EXPECT_EQ(layers_with("Q3_K_M", "ffn_down", DType::Q5_K, 32), (Layers{0, 1}));
  EXPECT_EQ(layers_with("Q3_K_M", "ffn_down", DType::Q4_K, 32).size(), 30U);
  EXPECT_EQ(layers_with("Q3_K_M", "ffn_down", DType::Q4_K, 6).size(), 6U);
  for (const char* part : {"attn_v", "ffn_down", "attn_output"}) {
    EXPECT_EQ(layers_with("Q3_K_S", part, DType::Q3_K, 32).size(), 32U) << part;
    EXPECT_EQ(layers_with("Q3_K_L", part, DType::Q5_K, 32).size(), 32U) << part;
    EXPECT_EQ(layers_with("Q2_K", part, DType::Q3_K, 32).size(), 32U) << part;
  }
  EXPECT_EQ(choice("Q3_K_M", "blk.7.attn_output.weight"), DType::Q4_K);
  for (const char* part : {"blk.7.attn_q.weight", "blk.7.attn_k.weight", "blk.7.ffn_up.weight", "token_embd.weight"}) {
    EXPECT_EQ(choice("Q2_K", part), DType::Q2_K) << part;
    EXPECT_EQ(choice("Q3_K_L", part), DType::Q3_K) << part;
  }
}

TEST(Mixture, FusedMatricesAreTreatedAsValues) {
  EXPECT_EQ(choice("Q3_K_M", "blk.1.attn_qkv.weight"), DType::Q5_K);
  EXPECT_EQ(choice("Q4_K_M", "blk.3.attn_qkv.weight"), DType::Q6_K);
  EXPECT_EQ(choice("Q4_K_M", "blk.4.attn_qkv.weight"), DType::Q4_K);
}

TEST(Mixture, ValuesThatManyHeadsShareGetMoreBits) {
  for (const std::uint32_t groups : {1U, 3U, 4U, 8U}) {
    const MixtureModel model{.layers = 32, .query_groups = groups};
    const std::string value = "blk.9.attn_v.weight";
    EXPECT_EQ(choice("Q2_K", value, model), groups < 4 ? DType::Q3_K : DType::Q4_K);
    EXPECT_EQ(choice("IQ4_NL", value, model), groups < 4 ? DType::IQ4_NL : DType::Q5_K);
    EXPECT_EQ(choice("IQ4_XS", value, model), groups < 4 ? DType::IQ4_XS : DType::Q5_K);
  }
  EXPECT_EQ(layers_with("IQ4_XS", "ffn_down", DType::Q5_K, 32), (Layers{0, 1, 2, 3}));
  EXPECT_EQ(layers_with("IQ4_NL", "ffn_down", DType::Q5_K, 32), (Layers{0, 1, 2, 3}));
}

TEST(Mixture, EightExpertsSpareWhatAllTokensShare) {
  const MixtureModel model{.layers = 32, .experts = 8};
  for (const char* type : {"Q4_0", "Q2_K", "Q3_K_L", "Q4_K_M", "Q6_K", "IQ4_XS"})
    for (const char* part : {"blk.5.attn_k.weight", "blk.5.attn_v.weight"})
      EXPECT_EQ(choice(type, part, model), DType::Q8_0) << type;
  EXPECT_EQ(choice("F16", "blk.5.attn_v.weight", model), DType::F16);
  EXPECT_EQ(choice("Q2_K", "blk.5.attn_output.weight", model), DType::Q5_K);
  EXPECT_EQ(choice("Q4_K_M", "blk.5.attn_output.weight", model), DType::Q5_K);
  EXPECT_EQ(choice("Q3_K_L", "blk.5.attn_output.weight", model), DType::Q3_K);
  EXPECT_EQ(choice("Q5_K_M", "blk.5.attn_output.weight", model), DType::Q5_K);
}

TEST(Mixture, MxfpIsForExpertsOrForAll) {
  const MixtureModel model{.layers = 24, .experts = 32};
  const Shape experts{32, 512, 512};
  EXPECT_EQ(choice("MXFP4_MOE", "blk.0.ffn_down_exps.weight", model, experts), DType::MXFP4);
  EXPECT_EQ(choice("MXFP4_MOE", "blk.0.attn_q.weight", model), DType::Q8_0);
  EXPECT_EQ(choice("MXFP4_MOE", "token_embd.weight", model), DType::Q8_0);
  EXPECT_EQ(choice("MXFP4", "blk.0.attn_q.weight", model), DType::MXFP4);
  EXPECT_EQ(choice("MXFP4", "output.weight", model), DType::Q8_0);
}

TEST(Mixture, OutputAndEmbeddingHaveTheirOwnDtype) {
  for (const char* type : {"Q4_K_M", "Q4_K_S"}) {
    EXPECT_EQ(choice(type, "output.weight"), DType::Q6_K);
    EXPECT_EQ(choice(type, "token_embd.weight"), DType::Q4_K);
  }
  for (const Mixture& mixture : mixtures()) {
    const MixtureModel tied{.layers = 32, .tied = true};
    EXPECT_EQ(choice(mixture.name, "token_embd.weight", tied), choice(mixture.name, "output.weight"));
  }
  EXPECT_EQ(choice("Q4_0", "output.weight"), DType::Q6_K);
  EXPECT_EQ(choice("Q4_0", "token_embd.weight"), DType::Q4_0);
  EXPECT_EQ(choice("Q8_0", "output.weight"), DType::Q8_0);
  EXPECT_EQ(choice("Q3_K", "blk.7.ffn_down.weight"), DType::Q4_K) << "Q3_K_M";
  EXPECT_EQ(choice("Q4_K", "output.weight"), DType::Q6_K);
}

TEST(Mixture, NormsVectorsAndRoutersStay) {
  for (const Mixture& mixture : mixtures()) {
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_norm.weight", {.layers = 32}, {512}), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_q_norm.weight", {.layers = 32}, {4, 512}), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.ffn_gate_inp.weight"), DType::F16);
    EXPECT_EQ(choice(mixture.name, "blk.0.attn_q.bias", {.layers = 32}, {512}), DType::F16);
  }
}

TEST(Mixture, RowsThatAreNotWholeBlocksFallToSmallerOnesAndF16) {
  const auto choose = [](std::string_view type, std::uint32_t columns) {
    auto mixture = mixture_from_name(type);
    EXPECT_TRUE(mixture.has_value()) << type;
    return choose_dtype(*mixture, {.name = "blk.0.attn_q.weight", .dtype = DType::F32, .shape = {8, columns}},
                        {.layers = 2});
  };
  const std::pair<std::string_view, DType> kFallbacks[] = {{"Q2_K", DType::IQ4_NL}, {"Q3_K_M", DType::IQ4_NL},
                                                           {"Q4_K_M", DType::Q5_0}, {"Q5_K_M", DType::Q5_1},
                                                           {"Q6_K", DType::Q8_0},   {"IQ4_XS", DType::IQ4_NL}};
  for (const auto& [type, dtype] : kFallbacks) {
    EXPECT_EQ(choose(type, 256).note, "") << type;
    EXPECT_EQ(choose(type, 96).dtype, dtype) << type;
    EXPECT_EQ(choose(type, 100).dtype, DType::F16) << type;
  }
  EXPECT_EQ(choose("Q4_K_M", 96).note, "Q5_0 instead of Q4_K: rows of 96 are not whole blocks of 256");
  EXPECT_EQ(choose("Q4_K_M", 100).note, "F16 instead of Q4_K: rows of 100 are not whole blocks of 256");
  for (const char* type : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"}) {
    EXPECT_EQ(choose(type, 96).note, "") << type;
    EXPECT_EQ(choose(type, 100).dtype, DType::F16) << type;
  }
  EXPECT_EQ(choose("MXFP4", 48).note, "F16 instead of MXFP4: rows of 48 are not whole blocks of 32");
}

TEST(Mixture, NamesAndNumbersAreThoseOfLlamaCpp) {
  const std::pair<std::uint32_t, std::string_view> kNames[] = {
      {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},      {10, "Q2_K"},
      {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"},   {16, "Q5_K_S"},
      {17, "Q5_K_M"}, {18, "Q6_K"},   {25, "IQ4_NL"}, {30, "IQ4_XS"}, {38, "MXFP4_MOE"}};
  for (const auto& [number, name] : kNames) EXPECT_EQ(mixture_name(number), name);
  EXPECT_EQ(mixture_name(32), "BF16");
  EXPECT_EQ(mixture_name(99), "");
  auto unknown = mixture_from_name("Q3_X");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("Q4_K_S Q4_K_M"), std::string::npos);
}

}  // namespace
}  // namespace shunt::models
