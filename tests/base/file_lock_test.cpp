// The holder of a file's lock keeps others out.
#include "base/system/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace shunt {
namespace {

// Returns whether someone else could take the lock now.
bool is_free(const std::filesystem::path& file) {
  const int other = ::open((file.string() + ".lock").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_GE(other, 0);
  const bool taken = flock(other, LOCK_EX | LOCK_NB) == 0;
  ::close(other);
  return taken;
}

TEST(FileLock, KeepsOthersOutUntilItGoes) {
  std::string folder = (std::filesystem::temp_directory_path() / "shunt_lock_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "file";
  {
    auto lock = FileLock::take(file);
    ASSERT_TRUE(lock.has_value()) << lock.error().message;
    EXPECT_FALSE(is_free(file));
    const FileLock moved = std::move(*lock);
    EXPECT_FALSE(is_free(file));
  }
  EXPECT_TRUE(is_free(file));
  const auto nowhere = FileLock::take(file / "below");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::io);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shunt
