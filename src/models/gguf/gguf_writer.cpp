#include "models/gguf/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "models/gguf/gguf_parse.h"

namespace shunt::models {
namespace {

constexpr std::uint64_t kLargestPiece = 16U << 20U;

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
      return fail(Code::invalid, fmt::format("metadata key {} has no value", quoted_name(key)));
  }
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    const DTypeInfo& dtype = info_of(tensor.dtype);
    if (dtype.gguf_id < 0)
      return fail(Code::invalid, fmt::format("tensor {}: GGUF files know no {}", quoted_name(tensor.name), dtype.name));
    if (tensor.shape.elements() == 0)
      return fail(Code::invalid,
                  fmt::format("tensor {} is empty: {}", quoted_name(tensor.name), to_string(tensor.shape)));
    auto bytes = bytes_of(tensor.dtype, tensor.shape);
    if (!bytes) return fail_at(fmt::format("tensor {}", quoted_name(tensor.name)), std::move(bytes).error());
    text.put(tensor.name);
    text.put(tensor.shape.rank());
    for (std::size_t axis = tensor.shape.rank(); axis-- > 0;) text.put(std::uint64_t{tensor.shape[axis]});
    text.put(static_cast<std::uint32_t>(dtype.gguf_id));
    text.put(offset);
    const auto end = checked_sum(offset, *bytes, alignment - 1);
    if (!end)
      return fail(Code::invalid, fmt::format("tensor {} ends beyond what 64 bits can count", quoted_name(tensor.name)));
    offset = *end / alignment * alignment;
  }
  return text;
}

Status check_names(std::span<const GgufTensor> tensors) {
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : tensors)
    if (!names.insert(tensor.name).second)
      return fail(Code::invalid, fmt::format("tensor {} occurs twice", quoted_name(tensor.name)));
  return {};
}

}  // namespace

Result<std::unique_ptr<GgufWriter>> GgufWriter::create(const std::string& path, const Metadata& metadata,
                                                       std::span<const GgufTensor> tensors, WriteProgress progress) {
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
  const std::uint64_t total_bytes = std::reduce(tensor_bytes.begin(), tensor_bytes.end());
  SHUNT_TRY_ASSIGN(WholeFile file, WholeFile::create(path));
  auto writer = std::make_unique<GgufWriter>(Opened{.path = path,
                                                    .file = std::move(file),
                                                    .alignment = *alignment,
                                                    .tensors = {tensors.begin(), tensors.end()},
                                                    .tensor_bytes = std::move(tensor_bytes),
                                                    .total_bytes = total_bytes,
                                                    .progress = std::move(progress)});
  SHUNT_TRY(writer->opened_.file.append(header->bytes()));
  SHUNT_TRY(writer->pad());
  return writer;
}

GgufWriter::GgufWriter(Opened opened) : opened_(std::move(opened)) {}

Status GgufWriter::pad() {
  static constexpr std::array<std::byte, 4096> kZeros{};
  std::uint64_t missing = (opened_.alignment - opened_.file.bytes() % opened_.alignment) % opened_.alignment;
  while (missing != 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(missing, kZeros.size());
    SHUNT_TRY(opened_.file.append(std::span(kZeros).first(piece)));
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
    SHUNT_TRY(opened_.file.append(bytes.first(piece)));
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
  if (opened_.progress(written_bytes_, opened_.total_bytes)) return {};
  return fail(Code::interrupted, fmt::format("{}: interrupted after {} of {} bytes; nothing is kept of them",
                                             opened_.path, written_bytes_, opened_.total_bytes));
}

Status GgufWriter::finish() {
  if (tensor_ != opened_.tensors.size())
    return fail(Code::invalid, fmt::format("{}: tensor {} has only {} of {} bytes", opened_.path,
                                           quoted_name(opened_.tensors[tensor_].name), tensor_position_,
                                           opened_.tensor_bytes[tensor_]));
  return opened_.file.finish();
}

}  // namespace shunt::models
