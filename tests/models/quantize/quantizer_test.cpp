#include "models/quantize/quantizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "models/gguf/gguf_bytes.h"
#include "models/gguf/gguf_writer.h"
#include "models/quantize/mixture.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "ops/quantize/blocks.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

std::vector<float> values_of(GgufFile& file, std::size_t index) {
  const WeightInfo& info = file.weights()[index];
  std::vector<float> values(info.shape.elements());
  decode_row(info.dtype, file.mapped(index).data(), values.size(), values.data());
  return values;
}

double nmse(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    power += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error / power;
}

void expect_quantizes(const std::string& in, const std::string& out, std::string_view type,
                      const QuantizeOptions& options = {}) {
  const Status done = quantize_file(in, out, type, options);
  ASSERT_TRUE(done.has_value()) << done.error().message;
}

double worst_error(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return 0;
    case DType::F16:
      return 1e-7;
    case DType::BF16:
      return 1e-5;
    case DType::Q8_0:
      return 1e-4;
    case DType::Q6_K:
      return 1e-3;
    case DType::Q5_K:
    case DType::Q5_0:
    case DType::Q5_1:
      return 3e-3;
    case DType::Q3_K:
      return 4e-2;
    case DType::Q2_K:
      return 1e-1;
    default:
      return 1.5e-2;
  }
}

// The trained model.
constexpr MixtureModel kTrained{.layers = 6, .tied = true, .query_groups = 2};

TEST(Quantizer, EveryTypeKeepsTensorsMetadataAndMostOfTheValues) {
  TestFolder folder;
  auto source = GgufFile::open(kTrainedModel);
  ASSERT_TRUE(source.has_value());
  for (const Mixture& mixture : mixtures()) {
    // The encoders' own tests run each of them under sanitizers.
    if (test::kSanitized && mixture.name != "Q4_K_M") continue;
    const std::string path = folder.file(mixture.name);
    expect_quantizes(kTrainedModel, path, mixture.name, {.threads = 2});
    auto result = GgufFile::open(path);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    EXPECT_EQ((*result)->metadata().u32("general.file_type").value_or(99), mixture.file_type);
    for (const auto& [key, value] : (*source)->metadata().all())
      EXPECT_TRUE(key == "general.file_type" || *(*result)->metadata().find(key) == value) << key;
    ASSERT_EQ((*result)->weights().size(), (*source)->weights().size());
    for (std::size_t i = 0; i < (*result)->weights().size(); ++i) {
      const WeightInfo& info = (*result)->weights()[i];
      EXPECT_EQ(info.name, (*source)->weights()[i].name);
      EXPECT_EQ(info.shape, (*source)->weights()[i].shape);
      EXPECT_EQ(info.dtype, choose_dtype(mixture, (*source)->weights()[i], kTrained).dtype) << info.name;
      EXPECT_LE(nmse(values_of(**result, i), values_of(**source, i)), worst_error(info.dtype))
          << mixture.name << " " << info.name;
    }
  }
}

TEST(Quantizer, ThreadsDoNotChangeTheFile) {
  TestFolder folder;
  expect_quantizes(kTrainedModel, folder.file("1"), "Q4_K_M", {.threads = 1});
  expect_quantizes(kTrainedModel, folder.file("5"), "Q4_K_M", {.threads = 5});
  EXPECT_EQ(read_bytes(folder.file("1")), read_bytes(folder.file("5")));
}

TEST(Quantizer, TheTargetMayBeTheSource) {
  TestFolder folder;
  write_bytes(folder.file("m"), read_bytes(kTrainedModel));
  expect_quantizes(folder.file("m"), folder.file("m"), "Q8_0");
  expect_quantizes(kTrainedModel, folder.file("other"), "Q8_0");
  EXPECT_EQ(read_bytes(folder.file("m")), read_bytes(folder.file("other")));
}

TEST(Quantizer, TellsEachTensorAndWhatFellBack) {
  TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F32", folder.file("m")).has_value());
  std::size_t calls = 0;
  std::size_t notes = 0;
  expect_quantizes(
      folder.file("m"), folder.file("q"), "Q4_K_M", {.on_tensor = [&](const QuantizeProgress& progress) {
        EXPECT_EQ(progress.index, calls++);
        if (progress.note.empty()) return;
        ++notes;
        const bool has_six_bits = progress.to == DType::Q8_0;
        EXPECT_TRUE(has_six_bits || progress.to == DType::Q5_0) << progress.name;
        EXPECT_TRUE(progress.note.starts_with(has_six_bits ? "Q8_0 instead of Q6_K" : "Q5_0 instead of Q4_K"))
            << progress.note;
        EXPECT_NE(progress.note.find("are not whole blocks of 256"), std::string::npos);
      }});
  EXPECT_EQ(calls, 20U);
  EXPECT_EQ(notes, 15U);
}

TEST(Quantizer, WhatIsQuantizedIsNotQuantizedAgain) {
  TestFolder folder;
  expect_quantizes(kTrainedModel, folder.file("q8"), "Q8_0");
  const Status again = quantize_file(folder.file("q8"), folder.file("q4"), "Q4_0");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::invalid);
  EXPECT_NE(again.error().message.find("is Q8_0 already"), std::string::npos);
  EXPECT_EQ(folder.file_count(), 1U);
  expect_quantizes(folder.file("q8"), folder.file("f16"), "F16");
}

TEST(Quantizer, WeightsThatAreNotFiniteAreErrors) {
  TestFolder folder;
  const GgufTensor tensors[] = {{.name = "blk.0.ffn_up.weight", .dtype = DType::F32, .shape = {2, 256}}};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e6F}) {
    std::vector<float> values(512, 1.0F);
    values[300] = bad;
    values[400] = bad;
    auto writer = GgufWriter::create(folder.file("m"), {}, tensors);
    ASSERT_TRUE(writer.has_value());
    ASSERT_TRUE((*writer)->write(std::as_bytes(std::span(values))).has_value());
    ASSERT_TRUE((*writer)->finish().has_value());
    const Status done = quantize_file(folder.file("m"), folder.file("q"), "F16");
    ASSERT_FALSE(done.has_value()) << bad;
    EXPECT_NE(done.error().message.find("element 300 is not finite or too large for F16"), std::string::npos);
    EXPECT_EQ(quantize_file(folder.file("m"), folder.file("q8"), "Q8_0").has_value(), bad == 1e6F);
    EXPECT_FALSE(std::filesystem::exists(folder.file("q")));
  }
}

TEST(Quantizer, ASourceThatShrinksIsAnIoError) {
  TestFolder folder;
  const std::string path = folder.file("m");
  write_bytes(path, read_bytes(kTrainedModel));
  const auto shrink = [&](const QuantizeProgress& progress) {
    if (progress.index != 3) return;
    EXPECT_EQ(::truncate(path.c_str(), 1 << 20), 0);
  };
  const Status done = quantize_file(path, folder.file("q"), "Q8_0", {.threads = 2, .on_tensor = shrink});
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::io) << done.error().message;
  EXPECT_EQ(folder.file_count(), 1U);
}

// Returns the mean negative log likelihood over the reference's text.
double mean_nll(const std::string& path) {
  Loaded loaded(path, "cpu:simd,cpu:scalar", {.context = 1024});
  const auto ids = reference()["perplexity"]["ids"].get<std::vector<Token>>();
  const auto rows = last_logits(*loaded.session, ids, ids.size());
  const std::size_t vocabulary = loaded.model->config().vocabulary;
  double sum = 0;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::span<const float> row(rows.data() + i * vocabulary, vocabulary);
    const double best = static_cast<double>(*std::ranges::max_element(row));
    double total = 0;
    for (const float logit : row) total += std::exp(static_cast<double>(logit) - best);
    sum += best + std::log(total) - static_cast<double>(row[static_cast<std::size_t>(ids[i + 1])]);
  }
  return sum / static_cast<double>(ids.size() - 1);
}

TEST(Quantizer, TheTrainedModelKeepsItsSkill) {
  TestFolder folder;
  const double exact = reference()["perplexity"]["mean_nll"].get<double>();
  const std::pair<std::string_view, double> kLosses[] = {
      {"BF16", 0.002}, {"Q8_0", 0.002},  {"Q6_K", 0.005}, {"Q5_K_M", 0.01}, {"Q4_K_M", 0.03}, {"Q4_K_S", 0.03},
      {"Q4_0", 0.05},  {"IQ4_XS", 0.03}, {"MXFP4", 0.05}, {"Q3_K_S", 0.06}, {"Q2_K", 0.09}};
  for (const auto& [type, most] : kLosses) {
    if (test::kSanitized && type != "Q4_0") continue;  // TrainedModel runs the same code
    expect_quantizes(kTrainedModel, folder.file(type), type, {.threads = 2});
    const double loss = mean_nll(folder.file(type)) - exact;
    RecordProperty(std::string(type), std::to_string(loss));
    EXPECT_LT(loss, most) << type;
    EXPECT_GT(loss, -most) << type;
  }
}

}  // namespace
}  // namespace shunt::models
