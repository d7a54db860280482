// A whole file, mapped read-only. Owns the mapping and the open file.
//
// The bytes stay readable for the life of the object. If the file shrinks, missing bytes read as zero and health()
// reports it. All calls are safe from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/system/sigbus_guard.h"
#include "shunt/status.h"

namespace shunt {

class MappedFile {
  struct Opened {
    std::string path;
    int file;
    std::span<const std::byte> bytes;
    SigbusGuard guard;
  };

 public:
  // For open() only.
  explicit MappedFile(Opened opened);
  // Errors: io, naming the file and the system's reason.
  [[nodiscard]] static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Reads through the file, not the mapping. Errors: io, also if the file has become shorter.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> out) const;
  // Returns when the pages of the span are in memory and mapped. Missing ones stay so; health() reports them.
  void fetch(std::uint64_t offset, std::uint64_t bytes) const;
  // Releases the pages wholly inside the span; touching them reads them from the file again.
  void release(std::uint64_t offset, std::uint64_t bytes) const;
  // Errors: io once the file is shorter than when it was mapped.
  [[nodiscard]] Status health() const;

 private:
  std::string path_;
  int file_;
  std::span<const std::byte> bytes_;
  std::optional<SigbusGuard> guard_;  // empty only in the destructor
};

}  // namespace shunt
