#include "base/system/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace shunt {

Result<FileLock> FileLock::take(const std::filesystem::path& file) {
  const std::string path = file.string() + ".lock";
  const int opened = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (opened < 0)
    return fail(Code::io, fmt::format("{}: cannot be opened: {}", path, std::generic_category().message(errno)));
  FileLock lock(opened);
  while (::flock(opened, LOCK_EX) != 0)
    if (errno != EINTR) break;
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) static_cast<void>(::close(file_));
}

}  // namespace shunt
