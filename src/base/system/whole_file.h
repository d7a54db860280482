// A file that others see as it was before or whole, never in part. Everything that Shunt writes goes through here.
//
// The bytes go to a file beside the target, which takes the target's place at the end. One that is not finished is
// removed by its destructor, or by remove_unfinished_files() where a signal ends the process. Each object belongs to
// one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shunt/status.h"

namespace shunt {

// Who may read a new file: whoever the process's umask lets, or its user alone.
enum class Readers : std::uint8_t { by_umask, user };

class WholeFile {
 public:
  // A link stays one: the file that it names is replaced. Errors: invalid for what is no regular file, io.
  [[nodiscard]] static Result<WholeFile> create(const std::string& path, Readers readers = Readers::by_umask);
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile();

  // Errors: io (a full disk, ...); invalid after finish().
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // The file takes its place once its bytes have reached the disk. Errors: io; invalid if it has done so before.
  [[nodiscard]] Status finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  WholeFile(std::string path, std::string target);
  [[nodiscard]] Status open_beside(Readers readers);
  [[nodiscard]] std::unexpected<Error> error(std::string_view what, int number) const;
  void remove();

  std::string path_;        // as the caller says it
  std::string target_;      // without links
  std::string unfinished_;  // beside it
  std::size_t entry_;       // in the list of unfinished files
  int file_ = -1;
  std::uint64_t bytes_ = 0;
};

// Errors: those of WholeFile.
[[nodiscard]] Status write_whole_file(const std::string& path, std::span<const std::byte> content,
                                      Readers readers = Readers::by_umask);
// Whether write_whole_file() could write there now; leaves nothing behind. Errors: the same.
[[nodiscard]] Status check_writable(const std::string& path);

// The file that a path names once links are followed, even where that is not there yet.
[[nodiscard]] std::string without_links(std::string path);

// For a process that ends before its files are finished. Safe in a signal handler.
void remove_unfinished_files() noexcept;

}  // namespace shunt
