#include "trace/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace shunt::trace {
namespace {

TEST(TextFile, AnUnwritablePathIsAnError) {
  for (const auto& [path, code] : {std::pair{"/nonexistent/trace.json", Code::io}, {"/dev/null", Code::invalid}})
    for (const Status& status : {write_text_file(path, "text"), check_text_path(path)}) {
      ASSERT_FALSE(status.has_value()) << path;
      EXPECT_EQ(status.error().code, code);
      EXPECT_NE(status.error().message.find(path), std::string::npos) << status.error().message;
    }
}

TEST(TextFile, WhatWasWrittenIsRead) {
  const std::string path = testing::TempDir() + "/shunt-text-file";
  ASSERT_TRUE(check_text_path(path).has_value());
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const std::string& text : {std::string("a\nb\0c", 5), std::string()}) {
    ASSERT_TRUE(write_text_file(path, text).has_value());
    EXPECT_EQ(read_text_file(path), text);
  }
  std::filesystem::remove(path);
}

TEST(TextFile, AnUnreadablePathIsAnError) {
  for (const char* path : {"/nonexistent/trace.json", "/"}) {
    const auto text = read_text_file(path);
    ASSERT_FALSE(text.has_value()) << path;
    EXPECT_EQ(text.error().code, Code::io);
  }
}

}  // namespace
}  // namespace shunt::trace
