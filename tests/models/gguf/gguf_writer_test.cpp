#include "models/gguf/gguf_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "models/gguf/gguf.h"
#include "models/gguf/gguf_bytes.h"

namespace shunt::models {
namespace {

Metadata sample_metadata() {
  Metadata metadata;
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("u8", std::uint8_t{200});
  metadata.set("i8", std::int8_t{-5});
  metadata.set("u16", std::uint16_t{60000});
  metadata.set("i16", std::int16_t{-30000});
  metadata.set("u32", std::uint32_t{4000000000U});
  metadata.set("i32", std::int32_t{-7});
  metadata.set("u64", std::uint64_t{1} << 63);
  metadata.set("i64", std::int64_t{-1});
  metadata.set("f32", 1.5F);
  metadata.set("f64", 0.1);
  metadata.set("yes", true);
  metadata.set("texts", std::vector<std::string>{"", "a", std::string("\0b", 2)});
  metadata.set("flags", std::vector<bool>{true, false, true});
  metadata.set("floats", std::vector<float>{1.0F, -2.0F});
  metadata.set("empty", std::vector<std::int32_t>{});
  return metadata;
}

std::vector<std::byte> bytes_from(std::size_t count, unsigned first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((first + i * 7) & 0xFF);
  return bytes;
}

TEST(GgufWriter, WhatIsWrittenIsReadAgain) {
  TestFolder folder;
  const std::string path = folder.file("model.gguf");
  const Metadata metadata = sample_metadata();
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {3}},
                                {.name = "b", .dtype = DType::Q8_0, .shape = {2, 3, 64}},
                                {.name = "c", .dtype = DType::BF16, .shape = {1, 2, 3, 5}}};
  const auto data = bytes_from(12 + 2 * 3 * 68 + 60, 3);
  auto writer = GgufWriter::create(path, metadata, tensors);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  // Pieces that end inside tensors and cross tensor borders.
  for (std::size_t at = 0; at < data.size(); at += 37) {
    auto piece = std::span(data).subspan(at, std::min<std::size_t>(37, data.size() - at));
    ASSERT_TRUE((*writer)->write(piece).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE((*writer)->write(std::span(data).first(1)).has_value());
  auto finished = (*writer)->finish();
  ASSERT_TRUE(finished.has_value()) << finished.error().message;
  EXPECT_FALSE((*writer)->finish().has_value());
  EXPECT_EQ(folder.file_count(), 1U);

  auto model = GgufFile::open(path);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_TRUE(std::ranges::equal((*model)->metadata().all(), metadata.all()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < std::size(tensors); ++i) {
    const WeightInfo& info = (*model)->weights()[i];
    EXPECT_EQ(info.name, tensors[i].name);
    EXPECT_EQ(info.dtype, tensors[i].dtype);
    EXPECT_EQ(info.shape, tensors[i].shape);
    EXPECT_TRUE(std::ranges::equal((*model)->mapped(i), std::span(data).subspan(at, info.bytes)));
    at += info.bytes;
  }
  EXPECT_EQ(at, data.size());
}

TEST(GgufWriter, ACopyOfTheTrainedModelIsTheSameFile) {
  TestFolder folder;
  auto model = GgufFile::open(SHUNT_TEST_DATA "/tiny-llama-f16.gguf");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  std::vector<GgufTensor> tensors;
  for (const WeightInfo& info : (*model)->weights()) tensors.push_back({info.name, info.dtype, info.shape});
  auto writer = GgufWriter::create(folder.file("copy.gguf"), (*model)->metadata(), tensors);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  for (std::size_t i = 0; i < tensors.size(); ++i) ASSERT_TRUE((*writer)->write((*model)->mapped(i)).has_value());
  ASSERT_TRUE((*writer)->finish().has_value());
  EXPECT_EQ(read_bytes(folder.file("copy.gguf")), read_bytes(SHUNT_TEST_DATA "/tiny-llama-f16.gguf"));
}

TEST(GgufWriter, AlignmentOfTheMetadataIsKept) {
  TestFolder folder;
  Metadata metadata;
  metadata.set("general.alignment", std::uint32_t{4096});
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {3}},
                                {.name = "b", .dtype = DType::F32, .shape = {4}}};
  auto writer = GgufWriter::create(folder.file("m"), metadata, tensors);
  ASSERT_TRUE(writer.has_value()) << writer.error().message;
  ASSERT_TRUE((*writer)->write(bytes_from(28, 0)).has_value());
  ASSERT_TRUE((*writer)->finish().has_value());
  auto model = GgufFile::open(folder.file("m"));
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->data_offset(), 4096U);
  EXPECT_EQ((*model)->total_bytes(), 3U * 4096);
}

TEST(GgufWriter, AnUnfinishedFileLeavesTheTargetAsItWas) {
  TestFolder folder;
  const std::string path = folder.file("model.gguf");
  write_bytes(path, bytes_from(5, 0));
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {3}}};
  {
    auto writer = GgufWriter::create(path, {}, tensors);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    auto early = (*writer)->finish();
    ASSERT_FALSE(early.has_value());
    EXPECT_NE(early.error().message.find("tensor \"a\" has only 0 of 12 bytes"), std::string::npos);
    EXPECT_EQ(folder.file_count(), 2U);
  }
  EXPECT_EQ(folder.file_count(), 1U);
  EXPECT_EQ(read_bytes(path), bytes_from(5, 0));
}

TEST(GgufWriter, TellsItsProgressWhichMayEndIt) {
  TestFolder folder;
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {3}},
                                {.name = "b", .dtype = DType::F32, .shape = {2}}};
  std::vector<std::uint64_t> told;
  const auto until_the_end = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 20U);
    told.push_back(done);
    return done < total;
  };
  {
    auto writer = GgufWriter::create(folder.file("m"), {}, tensors, until_the_end);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    EXPECT_TRUE((*writer)->write(bytes_from(16, 0)).has_value());
    const Status ended = (*writer)->write(bytes_from(4, 0));
    ASSERT_FALSE(ended.has_value());
    EXPECT_NE(ended.error().message.find("interrupted after 20 of 20 bytes"), std::string::npos);
  }
  EXPECT_EQ(told, (std::vector<std::uint64_t>{12, 16, 20}));
  EXPECT_EQ(folder.file_count(), 0U);
}

TEST(GgufWriter, AFolderOrDeviceIsNotReplaced) {
  TestFolder folder;
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {3}}};
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::filesystem::path(pipe).parent_path().string()}) {
    auto writer = GgufWriter::create(path, {}, tensors);
    ASSERT_FALSE(writer.has_value()) << path;
    EXPECT_EQ(writer.error().code, Code::invalid);
    EXPECT_NE(writer.error().message.find("\"" + path + "\" is not a regular file"), std::string::npos);
  }
  EXPECT_EQ(folder.file_count(), 1U);
}

TEST(GgufWriter, AFullDiskIsAnIoErrorAndLeavesNothing) {
  TestFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const GgufTensor tensors[] = {{.name = "a", .dtype = DType::F32, .shape = {1000}}};
  Status written;
  {
    auto writer = GgufWriter::create(folder.file("m"), {}, tensors);
    if (writer) written = (*writer)->write(bytes_from(4000, 0));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, Code::io);
  EXPECT_EQ(folder.file_count(), 0U);
}

TEST(GgufWriter, WhatAFileCannotHoldIsRefused) {
  TestFolder folder;
  const auto error = [&](const Metadata& metadata, std::vector<GgufTensor> tensors) {
    auto writer = GgufWriter::create(folder.file("m"), metadata, tensors);
    return writer ? Code::internal : writer.error().code;
  };
  EXPECT_EQ(error({}, {{"a", DType::U32, {1}}}), Code::invalid);
  EXPECT_EQ(error({}, {{"a", DType::Q8_0, {31}}}), Code::invalid);
  EXPECT_EQ(error({}, {{"a", DType::F32, {3, 0}}}), Code::invalid);
  EXPECT_EQ(error({}, {{"a", DType::F32, {1}}, {"a", DType::F32, {1}}}), Code::invalid);
  Metadata nothing;
  nothing.set("key", MetadataValue{});
  EXPECT_EQ(error(nothing, {}), Code::invalid);
  EXPECT_EQ(folder.file_count(), 0U);
  auto nowhere = GgufWriter::create(folder.file("none/m"), {}, {});
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::io);
}

}  // namespace
}  // namespace shunt::models
