#include "base/system/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/system/thread_pool.h"
#include "devices/cpu/memory.h"

namespace shunt {
namespace {

// A machine's proc/ and sys/ in a temporary folder.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  [[nodiscard]] auto memory() const { return cgroup_available_memory(root_); }
  [[nodiscard]] auto cores() const { return cgroup_cores(root_); }

  std::filesystem::path root_ = testing::TempDir() + "/shunt-cgroup-" + std::to_string(::getpid());
};

TEST_F(Cgroup, LimitNothingWhereThereAreNone) {
  EXPECT_EQ(memory(), std::nullopt);
  EXPECT_EQ(cores(), std::nullopt);
  put("proc/self/cgroup", "0::/user");
  put("sys/fs/cgroup/user/memory.max", "max");
  put("sys/fs/cgroup/user/memory.current", "500");
  put("sys/fs/cgroup/user/cpu.max", "max 100000");
  EXPECT_EQ(memory(), std::nullopt);
  EXPECT_EQ(cores(), std::nullopt);
}

TEST_F(Cgroup, LeaveWhatIsNotTakenAndIdlePagesOfFiles) {
  put("proc/self/cgroup", "0::/");
  put("sys/fs/cgroup/memory.max", "1000");
  put("sys/fs/cgroup/memory.current", "700");
  EXPECT_EQ(memory(), 300U);
  put("sys/fs/cgroup/memory.stat", "anon 100\ninactive_file 200\nactive_file 50");
  EXPECT_EQ(memory(), 500U);
  put("sys/fs/cgroup/memory.stat", "inactive_file 900");
  EXPECT_EQ(memory(), 1000U);
  put("sys/fs/cgroup/memory.stat", "inactive_file 0");
  put("sys/fs/cgroup/memory.current", "1100");
  EXPECT_EQ(memory(), 0U);
}

TEST_F(Cgroup, CountWithTheTightestOfTheirParents) {
  put("proc/self/cgroup", "0::/a/b/c");
  for (const auto& [group, limit, quota] :
       {std::tuple{"a/b/c", "900", "800000"}, {"a/b", "300", "400000"}, {"a", "700", "150000"}}) {
    const std::string folder = std::string("sys/fs/cgroup/") + group;
    put(folder + "/memory.max", limit);
    put(folder + "/memory.current", "100");
    put(folder + "/cpu.max", std::string(quota) + " 100000");
  }
  EXPECT_EQ(memory(), 200U);
  EXPECT_EQ(cores(), 2U);
}

TEST_F(Cgroup, OfVersionOneHaveAFolderPerController) {
  put("proc/self/cgroup", "7:cpuset:/x\n4:memory:/box\n2:cpu,cpuacct:/box\n0::/");
  put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1000");
  put("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "700");
  put("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 50");
  put("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1");
  put("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(memory(), 350U);
  EXPECT_EQ(cores(), std::nullopt);
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cores(), 3U);
}

// In a container without its own cgroup namespace, the group's path belongs to the host and does not exist.
TEST_F(Cgroup, AreFoundAboveAFolderThatIsNotThere) {
  put("proc/self/cgroup", "4:memory:/docker/0123");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "600");
  EXPECT_EQ(memory(), 400U);
}

TEST_F(Cgroup, OfBrokenFilesDoNotCount) {
  put("proc/self/cgroup", "nonsense\n0::/");
  put("sys/fs/cgroup/memory.max", "");
  put("sys/fs/cgroup/memory.current", "x");
  for (const char* text : {"", " ", "100", "100 ", "0 0", "5 0", "x y"}) {
    put("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cores(), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(memory(), std::nullopt);
}

TEST(CgroupOfThisProcess, BoundsWhatIsUsable) {
  EXPECT_GE(usable_cores(), 1U);
  EXPECT_LE(usable_cores(), cgroup_cores().value_or(usable_cores()));
  EXPECT_GT(cpu::available_memory().value_or(1), 0U);
}

}  // namespace
}  // namespace shunt
