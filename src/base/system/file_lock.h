// Keeps other processes out while a file of the cache folder is read, changed and written again.
//
// The lock is held on a file beside it, which stays: one that is replaced cannot be locked itself. A process that ends
// gives it back. One thread at a time; two objects exclude each other within a process too.
#pragma once

#include <filesystem>

#include "shunt/status.h"

namespace shunt {

class FileLock {
 public:
  // Waits for its turn. File systems without locks give one that excludes nobody. Errors: io.
  [[nodiscard]] static Result<FileLock> take(const std::filesystem::path& file);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;
};

}  // namespace shunt
