// Files that appear whole or not at all.
#include "base/system/whole_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace shunt {
namespace {

namespace fs = std::filesystem;

class WholeFileTest : public testing::Test {
 public:
  WholeFileTest() {
    std::string folder = (fs::temp_directory_path() / "shunt_whole_XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~WholeFileTest() override { fs::remove_all(folder_); }

 protected:
  [[nodiscard]] std::string path(std::string_view name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_)) names.push_back(file.path().filename().string());
    return names;
  }
  [[nodiscard]] std::string content(std::string_view name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static Status write(const std::string& path, std::string_view text, Readers readers = Readers::by_umask) {
    return write_whole_file(path, std::as_bytes(std::span(text)), readers);
  }

  fs::path folder_;
};

TEST_F(WholeFileTest, TakesItsPlaceOnlyWhenItIsFinished) {
  ASSERT_TRUE(write(path("file"), "first, which is longer"));
  auto file = WholeFile::create(path("file"));
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_TRUE(file->append(std::as_bytes(std::span(std::string_view("second")))));
  EXPECT_EQ(content("file"), "first, which is longer");
  EXPECT_EQ(file->bytes(), 6U);
  ASSERT_TRUE(file->finish());
  EXPECT_EQ(content("file"), "second");
  EXPECT_EQ(files(), std::vector<std::string>{"file"});
  EXPECT_FALSE(file->finish().has_value());
  EXPECT_FALSE(file->append({}).has_value());
}

TEST_F(WholeFileTest, OneThatIsNotFinishedLeavesNothing) {
  {
    auto file = WholeFile::create(path("file"));
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(files().size(), 1U);
    const WholeFile moved = std::move(*file);
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(WholeFileTest, ASignalHandlerRemovesThoseOfItsProcess) {
  std::vector<WholeFile> unfinished;
  for (int number = 0; number < 3; ++number) unfinished.push_back(*WholeFile::create(path("file")));
  EXPECT_EQ(files().size(), 3U);
  // A forked process, such as the one that tries drivers, removes none of them.
  const pid_t child = fork();
  if (child == 0) {
    remove_unfinished_files();
    _exit(0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(files().size(), 3U);
  remove_unfinished_files();
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(unfinished[0].finish().has_value());
}

TEST_F(WholeFileTest, ManyAtOnceAreAllFinished) {
  std::vector<WholeFile> files_at_once;
  for (int number = 0; number < 40; ++number)
    files_at_once.push_back(*WholeFile::create(path("file" + std::to_string(number))));
  for (WholeFile& file : files_at_once) EXPECT_TRUE(file.finish());
  EXPECT_EQ(files().size(), 40U);
}

TEST_F(WholeFileTest, AFullDiskIsAnErrorAndLeavesWhatThereWas) {
  ASSERT_TRUE(write(path("file"), "before"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = write(path("file"), "more than ten bytes");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  static_cast<void>(std::signal(SIGXFSZ, handler));
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::io);
  EXPECT_NE(full.error().message.find(path("file") + ": cannot write beyond byte 10"), std::string::npos)
      << full.error().message;
  EXPECT_EQ(content("file"), "before");
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(WholeFileTest, ALinkStaysOneWhetherOrNotItsFileIsThere) {
  ASSERT_TRUE(write(path("there"), "old"));
  for (const std::string name : {"there", "not yet"}) {
    fs::create_symlink(name, path("link to " + name));
    ASSERT_TRUE(write(path("link to " + name), "new"));
    EXPECT_TRUE(fs::is_symlink(path("link to " + name)));
    EXPECT_EQ(content(name), "new");
  }
}

TEST_F(WholeFileTest, TheLongestNameIsPossible) {
  const std::string name(255, 'n');
  ASSERT_TRUE(write(path(name), "text"));
  EXPECT_EQ(files(), std::vector<std::string>{name});
}

TEST_F(WholeFileTest, OthersReadItAsTheyAreLet) {
  const mode_t mask = umask(022);
  ASSERT_TRUE(write(path("all"), "text"));
  ASSERT_TRUE(write(path("user"), "text", Readers::user));
  umask(mask);
  EXPECT_EQ(static_cast<int>(fs::status(path("all")).permissions()), 0644);
  EXPECT_EQ(static_cast<int>(fs::status(path("user")).permissions()), 0600);
}

TEST_F(WholeFileTest, WhatCannotBeWrittenIsSaidAtOnce) {
  for (const auto& [file, code] : {std::pair{"/nonexistent/file", Code::io}, {"/dev/null", Code::invalid}})
    for (const Status& status : {write(file, "text"), check_writable(file)}) {
      ASSERT_FALSE(status.has_value()) << file;
      EXPECT_EQ(status.error().code, code);
      EXPECT_NE(status.error().message.find(file), std::string::npos) << status.error().message;
    }
  EXPECT_TRUE(check_writable(path("new")));
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace shunt
