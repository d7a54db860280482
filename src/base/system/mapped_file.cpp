#include "base/system/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace shunt {
namespace {

std::unexpected<Error> io_error(std::string_view path, std::string_view what, int number) {
  return fail(Code::io, fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(number)));
}

std::unexpected<Error> shrunk(std::string_view path, std::uint64_t bytes) {
  return fail(Code::io, fmt::format("{}: the file became shorter than the {} bytes it had when it was opened; "
                                    "do not change it while it is in use",
                                    path, bytes));
}

// Has the system read and map pages, which it may be unable to. Returns false if it does not know how: Linux does from
// 5.14 on.
bool populate([[maybe_unused]] std::span<const std::byte> pages) {
#if defined(MADV_POPULATE_READ)
  return ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_POPULATE_READ) == 0 || errno != EINVAL;
#else
  return false;
#endif
}

constexpr std::size_t kHugePage = std::size_t{2} << 20U;

// Maps a file read-only, where the system can map whole huge pages of it, if it keeps the file in such: Linux does from
// 6.16 on for ext4, among others, if it is asked for them before it reads the file. Processors read memory faster then.
// Returns MAP_FAILED as mmap() does.
void* map_file(int file, std::size_t bytes) {
  if (bytes < kHugePage) return ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  const std::size_t reserved = bytes + kHugePage;
  void* const space = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  auto* const begin = static_cast<std::byte*>(space);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  void* const mapped = ::mmap(begin + before, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) {
    const int why = errno;
    ::munmap(space, reserved);
    errno = why;
    return MAP_FAILED;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = before + (bytes + page - 1) / page * page;
  if (before != 0) ::munmap(space, before);
  if (end < reserved) ::munmap(begin + end, reserved - end);
#if defined(MADV_HUGEPAGE)
  static_cast<void>(::madvise(mapped, bytes, MADV_HUGEPAGE));
#endif
  return mapped;
}

// Closes the file unless ownership was passed on.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return io_error(path, "open the file", errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return io_error(path, "examine the file", errno);
  if (!S_ISREG(status.st_mode)) return fail(Code::io, fmt::format("{}: not a regular file", path));
  if (status.st_size <= 0) return fail(Code::io, fmt::format("{}: the file is empty", path));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = map_file(file.get(), size);
  if (address == MAP_FAILED) return io_error(path, "map the file", errno);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(address), size);
  auto guard = SigbusGuard::watch(bytes);
  if (!guard) {
    ::munmap(address, size);
    return fail_at(path, std::move(guard).error());
  }
  return std::make_unique<MappedFile>(Opened{path, file.take(), bytes, std::move(*guard)});
}

MappedFile::MappedFile(Opened opened)
    : path_(std::move(opened.path)), file_(opened.file), bytes_(opened.bytes), guard_(std::move(opened.guard)) {}

MappedFile::~MappedFile() {
  // The guard must end before the addresses can be reused.
  guard_.reset();
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(file_);
}

Status MappedFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
    return fail(Code::invalid, fmt::format("{}: {} bytes from byte {} run past the end at {}", path_, out.size(),
                                           offset, bytes_.size()));
  while (!out.empty()) {
    const ssize_t count = ::pread(file_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path_, fmt::format("read at byte {}", offset), errno);
    if (count == 0) return shrunk(path_, bytes_.size());
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

void MappedFile::fetch(std::uint64_t offset, std::uint64_t bytes) const {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (offset >= bytes_.size() || bytes == 0) return;
  const std::uint64_t begin = offset / page * page;
  const std::uint64_t end = offset + std::min(bytes, bytes_.size() - offset);
  if (populate(bytes_.subspan(begin, end - begin))) return;
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_WILLNEED);
  // The guard replaces pages that the file has lost.
  for (std::uint64_t at = begin; at < end; at += page)
    static_cast<void>(*static_cast<const volatile std::byte*>(&bytes_[at]));
}

void MappedFile::release(std::uint64_t offset, std::uint64_t bytes) const {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t size = bytes_.size();
  if (offset >= size) return;
  const std::uint64_t begin = (offset + page - 1) / page * page;
  // Nobody else uses the file's last page, so it is released with the file's last byte.
  const std::uint64_t last = bytes >= size - offset ? size : offset + bytes;
  const std::uint64_t end = last == size ? size : last / page * page;
  if (begin >= end) return;
  // A failure only costs memory.
  (void)::madvise(const_cast<std::byte*>(bytes_.data()) + begin, end - begin, MADV_DONTNEED);
}

Status MappedFile::health() const {
  struct stat status = {};
  // Within its last page, a shorter file reads as zeros without a signal, so the size is checked too.
  if (guard_->broken() || ::fstat(file_, &status) != 0 || std::cmp_less(status.st_size, bytes_.size()))
    return shrunk(path_, bytes_.size());
  return {};
}

}  // namespace shunt
