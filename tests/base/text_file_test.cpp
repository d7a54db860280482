#include "base/system/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace shunt {
namespace {

TEST(TextFile, WhatWasWrittenIsRead) {
  const std::string path = testing::TempDir() + "/shunt-text-file";
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
}  // namespace shunt
