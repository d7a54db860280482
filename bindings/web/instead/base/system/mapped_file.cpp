// A page has no files; models reach it as bytes in memory.
#include "base/system/mapped_file.h"

#include <fmt/format.h>

namespace shunt {

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  return fail(Code::unsupported, fmt::format("{}: a page cannot open files; give the model's bytes", path));
}

MappedFile::MappedFile(Opened opened)
    : path_(std::move(opened.path)), file_(opened.file), bytes_(opened.bytes), guard_(std::move(opened.guard)) {}
MappedFile::~MappedFile() { static_cast<void>(file_); }  // none was opened

Status MappedFile::read(std::uint64_t, std::span<std::byte>) const {
  return fail(Code::unsupported, fmt::format("{}: a page cannot read files", path_));
}
void MappedFile::fetch(std::uint64_t, std::uint64_t) const {}
void MappedFile::release(std::uint64_t, std::uint64_t) const {}
Status MappedFile::health() const { return {}; }

// Without mappings there is nothing to guard.
SigbusGuard::SigbusGuard(SigbusGuard&&) noexcept = default;
SigbusGuard::~SigbusGuard() = default;

}  // namespace shunt
