#include "models/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <set>
#include <system_error>
#include <type_traits>
#include <utility>

#include "models/gguf_parse.h"

namespace shunt::models {
namespace {

constexpr std::uint64_t kLargestPiece = 16U << 20U;

std::unexpected<Error> io_error(std::string_view path, std::string_view what, int number) {
  return fail(Code::io, fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(number)));
}

class HeaderText {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T number) {
    std::array<char, sizeof(T)> raw{};
    std::copy_n(reinterpret_cast<const char*>(&number), sizeof(T), raw.begin());
    text_.append(raw.data(), raw.size());
  }
  void put(const std::string& text) {
    put(std::uint64_t{text.size()});
    text_ += text;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }

 private:
  std::string text_;
};

template <class T>
constexpr std::uint32_t id_of_type() {
#define SHUNT_ID(name, id, type) \
  if (std::is_same_v<T, type>) return id;
  SHUNT_METADATA_TYPES(SHUNT_ID)
#undef SHUNT_ID
}

struct PutValue {
  HeaderText& text;

  bool operator()(std::monostate) const { return false; }
  template <class T>
  bool operator()(const T& scalar) const {
    text.put(id_of_type<T>());
    text.put(scalar);
    return true;
  }
  template <class T>
  bool operator()(const std::vector<T>& list) const {
    text.put(kGgufArrayType);
    text.put(id_of_type<T>());
    text.put(std::uint64_t{list.size()});
    for (const auto& value : list) text.put(static_cast<const T&>(value));
    return true;
  }
};

Result<HeaderText> header_of(const Metadata& metadata, std::span<const GgufTensor> tensors, std::uint64_t alignment) {
  HeaderText text;
  text.put(kGgufMagic);
  text.put(std::uint32_t{3});
  text.put(std::uint64_t{tensors.size()});
  text.put(std::uint64_t{metadata.all().size()});
  for (const auto& [key, value] : metadata.all()) {
    text.put(key);
    if (!std::visit(PutValue{text}, value))
      return fail(Code::invalid, fmt::format("metadata key {} has no value", quoted(key)));
  }
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    const DTypeInfo& dtype = info_of(tensor.dtype);
    if (dtype.gguf_id < 0)
      return fail(Code::invalid, fmt::format("tensor {}: GGUF files know no {}", quoted(tensor.name), dtype.name));
    if (tensor.shape.elements() == 0)
      return fail(Code::invalid, fmt::format("tensor {} is empty: {}", quoted(tensor.name), to_string(tensor.shape)));
    auto bytes = bytes_of(tensor.dtype, tensor.shape);
    if (!bytes) return fail_at(fmt::format("tensor {}", quoted(tensor.name)), std::move(bytes).error());
    text.put(tensor.name);
    text.put(tensor.shape.rank());
    for (std::size_t axis = tensor.shape.rank(); axis-- > 0;) text.put(std::uint64_t{tensor.shape[axis]});
    text.put(static_cast<std::uint32_t>(dtype.gguf_id));
    text.put(offset);
    offset += (*bytes + alignment - 1) / alignment * alignment;
  }
  return text;
}

Status check_names(std::span<const GgufTensor> tensors) {
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : tensors)
    if (!names.insert(tensor.name).second)
      return fail(Code::invalid, fmt::format("tensor {} stands twice", quoted(tensor.name)));
  return {};
}

// The finished file takes the target's place, which must not happen to a device such as /dev/null.
Status check_target(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return {};
  return fail(Code::invalid, fmt::format("{}: is no regular file, so it cannot be replaced; name a new file", path));
}

}  // namespace

Result<std::unique_ptr<GgufWriter>> GgufWriter::create(const std::string& path, const Metadata& metadata,
                                                       std::span<const GgufTensor> tensors, WriteProgress progress) {
  SHUNT_TRY(check_target(path));
  auto alignment = gguf_alignment(metadata);
  if (!alignment) return fail_at(path, std::move(alignment).error());
  if (auto checked = check_names(tensors); !checked) return fail_at(path, std::move(checked).error());
  auto header = header_of(metadata, tensors, *alignment);
  if (!header) return fail_at(path, std::move(header).error());

  std::vector<std::uint64_t> tensor_bytes;
  for (const GgufTensor& tensor : tensors) {
    SHUNT_TRY_ASSIGN(const std::uint64_t bytes, bytes_of(tensor.dtype, tensor.shape));
    tensor_bytes.push_back(bytes);
  }
  constexpr int kAttempts = 100;
  std::string partial_path;
  int file = -1;
  for (int attempt = 0; attempt < kAttempts && file < 0; ++attempt) {
    partial_path = fmt::format("{}.partial-{}-{}", path, ::getpid(), attempt);
    file = ::open(partial_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) break;
  }
  if (file < 0) return io_error(path, "create the file", errno);
  auto writer = std::make_unique<GgufWriter>(Opened{.path = path,
                                                    .partial_path = std::move(partial_path),
                                                    .file = file,
                                                    .alignment = *alignment,
                                                    .tensors = {tensors.begin(), tensors.end()},
                                                    .tensor_bytes = std::move(tensor_bytes),
                                                    .progress = std::move(progress)});
  SHUNT_TRY(writer->append(header->bytes()));
  SHUNT_TRY(writer->pad());
  return writer;
}

GgufWriter::GgufWriter(Opened opened) : opened_(std::move(opened)) {}

GgufWriter::~GgufWriter() {
  if (opened_.file < 0) return;
  ::close(opened_.file);
  ::unlink(opened_.partial_path.c_str());
}

Status GgufWriter::append(std::span<const std::byte> bytes) {
  if (opened_.file < 0) return fail(Code::invalid, fmt::format("{}: the file is finished", opened_.path));
  while (!bytes.empty()) {
    const ssize_t count = ::write(opened_.file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(opened_.path, fmt::format("write beyond byte {}", position_), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    position_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status GgufWriter::pad() {
  static constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = (opened_.alignment - position_ % opened_.alignment) % opened_.alignment;
  while (missing != 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(missing, kZeros.size());
    SHUNT_TRY(append(std::span(kZeros).first(piece)));
    missing -= piece;
  }
  return {};
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (tensor_ == opened_.tensors.size())
      return fail(Code::invalid, fmt::format("{}: {} bytes beyond the last tensor", opened_.path, bytes.size()));
    const std::uint64_t piece =
        std::min<std::uint64_t>({bytes.size(), opened_.tensor_bytes[tensor_] - tensor_position_, kLargestPiece});
    SHUNT_TRY(append(bytes.first(piece)));
    bytes = bytes.subspan(piece);
    tensor_position_ += piece;
    written_bytes_ += piece;
    SHUNT_TRY(tell_progress());
    while (tensor_ < opened_.tensors.size() && tensor_position_ == opened_.tensor_bytes[tensor_]) {
      SHUNT_TRY(pad());
      ++tensor_;
      tensor_position_ = 0;
    }
  }
  return {};
}

Status GgufWriter::tell_progress() const {
  if (!opened_.progress) return {};
  const std::uint64_t total = std::reduce(opened_.tensor_bytes.begin(), opened_.tensor_bytes.end());
  if (opened_.progress(written_bytes_, total)) return {};
  return fail(Code::interrupted, fmt::format("{}: interrupted after {} of {} bytes; nothing is kept of them",
                                             opened_.path, written_bytes_, total));
}

Status GgufWriter::finish() {
  if (tensor_ != opened_.tensors.size())
    return fail(Code::invalid,
                fmt::format("{}: tensor {} has only {} of {} bytes", opened_.path,
                            quoted(opened_.tensors[tensor_].name), tensor_position_, opened_.tensor_bytes[tensor_]));
  if (opened_.file < 0) return fail(Code::invalid, fmt::format("{}: the file is finished", opened_.path));
  int reason = 0;
  if (::close(std::exchange(opened_.file, -1)) != 0 ||
      std::rename(opened_.partial_path.c_str(), opened_.path.c_str()) != 0)
    reason = errno;
  if (reason == 0) return {};
  ::unlink(opened_.partial_path.c_str());
  return io_error(opened_.path, "finish the file", reason);
}

}  // namespace shunt::models
