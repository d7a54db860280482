// Excludes other processes while a file of the cache folder is read, changed and written back.
//
// The lock is on a file beside it, which remains: a file that gets replaced cannot be locked itself. The lock ends with
// its process. One thread at a time; two objects exclude each other within a process too.
#pragma once

#include <filesystem>

#include "shunt/status.h"

namespace shunt {

class FileLock {
 public:
  // Waits for the lock. On file systems without locks, the result excludes nobody. Errors: io.
  [[nodiscard]] static Result<FileLock> take(const std::filesystem::path& file);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;
};

}  // namespace shunt
