#include "npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <limits>

#include "base/system/mapped_file.h"
#include "base/system/text_file.h"

namespace shunt::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 29U;

std::unexpected<Error> no_array(std::string why) {
  return fail(Code::invalid, fmt::format("not a NumPy array: {}", why));
}

struct Header {
  std::string_view type;  // "<f4"
  Shape shape;
};

// The text after `'key':` in the header's dictionary.
std::string_view after(std::string_view text, std::string_view key) {
  const std::size_t place = text.find(fmt::format("'{}':", key));
  if (place == std::string_view::npos) return {};
  text.remove_prefix(place + key.size() + 3);
  return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

Result<Shape> shape_in(std::string_view text) {
  if (!text.starts_with('(') || !text.contains(')')) return no_array("its header has no shape");
  text = text.substr(1, text.find(')') - 1);
  Shape shape;
  std::uint64_t elements = 1;
  while (text.find_first_of("0123456789") != std::string_view::npos) {
    text.remove_prefix(text.find_first_of("0123456789"));
    std::uint32_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc()) return no_array("an axis is too long");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (shape.rank() == kMaxRank)
      return fail(Code::unsupported, fmt::format("the array has more than {} axes", kMaxRank));
    shape.append(extent);
    elements *= std::max(1U, extent);
    if (elements > kMostElements)
      return fail(Code::unsupported, fmt::format("the array has more than {} elements", kMostElements));
  }
  return shape;
}

Result<Header> header_in(std::string_view text) {
  Header header;
  header.type = after(text, "descr");
  if (header.type.size() < 4 || header.type[0] != '\'') return no_array("its header has no type");
  header.type = header.type.substr(1, header.type.find('\'', 1) - 1);
  if (after(text, "fortran_order").starts_with("True"))
    return fail(Code::unsupported, "the array is in Fortran order; save numpy.ascontiguousarray(x) instead");
  SHUNT_TRY_ASSIGN(header.shape, shape_in(after(text, "shape")));
  return header;
}

template <class From, class To>
Status convert(std::span<const std::byte> raw, std::uint64_t count, std::vector<std::byte>& out) {
  if (raw.size() != count * sizeof(From))
    return no_array(fmt::format("it has {} bytes of elements and needs {}", raw.size(), count * sizeof(From)));
  out.resize(count * sizeof(To));
  for (std::uint64_t i = 0; i < count; ++i) {
    From from;
    std::memcpy(&from, raw.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_integral_v<To> && sizeof(From) > sizeof(To))
      if (from < std::numeric_limits<To>::min() || from > std::numeric_limits<To>::max())
        return fail(Code::invalid, fmt::format("element {} is {}, which does not fit a 32-bit integer", i, from));
    const auto to = static_cast<To>(from);
    std::memcpy(out.data() + i * sizeof(To), &to, sizeof(To));
  }
  return {};
}

Result<Array> array_of(const Header& header, std::span<const std::byte> raw) {
  Array array{.dtype = DType::F32, .shape = header.shape, .bytes = {}};
  const std::uint64_t count = header.shape.elements();
  Status done;
  if (header.type == "<f4") {
    done = convert<float, float>(raw, count, array.bytes);
  } else if (header.type == "<f8") {
    done = convert<double, float>(raw, count, array.bytes);
  } else if (header.type == "<f2") {
    array.dtype = DType::F16;
    done = convert<std::uint16_t, std::uint16_t>(raw, count, array.bytes);
  } else if (header.type == "<i4" || header.type == "<i8" || header.type == "|b1") {
    array.dtype = DType::I32;
    done = header.type == "<i4"   ? convert<std::int32_t, std::int32_t>(raw, count, array.bytes)
           : header.type == "<i8" ? convert<std::int64_t, std::int32_t>(raw, count, array.bytes)
                                  : convert<std::uint8_t, std::int32_t>(raw, count, array.bytes);
  } else {
    return fail(
        Code::unsupported,
        fmt::format("elements of type \"{}\" are not supported; use one of <f4 <f8 <f2 <i4 <i8 |b1", header.type));
  }
  SHUNT_TRY(done);
  return array;
}

std::string_view type_name(DType dtype, bool is_wide) {
  if (dtype == DType::F16) return "<f2";
  if (dtype == DType::I32) return is_wide ? "<i8" : "<i4";
  return "<f4";
}

}  // namespace

Result<Array> array_from_npy(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 12) return no_array("it lacks the magic number");
  const std::size_t width = text[6] == '\x01' ? 2 : 4;  // of the header's length
  std::uint32_t length = 0;
  std::memcpy(&length, text.data() + 8, width);
  const std::size_t begin = 8 + width;
  if (length > text.size() - begin) return no_array("its header is cut off");
  SHUNT_TRY_ASSIGN(const Header header, header_in(text.substr(begin, length)));
  return array_of(header, bytes.subspan(begin + length));
}

Result<Array> read_npy(const std::string& path) {
  SHUNT_TRY_ASSIGN(const auto file, MappedFile::open(path));
  auto array = array_from_npy(file->bytes());
  if (!array) return fail_at(path, std::move(array).error());
  SHUNT_TRY(file->health());
  return array;
}

Status write_npy(const std::string& path, const Array& array, onnx::Type type) {
  const bool is_wide = array.dtype == DType::I32 && type == onnx::Type::i64;
  std::string shape;
  for (std::uint32_t axis = 0; axis < array.shape.rank(); ++axis) shape += fmt::format("{}, ", array.shape[axis]);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type_name(array.dtype, is_wide), shape);
  header += std::string(63 - (10 + header.size()) % 64, ' ') + '\n';
  std::string text = fmt::format("{}{}{}{}{}{}", kMagic, '\x01', '\x00', static_cast<char>(header.size() % 256),
                                 static_cast<char>(header.size() / 256), header);
  const std::uint64_t count = array.shape.elements();
  if (is_wide) {
    for (std::uint64_t i = 0; i < count; ++i) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, array.bytes.data() + i * sizeof narrow, sizeof narrow);
      const std::int64_t wide = narrow;
      text.append(reinterpret_cast<const char*>(&wide), sizeof wide);
    }
  } else {
    text.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  }
  return write_text_file(path, text);
}

}  // namespace shunt::cli
