#include "base/system/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "models/gguf/gguf_bytes.h"

namespace shunt {
namespace {

using models::TestFolder;
using models::write_bytes;

constexpr std::size_t kBytes = 100000;

std::string file_of_sevens(const TestFolder& folder) {
  std::string path = folder.file("sevens");
  write_bytes(path, std::vector<std::byte>(kBytes, std::byte{7}));
  return path;
}

std::size_t count(std::span<const std::byte> bytes, std::byte value) {
  return static_cast<std::size_t>(std::ranges::count(bytes, value));
}

TEST(MappedFile, AFileThatShrinksReadsAsZerosAndIsAnIoError) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_TRUE((*file)->health().has_value());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  EXPECT_EQ(count((*file)->bytes(), std::byte{7}), 4096U);
  EXPECT_EQ(count((*file)->bytes(), std::byte{0}), kBytes - 4096);
  auto health = (*file)->health();
  ASSERT_FALSE(health.has_value());
  EXPECT_EQ(health.error().code, Code::io);
  EXPECT_NE(health.error().message.find(path + ": the file became shorter than the 100000 bytes"), std::string::npos);

  std::vector<std::byte> out(10);
  EXPECT_TRUE((*file)->read(0, out).has_value());
  auto gone = (*file)->read(5000, out);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, Code::io);
}

// So that the system can map whole huge pages of it.
TEST(MappedFile, AnyLongFileBeginsAtAHugePage) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20U;
  TestFolder folder;
  for (const std::size_t bytes : {kHugePage - 1, kHugePage, kHugePage + 1, 2 * kHugePage + 5000}) {
    const std::string path = folder.file("long");
    write_bytes(path, std::vector<std::byte>(bytes, std::byte{7}));
    const auto file = MappedFile::open(path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const std::span<const std::byte> mapped = (*file)->bytes();
    ASSERT_EQ(mapped.size(), bytes);
    EXPECT_EQ(count(mapped, std::byte{7}), bytes);
    if (bytes >= kHugePage) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.data()) % kHugePage, 0U);
    }
  }
}

TEST(MappedFile, StaysBrokenWhenTheFileGrowsAgain) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ((*file)->bytes()[50000], std::byte{0});
  write_bytes(path, std::vector<std::byte>(kBytes, std::byte{8}));
  EXPECT_FALSE((*file)->health().has_value());
}

TEST(MappedFile, NoticesALossInsideTheLastPage) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(::truncate(path.c_str(), kBytes - 1), 0);
  EXPECT_FALSE((*file)->health().has_value());
}

TEST(MappedFile, OneBrokenFileLeavesTheOthersWhole) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  write_bytes(folder.file("other"), std::vector<std::byte>(kBytes, std::byte{9}));
  auto broken = MappedFile::open(path);
  auto whole = MappedFile::open(folder.file("other"));
  ASSERT_TRUE(broken.has_value() && whole.has_value());
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(count((*broken)->bytes(), std::byte{0}), kBytes);
  EXPECT_EQ(count((*whole)->bytes(), std::byte{9}), kBytes);
  EXPECT_FALSE((*broken)->health().has_value());
  EXPECT_TRUE((*whole)->health().has_value());
}

TEST(MappedFile, ReleasedPagesComeBackFromTheFile) {
  TestFolder folder;
  auto file = MappedFile::open(file_of_sevens(folder));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(count((*file)->bytes(), std::byte{7}), kBytes);
  (*file)->release(100, 60000);
  (*file)->release(60000, ~std::uint64_t{0});
  (*file)->release(~std::uint64_t{0}, 1);
  EXPECT_EQ(count((*file)->bytes(), std::byte{7}), kBytes);
}

// Returns how many pages of a file's mapping this process has in memory, according to /proc/self/smaps.
std::size_t present_pages(std::string_view path) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    inside = inside || line.ends_with(path);
    if (inside && line.starts_with("Rss:"))
      return std::stoul(line.substr(4)) * 1024 / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  ADD_FAILURE() << path << " is not in /proc/self/smaps";
  return 0;
}

TEST(MappedFile, ReleaseGivesBackEveryPageThatLiesInside) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::span<const std::byte> bytes = (*file)->bytes();
  const std::size_t pages = (kBytes + page - 1) / page;
  const auto touch = [&] { ASSERT_EQ(count(bytes, std::byte{7}), kBytes); };
  touch();
  ASSERT_EQ(present_pages(path), pages);
  (*file)->release(1, 3 * page - 1);  // pages 1 and 2; one byte of page 0 is outside
  EXPECT_EQ(present_pages(path), pages - 2);
  touch();
  (*file)->release(page, page);
  EXPECT_EQ(present_pages(path), pages - 1);
  touch();
  (*file)->release(page, 2 * page - 1);  // one byte of page 2 is outside
  EXPECT_EQ(present_pages(path), pages - 1);
  touch();
  (*file)->release(page, kBytes);  // to the end, inside a page
  EXPECT_EQ(present_pages(path), 1U);
}

TEST(MappedFile, FetchBringsEveryPageOfTheSpanIn) {
  TestFolder folder;
  const std::string path = folder.file("pages");
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPages = 2000;
  write_bytes(path, std::vector<std::byte>(kPages * page - 10, std::byte{7}));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(present_pages(path), 0U);
  (*file)->fetch(1000 * page + 1, page);  // bytes of two pages
  EXPECT_GE(present_pages(path), 2U);
  EXPECT_LT(present_pages(path), 1000U) << "the system may map neighbours, but not all";
  std::vector<unsigned char> in_memory(2);
  const std::byte* const first = (*file)->bytes().data() + 1000 * page;
  ASSERT_EQ(::mincore(const_cast<std::byte*>(first), 2 * page, in_memory.data()), 0);
  EXPECT_EQ(in_memory[0] & in_memory[1] & 1, 1);
  (*file)->fetch(kPages * page, 1);
  (*file)->fetch(~std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_LT(present_pages(path), 1000U);
  (*file)->fetch(100, ~std::uint64_t{0});  // to the end
  EXPECT_EQ(present_pages(path), kPages);
  EXPECT_TRUE((*file)->health().has_value());
}

TEST(MappedFile, FetchingPagesThatTheFileHasLostLeavesTheRestReadable) {
  TestFolder folder;
  const std::string path = file_of_sevens(folder);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  (*file)->fetch(0, kBytes);
  (*file)->fetch(50000, 100);
  EXPECT_EQ((*file)->bytes()[4095], std::byte{7});
  EXPECT_EQ((*file)->bytes()[50000], std::byte{0});
  EXPECT_EQ((*file)->health().error().code, Code::io);
}

void exit_with_42(int) { ::_exit(42); }

constexpr const char* kAnyFile = SHUNT_TEST_DATA "/tiny-llama-f16.gguf";

// Maps an unguarded file, truncates it and reads a page that is gone.
void touch_missing_page() {
  const int file = ::memfd_create("unguarded", 0);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) ::_exit(1);
  void* address = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
  if (address == MAP_FAILED || ::ftruncate(file, 0) != 0) ::_exit(1);
  const volatile char* bytes = static_cast<const char*>(address);
  ::_exit(bytes[50000] == 0 ? 2 : 3);
}

class SigbusGuardDeath : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SigbusGuardDeath, OtherFaultsReachTheEarlierHandler) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, exit_with_42);
        auto guarded = MappedFile::open(kAnyFile);
        if (guarded) touch_missing_page();
      },
      testing::ExitedWithCode(42), "");
}

TEST_F(SigbusGuardDeath, OtherFaultsKillWhereNobodyHandledThem) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);
        auto guarded = MappedFile::open(kAnyFile);
        if (guarded) touch_missing_page();
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace shunt
