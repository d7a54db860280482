// Gives each test a device cache of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace shunt::test {

// Sets an environment variable for its own lifetime.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class OwnCache : public testing::Test {
 protected:
  OwnCache()
      : folder_(testing::TempDir() + "/cache_" + std::to_string(getpid())), setting_("SHUNT_CACHE_DIR", folder_) {}
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file() const { return folder_ + "/devices.json"; }

  std::string folder_;
  Setting setting_;
};

}  // namespace shunt::test
