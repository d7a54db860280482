// The folders of caches.
#include "base/system/cache_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace shunt {
namespace {

namespace fs = std::filesystem;

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "shunt_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    root_ = folder;
    for (const char* name : kVariables) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (before_[i])
        setenv(kVariables[i], before_[i]->c_str(), 1);
      else
        unsetenv(kVariables[i]);
    fs::remove_all(root_);
  }
  static void set(const char* name, const fs::path& value) { ASSERT_EQ(setenv(name, value.c_str(), 1), 0); }

  static constexpr const char* kVariables[] = {"SHUNT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  fs::path root_;
  std::vector<std::optional<std::string>> before_;
};

TEST_F(CacheFolder, TheMostParticularVariableNamesIt) {
  set("HOME", root_ / "home");
  EXPECT_EQ(cache_folder().value(), root_ / "home" / ".cache" / "shunt");
  set("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(cache_folder().value(), root_ / "home" / ".cache" / "shunt") << "the standard ignores relative ones";
  set("XDG_CACHE_HOME", root_ / "caches");
  EXPECT_EQ(cache_folder().value(), root_ / "caches" / "shunt");
  set("SHUNT_CACHE_DIR", root_ / "mine");
  EXPECT_EQ(cache_folder().value(), root_ / "mine");
}

TEST_F(CacheFolder, ItIsMadeForItsUserAlone) {
  set("SHUNT_CACHE_DIR", root_ / "a" / "b");
  EXPECT_EQ(fs::status(cache_folder().value()).permissions(), fs::perms::owner_all);
}

TEST_F(CacheFolder, WithoutAPlaceItSaysWhatToSet) {
  const auto nowhere = cache_folder();
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::io);
  EXPECT_NE(nowhere.error().message.find("SHUNT_CACHE_DIR"), std::string::npos);
  std::ofstream(root_ / "file") << "no folder";
  for (const fs::path& place : {root_ / "file", root_ / "file" / "below"}) {
    set("SHUNT_CACHE_DIR", place);
    const auto blocked = cache_folder();
    ASSERT_FALSE(blocked.has_value());
    EXPECT_EQ(blocked.error().code, Code::io);
    EXPECT_NE(blocked.error().message.find(place.string()), std::string::npos) << blocked.error().message;
  }
}

}  // namespace
}  // namespace shunt
