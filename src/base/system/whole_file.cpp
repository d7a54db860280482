#include "base/system/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace shunt {
namespace {

constexpr std::size_t kLongestPath = 4096;
constexpr std::size_t kLongestName = 200;  // below 255, to leave room for what is appended
constexpr int kAttempts = 100;

// The list of unfinished files is global because a signal handler can reach nothing else. An entry belongs to the
// process that made it: a forked child must not remove its parent's files.
struct Unfinished {
  static constexpr int kFree = 0;
  static constexpr int kReserved = -1;
  std::atomic<int> owner{kFree};
  std::array<char, kLongestPath> path{};
};
constexpr std::size_t kEntries = 16;
constexpr std::size_t kNoEntry = kEntries;
std::array<Unfinished, kEntries> unfinished_files;
static_assert(std::atomic<int>::is_always_lock_free);

// Returns kNoEntry if the list is full.
std::size_t reserve_entry() {
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    int expected = Unfinished::kFree;
    if (unfinished_files[entry].owner.compare_exchange_strong(expected, Unfinished::kReserved)) return entry;
  }
  return kNoEntry;
}

void set_entry(std::size_t entry, const std::string& path) {
  if (entry == kNoEntry || path.size() >= kLongestPath) return;
  unfinished_files[entry].owner.store(Unfinished::kReserved);
  std::memcpy(unfinished_files[entry].path.data(), path.c_str(), path.size() + 1);
  unfinished_files[entry].owner.store(static_cast<int>(::getpid()));
}

void free_entry(std::size_t entry) {
  if (entry != kNoEntry) unfinished_files[entry].owner.store(Unfinished::kFree);
}

Status check_target(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {};
  return fail(Code::invalid,
              fmt::format("\"{}\" is not a regular file, so it cannot be replaced; name a new file", path));
}

}  // namespace

std::string without_links(std::string path) {
  constexpr int kMostLinks = 40;
  for (int link = 0; link < kMostLinks; ++link) {
    std::array<char, kLongestPath> text{};
    const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
    if (length <= 0) break;
    const std::string_view named(text.data(), static_cast<std::size_t>(length));
    const std::size_t slash = path.rfind('/');
    if (named.starts_with('/') || slash == std::string::npos)
      path = named;
    else
      path.replace(slash + 1, std::string::npos, named);
  }
  return path;
}

WholeFile::WholeFile(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)), entry_(reserve_entry()) {}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      unfinished_(std::move(other.unfinished_)),
      entry_(std::exchange(other.entry_, kNoEntry)),
      file_(std::exchange(other.file_, -1)),
      bytes_(other.bytes_) {}

WholeFile::~WholeFile() {
  if (file_ >= 0) {
    static_cast<void>(::close(file_));
    remove();
  }
  free_entry(entry_);
}

Result<WholeFile> WholeFile::create(const std::string& path, Readers readers) {
  SHUNT_TRY(check_target(path));
  WholeFile file(path, without_links(path));
  SHUNT_TRY(file.open_beside(readers));
  return file;
}

Status WholeFile::open_beside(Readers readers) {
  constexpr mode_t kUser = S_IRUSR | S_IWUSR;
  constexpr mode_t kAll = kUser | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  const std::size_t name = target_.rfind('/') + 1;  // 0 without a slash
  const std::string stem = target_.substr(0, name + std::min(target_.size() - name, kLongestName));
  for (int attempt = 0; attempt < kAttempts && file_ < 0; ++attempt) {
    unfinished_ = fmt::format("{}.partial-{}-{}", stem, ::getpid(), attempt);
    set_entry(entry_, unfinished_);
    file_ =
        ::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, readers == Readers::user ? kUser : kAll);
    if (file_ < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (file_ >= 0) return {};
  return error("create the file", errno);
}

Status WholeFile::append(std::span<const std::byte> bytes) {
  if (file_ < 0) return fail(Code::invalid, fmt::format("{}: the file is already finished", path_));
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30U;
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return error(fmt::format("write beyond byte {}", bytes_), count < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    bytes_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status WholeFile::finish() {
  if (file_ < 0) return fail(Code::invalid, fmt::format("{}: the file is already finished", path_));
  int reason = 0;
  // A file system may only now notice that it is full. One that cannot sync (EINVAL) has nothing to wait for.
  if (::fsync(file_) != 0 && errno != EINVAL && errno != ENOSYS) reason = errno;
  if (::close(std::exchange(file_, -1)) != 0 && reason == 0) reason = errno;
  if (reason == 0 && std::rename(unfinished_.c_str(), target_.c_str()) != 0) reason = errno;
  if (reason == 0) return {};
  remove();
  return error("finish the file", reason);
}

void WholeFile::remove() { static_cast<void>(::unlink(unfinished_.c_str())); }

std::unexpected<Error> WholeFile::error(std::string_view what, int number) const {
  return fail(Code::io, fmt::format("{}: cannot {}: {}", path_, what, std::generic_category().message(number)));
}

Status write_whole_file(const std::string& path, std::span<const std::byte> content, Readers readers) {
  SHUNT_TRY_ASSIGN(WholeFile file, WholeFile::create(path, readers));
  SHUNT_TRY(file.append(content));
  return file.finish();
}

Status check_writable(const std::string& path) {
  SHUNT_TRY(WholeFile::create(path));
  return {};
}

void remove_unfinished_files() noexcept {
  for (const Unfinished& file : unfinished_files)
    if (file.owner.load() == static_cast<int>(::getpid())) static_cast<void>(::unlink(file.path.data()));
}

}  // namespace shunt
