#include "models/gguf/gguf.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/gguf/gguf_bytes.h"
#include "models/reference.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kU8 = 0, kU32 = 4, kF32 = 6, kBool = 7, kString = 8, kArray = 9;
constexpr std::uint32_t kTypeF32 = 0, kTypeQ8 = 8;

std::string error_of(const GgufBytes& file, Code code = Code::invalid) {
  auto model = GgufFile::from_memory(file.bytes());
  if (model) return "no error";
  EXPECT_EQ(model.error().code, code) << model.error().message;
  return model.error().message;
}

TEST(Gguf, ReadsTheTrainedModel) {
  auto model = GgufFile::open(SHUNT_TEST_DATA "/tiny-llama-f16.gguf");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  GgufFile& file = **model;
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.alignment(), 32U);
  EXPECT_EQ(file.total_bytes(), 10516032U);
  EXPECT_EQ(file.weights().size(), 56U);
  EXPECT_EQ(file.metadata().all().size(), 29U);
  EXPECT_EQ(file.metadata().all()[0].first, "general.architecture");
  EXPECT_EQ(file.metadata().string("general.architecture").value_or(""), "llama");
  EXPECT_EQ(file.metadata().u32("llama.block_count").value_or(0), 6U);
  EXPECT_EQ(file.metadata().f32("llama.rope.freq_base").value_or(0), 10000.0F);
  EXPECT_TRUE(file.metadata().boolean("tokenizer.ggml.add_bos_token").value_or(false));
  auto tokens = file.metadata().strings("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ((*tokens)->size(), 1991U);
  EXPECT_EQ((**tokens)[3], "<|im_start|>");
  EXPECT_EQ(file.metadata().f32s("tokenizer.ggml.scores").value_or(std::vector<float>{}).size(), 1991U);
  EXPECT_EQ(file.metadata().i32s("tokenizer.ggml.token_type").value_or(std::vector<std::int32_t>{})[1], 3);

  const auto index = file.find("blk.5.ffn_down.weight");
  ASSERT_TRUE(index.has_value());
  const WeightInfo& info = file.weights()[*index];
  EXPECT_EQ(info.shape, (Shape{256, 768}));
  EXPECT_EQ(info.dtype, DType::F16);
  EXPECT_EQ(info.bytes, 256U * 768 * 2);
  EXPECT_FALSE(file.find("blk.6.ffn_down.weight").has_value());

  const auto mapped = file.mapped(*index);
  ASSERT_EQ(mapped.size(), info.bytes);
  std::vector<std::byte> copy(1000);
  ASSERT_TRUE(file.read(*index, 4000, copy).has_value());
  EXPECT_TRUE(std::ranges::equal(copy, mapped.subspan(4000, 1000)));
  EXPECT_FALSE(file.read(*index, info.bytes - 999, copy).has_value());
  EXPECT_FALSE(file.read(*index, ~std::uint64_t{0}, copy).has_value());
  EXPECT_FALSE(file.read(56, 0, copy).has_value());
  const std::vector<std::byte> before(mapped.begin(), mapped.end());
  file.release(*index, 0, info.bytes);
  EXPECT_TRUE(std::ranges::equal(before, mapped));
  EXPECT_TRUE(file.health().has_value());
}

TEST(Gguf, ReadsVersion2AndKeepsExactTypes) {
  GgufBytes bytes(2, 2, 4);
  bytes.key("general.alignment", kU32).number(64U);
  bytes.key("small", kU8).number(std::uint8_t{7});
  bytes.key("list", kArray).number(kU8).number(std::uint64_t{3}).raw("abc");
  bytes.key("flags", kArray).number(kBool).number(std::uint64_t{2}).raw(std::string_view("\1\0", 2));
  bytes.tensor("b", {64, 2}, kTypeQ8, 0).tensor("a", {3, 2}, kTypeF32, 192).pad(64).zeros(192 + 24);
  auto model = GgufFile::from_memory(bytes.bytes());
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const Metadata& metadata = (*model)->metadata();
  EXPECT_EQ((*model)->alignment(), 64U);
  EXPECT_EQ(type_name(*metadata.find("small")), "u8");
  EXPECT_EQ(metadata.u32("small").value_or(0), 7U);
  EXPECT_EQ(type_name(*metadata.find("list")), "array of u8");
  EXPECT_EQ(metadata.i32s("list").value_or(std::vector<std::int32_t>{}), (std::vector<std::int32_t>{97, 98, 99}));
  EXPECT_EQ(std::get<std::vector<bool>>(*metadata.find("flags")), (std::vector<bool>{true, false}));
  EXPECT_EQ((*model)->weights()[1].shape, (Shape{2, 3}));
  EXPECT_EQ((*model)->mapped(0).size(), 136U);
}

TEST(Gguf, OtherFilesAreNamedForWhatTheyAre) {
  expect_says(error_of(GgufBytes(1, 0, 0), Code::unsupported), "GGUF version 1; versions 2 and 3 can be read");
  expect_says(error_of(GgufBytes(4, 0, 0), Code::unsupported), "GGUF version 4");
  expect_says(error_of(GgufBytes(0x03000000U, 0, 0), Code::unsupported), "big-endian");
  auto other = GgufFile::from_memory(std::as_bytes(std::span("PK\3\4 and more bytes behind")));
  ASSERT_FALSE(other.has_value());
  expect_says(other.error().message, "not a GGUF file");
  EXPECT_FALSE(GgufFile::from_memory({}).has_value());
}

TEST(Gguf, CountsAndLengthsBeyondTheFileAreErrors) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  expect_says(error_of(GgufBytes(3, kHuge, 0)), "tensors");
  expect_says(error_of(GgufBytes(3, 100, 0)), "claims 100 tensors, but only 0 bytes follow");
  expect_says(error_of(GgufBytes(3, 0, kHuge)), "metadata keys");
  expect_says(error_of(GgufBytes(3, 0, 100)), "claims 100 metadata keys");
  expect_says(error_of(GgufBytes(3, 0, 1).number(kHuge).zeros(40)), "the name of metadata key 0 needs");
  expect_says(error_of(GgufBytes(3, 0, 1).number(std::uint64_t{0}).zeros(40)), "a name of 0 bytes");
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", kString).number(kHuge - 7).zeros(40)), "metadata key \"k\" needs");
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", kArray).number(kF32).number(kHuge / 4).zeros(40)),
              "claims 4611686018427387903 values");
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", kArray).number(kString).number(std::uint64_t{6}).zeros(40)),
              "claims 6 values at byte 49, but the file ends at byte 89");
}

TEST(Gguf, UnknownValueTypesAndNestedArraysAreErrors) {
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", 13).zeros(40)), "unknown value type 13");
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", kArray).number(99U).zeros(40)), "unknown value type 99");
  expect_says(error_of(GgufBytes(3, 0, 1).key("k", kArray).number(kArray).zeros(40), Code::unsupported),
              "array of arrays");
  GgufBytes twice(3, 0, 2);
  twice.key("k", kU32).number(1U).key("k", kU32).number(2U);
  expect_says(error_of(twice), "metadata key \"k\" occurs twice");
}

TEST(Gguf, AlignmentMustBeASanePowerOfTwo) {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 0x80000000U})
    expect_says(error_of(GgufBytes(3, 0, 1).key("general.alignment", kU32).number(alignment)),
                "must be a power of two");
  expect_says(error_of(GgufBytes(3, 0, 1).key("general.alignment", kString).text("32")), "is not a 32-bit count");
}

TEST(Gguf, TensorRecordsAreChecked) {
  const auto with = [](const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
    GgufBytes bytes(3, 1, 0);
    bytes.tensor("w", dims, type, offset).pad(32).zeros(64);
    return bytes;
  };
  EXPECT_EQ(error_of(with({16}, kTypeF32, 0)), "no error");
  EXPECT_EQ(error_of(with({}, kTypeF32, 0)), "no error");
  expect_says(error_of(with({1, 1, 1, 1, 1}, kTypeF32, 0)), "tensor \"w\" has 5 dimensions, at most 4");
  expect_says(error_of(with({4, 0}, kTypeF32, 0)), "extent 0");
  expect_says(error_of(with({1ULL << 32}, kTypeF32, 0)), "extent 4294967296 in dimension 0");
  expect_says(error_of(with({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, kTypeF32, 0)), "does not fit 63 bits");
  expect_says(error_of(with({31}, kTypeQ8, 0)), "not a whole number of blocks");
  expect_says(error_of(with({16}, 9, 0), Code::unsupported), "is of type Q8_1: tensor type id 9; supported: F32");
  expect_says(error_of(with({16}, 16, 0), Code::unsupported), "is of type IQ2_XXS: tensor type id 16; supported: F32");
  expect_says(error_of(with({16}, 99, 0), Code::unsupported), "is of type 99: tensor type id 99; supported: F32");
  expect_says(error_of(with({8}, kTypeF32, 16)), "not a multiple of the alignment 32");
  expect_says(error_of(with({17}, kTypeF32, 0)), "the file ends at byte 128, tensor \"w\" needs up to byte 132");
  expect_says(error_of(with({8}, kTypeF32, 64)), "needs up to byte 160: download it again");
  expect_says(error_of(with({8}, kTypeF32, ~std::uint64_t{31})), "does not fit 64 bits");
}

TEST(Gguf, TensorsMustBeDistinct) {
  GgufBytes names(3, 2, 0);
  names.tensor("w", {8}, kTypeF32, 0).tensor("w", {8}, kTypeF32, 32).pad(32).zeros(64);
  expect_says(error_of(names), "tensor \"w\" occurs twice");
  GgufBytes overlap(3, 2, 0);
  overlap.tensor("a", {16}, kTypeF32, 0).tensor("b", {8}, kTypeF32, 32).pad(32).zeros(64);
  expect_says(error_of(overlap), "tensor \"a\" ends at byte");
}

TEST(Gguf, FilesThatCannotBeReadAreIoErrors) {
  TestFolder folder;
  auto missing = GgufFile::open(folder.file("none.gguf"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::io);
  expect_says(missing.error().message, "none.gguf: cannot open the file");
  auto directory = GgufFile::open(folder.file("."));
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error().code, Code::io);
  write_bytes(folder.file("empty.gguf"), {});
  auto empty = GgufFile::open(folder.file("empty.gguf"));
  ASSERT_FALSE(empty.has_value());
  expect_says(empty.error().message, "the file is empty");
}

class Split : public testing::Test {
 protected:
  std::string path(int part) const { return folder_.file("m-0000" + std::to_string(part + 1) + "-of-00002.gguf"); }
  void write(int part, std::uint16_t number, std::uint16_t count, std::uint32_t tensors, std::string_view name) {
    constexpr std::uint32_t kU16 = 2;
    GgufBytes bytes(3, 1, 3);
    bytes.key("split.no", kU16).number(number).key("split.count", kU16).number(count);
    bytes.key("split.tensors.count", 5).number(tensors);
    bytes.tensor(name, {8}, kTypeF32, 0).pad(32).raw(std::string(name) + "234567890123456789012345678901");
    write_bytes(path(part), bytes.bytes());
  }
  std::string error(int part = 0) {
    auto model = GgufFile::open(path(part));
    return model ? "no error" : model.error().message;
  }
  TestFolder folder_;
};

TEST_F(Split, AnyPartOpensAll) {
  write(0, 0, 2, 2, "aa");
  write(1, 1, 2, 2, "bb");
  for (const int part : {0, 1}) {
    auto model = GgufFile::open(path(part));
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ((*model)->part_count(), 2U);
    ASSERT_EQ((*model)->weights().size(), 2U);
    EXPECT_EQ((*model)->weights()[0].name, "aa");
    EXPECT_EQ((*model)->mapped(1)[0], std::byte{'b'});
    EXPECT_EQ((*model)->metadata().u32("split.no").value_or(9), 0U);
  }
  expect_says(GgufFile::from_memory(read_bytes(path(0))).error().message, "one of 2 parts");
}

TEST_F(Split, PartsThatDoNotFitTogetherAreErrors) {
  write(0, 0, 2, 2, "aa");
  expect_says(error(), "m-00002-of-00002.gguf: cannot open the file");
  write(1, 0, 2, 2, "bb");
  expect_says(error(), "m-00002-of-00002.gguf: says it is part 1 of 2, its name says part 2 of 2");
  expect_says(error(1), "its name must end in -00001-of-00002.gguf");
  write(1, 1, 2, 2, "aa");
  expect_says(error(), "tensor \"aa\" occurs twice");
  write(1, 1, 2, 2, "bb");
  write(0, 0, 2, 3, "aa");
  expect_says(error(), "the 2 parts hold 2 tensors, split.tensors.count says 3");
}

}  // namespace
}  // namespace shunt::models
