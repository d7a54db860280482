// A file that others see in its old state or complete, never in part. Everything that Shunt writes goes through here.
//
// The bytes go to a file beside the target, which replaces it at the end. An unfinished file is removed by the
// destructor, or by remove_unfinished_files() if a signal ends the process. Each object belongs to one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shunt/status.h"

namespace shunt {

// The readers of a new file: those that the umask permits, or only its user.
enum class Readers : std::uint8_t { by_umask, user };

class WholeFile {
 public:
  // Links are followed: the file they name is replaced. Errors: invalid if it is not a regular file, io.
  [[nodiscard]] static Result<WholeFile> create(const std::string& path, Readers readers = Readers::by_umask);
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile();

  // Errors: io (a full disk, ...); invalid after finish().
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Replaces the target once the bytes have reached the disk. Errors: io; invalid if called twice.
  [[nodiscard]] Status finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  WholeFile(std::string path, std::string target);
  [[nodiscard]] Status open_beside(Readers readers);
  [[nodiscard]] std::unexpected<Error> error(std::string_view what, int number) const;
  void remove();

  std::string path_;        // as the caller gave it
  std::string target_;      // links resolved
  std::string unfinished_;  // beside the target
  std::size_t entry_;       // in the list of unfinished files
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

// Errors: those of WholeFile.
[[nodiscard]] Status write_whole_file(const std::string& path, std::span<const std::byte> content,
                                      Readers readers = Readers::by_umask);
// Returns whether write_whole_file() could write there now; leaves nothing behind. Errors: the same.
[[nodiscard]] Status check_writable(const std::string& path);

// Returns the file that a path names after following links, even if that does not exist yet.
[[nodiscard]] std::string without_links(std::string path);

// Removes the unfinished files of a process that ends early. Safe in a signal handler.
void remove_unfinished_files() noexcept;

}  // namespace shunt
