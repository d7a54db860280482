#include "models/gguf/gguf_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/checked.h"

namespace shunt::models {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read by copying its little-endian numbers");

// Generous for any model, yet small enough that records of a few bytes cannot claim much memory.
constexpr std::uint64_t kMaxKeys = 1U << 14;
constexpr std::uint64_t kMaxTensors = 1U << 18;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMinKeyBytes = 8 + 4 + 1;         // length, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;  // length, rank, type, offset

// Reads the bytes of a header in order.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> file) : file_(file) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t left() const { return file_.size() - position_; }

  template <class T>
    requires std::is_arithmetic_v<T>
  Status read(T& value, std::string_view what) {
    std::conditional_t<std::same_as<T, bool>, std::uint8_t, T> raw{};
    SHUNT_TRY(need(sizeof raw, what));
    std::memcpy(&raw, file_.data() + position_, sizeof raw);
    position_ += sizeof raw;
    value = static_cast<T>(raw);
    return {};
  }

  Status read(std::string& text, std::string_view what) {
    std::uint64_t length = 0;
    SHUNT_TRY(read(length, what));
    SHUNT_TRY(need(length, what));
    text.assign(reinterpret_cast<const char*>(file_.data() + position_), length);
    position_ += length;
    return {};
  }

  // Reads a list of values of at least one byte each.
  template <class T>
  Status read(std::vector<T>& list, std::string_view what) {
    std::uint64_t count = 0;
    SHUNT_TRY(read(count, what));
    constexpr std::uint64_t kLeast = std::same_as<T, std::string> ? sizeof(std::uint64_t) : sizeof(T);
    if (count > left() / kLeast)
      return invalid(
          fmt::format("{} claims {} values at byte {}, but the file ends at byte {}: it is cut short or "
                      "damaged; download it again",
                      what, count, position_, file_.size()));
    if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
      list.resize(count);
      if (count != 0) std::memcpy(list.data(), file_.data() + position_, count * sizeof(T));
      position_ += count * sizeof(T);
    } else {
      list.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        T value{};
        SHUNT_TRY(read(value, what));
        list.push_back(std::move(value));
      }
    }
    return {};
  }

 private:
  Status need(std::uint64_t bytes, std::string_view what) const {
    if (bytes <= left()) return {};
    return invalid(
        fmt::format("the file ends at byte {}, {} needs {} bytes from byte {}: it is cut short or damaged; "
                    "download it again",
                    file_.size(), what, bytes, position_));
  }

  std::span<const std::byte> file_;
  std::uint64_t position_ = 0;
};

template <class T>
Status read_into(Cursor& cursor, MetadataValue& value, std::string_view what) {
  return cursor.read(value.emplace<T>(), what);
}

Status read_scalar(Cursor& cursor, std::uint32_t type, MetadataValue& value, std::string_view what) {
  switch (type) {
#define SHUNT_READ(name, id, type) \
  case id:                         \
    return read_into<type>(cursor, value, what);
    SHUNT_METADATA_TYPES(SHUNT_READ)
#undef SHUNT_READ
  }
  return invalid(
      fmt::format("{} has the unknown value type {} (before byte {}): the file is damaged, or newer than "
                  "this program",
                  what, type, cursor.position()));
}

Status read_array(Cursor& cursor, std::uint32_t type, MetadataValue& value, std::string_view what) {
  switch (type) {
#define SHUNT_READ(name, id, type) \
  case id:                         \
    return read_into<std::vector<type>>(cursor, value, what);
    SHUNT_METADATA_TYPES(SHUNT_READ)
#undef SHUNT_READ
    case kGgufArrayType:
      return fail(Code::unsupported, fmt::format("{} is an array of arrays, which no known model needs", what));
  }
  return invalid(
      fmt::format("{} is an array of the unknown value type {} (before byte {}): the file is damaged, or "
                  "newer than this program",
                  what, type, cursor.position()));
}

Status read_entry(Cursor& cursor, std::uint64_t index, Metadata& metadata) {
  std::string key;
  SHUNT_TRY(cursor.read(key, fmt::format("the name of metadata key {}", index)));
  if (key.empty() || key.size() > kMaxKeyBytes)
    return invalid(
        fmt::format("metadata key {} has a name of {} bytes, 1 to {} are possible", index, key.size(), kMaxKeyBytes));
  const std::string what = fmt::format("metadata key {}", quoted_name(key));
  std::uint32_t type = 0;
  MetadataValue value;
  SHUNT_TRY(cursor.read(type, what));
  if (type == kGgufArrayType) {
    SHUNT_TRY(cursor.read(type, what));
    SHUNT_TRY(read_array(cursor, type, value, what));
  } else {
    SHUNT_TRY(read_scalar(cursor, type, value, what));
  }
  if (metadata.find(key) != nullptr) return invalid(fmt::format("{} occurs twice", what));
  return metadata.insert(std::move(key), std::move(value));
}

// Reads a shape, which the file stores innermost extent first.
Status read_shape(Cursor& cursor, Shape& shape, std::string_view what) {
  std::uint32_t rank = 0;
  SHUNT_TRY(cursor.read(rank, what));
  if (rank > kMaxRank)
    return invalid(fmt::format("{} has {} dimensions, at most {} are possible", what, rank, kMaxRank));
  std::array<std::uint32_t, kMaxRank> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    std::uint64_t extent = 0;
    SHUNT_TRY(cursor.read(extent, what));
    if (extent == 0 || extent > std::numeric_limits<std::uint32_t>::max())
      return invalid(fmt::format("{} has the extent {} in dimension {}, 1 to {} are possible", what, extent, i,
                                 std::numeric_limits<std::uint32_t>::max()));
    extents[i] = static_cast<std::uint32_t>(extent);
  }
  if (rank == 0) shape.append(1);
  for (std::size_t i = rank; i-- > 0;) shape.append(extents[i]);
  return {};
}

struct ForeignType {
  std::string_view name;
  std::uint32_t id;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};

constexpr ForeignType kForeignTypes[] = {
#define SHUNT_FOREIGN_TYPE(name, id, elements, bytes) {name, id, elements, bytes},
#include "models/gguf/foreign_types.def"
};

ForeignTensor foreign_tensor(const WeightInfo& info, std::uint32_t type) {
  ForeignTensor tensor{.name = info.name, .type = fmt::format("type {}", type), .shape = info.shape};
  const auto known = std::ranges::find(kForeignTypes, type, &ForeignType::id);
  if (known == std::end(kForeignTypes)) return tensor;
  tensor.type = known->name;
  const std::uint32_t blocks = info.shape.columns() / known->block_elements;
  tensor.bytes = checked_product(info.shape.rows(), blocks, known->block_bytes).value_or(0);
  return tensor;
}

// Appends a tensor and its offset, which is still relative to the start of the tensor data.
Status read_tensor(Cursor& cursor, std::uint64_t index, ForeignTypes foreign, GgufHeader& header) {
  WeightInfo info;
  SHUNT_TRY(cursor.read(info.name, fmt::format("the name of tensor {}", index)));
  const std::string what = fmt::format("tensor {}", quoted_name(info.name));
  SHUNT_TRY(read_shape(cursor, info.shape, what));
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  SHUNT_TRY(cursor.read(type, what));
  auto dtype = dtype_from_gguf_id(type);
  if (!dtype) {
    if (auto fits = bytes_of(DType::F32, info.shape); !fits) return fail_at(what, std::move(fits).error());
    ForeignTensor tensor = foreign_tensor(info, type);
    if (foreign == ForeignTypes::refuse)
      return fail_at(fmt::format("{} is of {}{}", what, tensor.type.starts_with("type ") ? "" : "type ", tensor.type),
                     std::move(dtype).error());
    header.foreign.push_back(std::move(tensor));
    return cursor.read(offset, what);
  }
  info.dtype = *dtype;
  auto bytes = bytes_of(info.dtype, info.shape);
  if (!bytes) return fail_at(what, std::move(bytes).error());
  info.bytes = *bytes;
  SHUNT_TRY(cursor.read(offset, what));
  header.tensors.push_back(std::move(info));
  header.offsets.push_back(offset);
  return {};
}

// Turns relative offsets into offsets in the file and checks that each tensor is inside the file.
Status place_tensors(std::uint64_t file_bytes, GgufHeader& header) {
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const WeightInfo& info = header.tensors[i];
    std::uint64_t& offset = header.offsets[i];
    if (offset % header.alignment != 0)
      return invalid(fmt::format("tensor {} begins {} bytes into the data, not a multiple of the alignment {}",
                                 quoted_name(info.name), offset, header.alignment));
    const auto end = checked_sum(offset, header.data_offset, info.bytes);
    if (!end) return invalid(fmt::format("tensor {} has an offset that does not fit 64 bits", quoted_name(info.name)));
    if (*end > file_bytes)
      return invalid(fmt::format("the file ends at byte {}, tensor {} needs up to byte {}: download it again",
                                 file_bytes, quoted_name(info.name), *end));
    offset += header.data_offset;
  }
  return {};
}

// Refuses overlapping tensors, with which a small file could claim much memory.
Status check_overlaps(const GgufHeader& header) {
  std::vector<std::uint32_t> order(header.tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::uint32_t index) { return header.offsets[index]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint64_t end = header.offsets[order[i - 1]] + header.tensors[order[i - 1]].bytes;
    if (end > header.offsets[order[i]])
      return invalid(fmt::format("tensor {} ends at byte {}, behind the start of tensor {} at byte {}",
                                 quoted_name(header.tensors[order[i - 1]].name), end,
                                 quoted_name(header.tensors[order[i]].name), header.offsets[order[i]]));
  }
  return {};
}

Status read_version(Cursor& cursor, std::uint32_t& version) {
  std::uint32_t magic = 0;
  SHUNT_TRY(cursor.read(magic, "the magic number"));
  if (magic != kGgufMagic)
    return invalid(fmt::format("not a GGUF file: it begins with the number {:#010x}, not with \"GGUF\"", magic));
  SHUNT_TRY(cursor.read(version, "the version"));
  if (version == 2 || version == 3) return {};
  const std::uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 0xFFFF)
    return fail(Code::unsupported,
                fmt::format("a big-endian GGUF file (version {}); convert the model to a little-endian one", swapped));
  return fail(Code::unsupported,
              fmt::format("GGUF version {}; versions 2 and 3 can be read: convert the model again", version));
}

Status check_count(std::string_view what, std::uint64_t count, std::uint64_t most, std::uint64_t least_bytes,
                   std::uint64_t left) {
  if (count > most) return invalid(fmt::format("claims {} {}, at most {} are possible", count, what, most));
  if (count > left / least_bytes)
    return invalid(fmt::format("claims {} {}, but only {} bytes follow: it is cut short or damaged; download it again",
                               count, what, left));
  return {};
}

}  // namespace

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

std::optional<std::uint32_t> layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

std::string quoted_name(std::string_view name) {
  constexpr std::size_t kMost = 80;
  std::string text = "\"";
  for (const char character : name.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte >= 0x7F || character == '"' || character == '\\')
      text += fmt::format("\\x{:02x}", byte);
    else
      text += character;
  }
  text += '"';
  return name.size() <= kMost ? text : fmt::format("{}... ({} bytes)", text, name.size());
}

Result<std::uint32_t> gguf_alignment(const Metadata& metadata) {
  SHUNT_TRY_ASSIGN(const std::uint32_t alignment, metadata.u32_or(kGgufAlignmentKey, kGgufDefaultAlignment));
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > kGgufMaxAlignment)
    return invalid(fmt::format("{} is {}, it must be a power of two from 8 to {}", kGgufAlignmentKey, alignment,
                               kGgufMaxAlignment));
  return alignment;
}

Result<GgufHeader> parse_gguf(std::span<const std::byte> file, ForeignTypes foreign) {
  Cursor cursor(file);
  GgufHeader header;
  std::uint64_t tensors = 0;
  std::uint64_t keys = 0;
  SHUNT_TRY(read_version(cursor, header.version));
  SHUNT_TRY(cursor.read(tensors, "the number of tensors"));
  SHUNT_TRY(cursor.read(keys, "the number of metadata keys"));
  SHUNT_TRY(check_count("metadata keys", keys, kMaxKeys, kMinKeyBytes, cursor.left()));
  SHUNT_TRY(check_count("tensors", tensors, kMaxTensors, kMinTensorBytes, cursor.left()));
  for (std::uint64_t i = 0; i < keys; ++i) SHUNT_TRY(read_entry(cursor, i, header.metadata));
  SHUNT_TRY_ASSIGN(header.alignment, gguf_alignment(header.metadata));

  SHUNT_TRY(check_count("tensors", tensors, kMaxTensors, kMinTensorBytes, cursor.left()));
  header.tensors.reserve(tensors);
  header.offsets.reserve(tensors);
  for (std::uint64_t i = 0; i < tensors; ++i) SHUNT_TRY(read_tensor(cursor, i, foreign, header));
  const std::uint64_t padding = (header.alignment - cursor.position() % header.alignment) % header.alignment;
  header.data_offset = cursor.position() + padding;
  SHUNT_TRY(place_tensors(file.size(), header));
  SHUNT_TRY(check_overlaps(header));
  return header;
}

}  // namespace shunt::models
