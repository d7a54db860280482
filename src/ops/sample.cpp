#include "ops/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/elements.h"
#include "ops/quantize/encode.h"

namespace shunt {
namespace {

std::vector<DType> dtypes_of(std::initializer_list<DTypeKind> kinds) {
  std::vector<DType> found;
  for (std::size_t index = 0; index < dtypes().size(); ++index)
    if (std::ranges::find(kinds, dtypes()[index].kind) != kinds.end()) found.push_back(static_cast<DType>(index));
  return found;
}

// Gives cases with the same seed different numbers.
std::uint64_t mixed(Op op, std::span<const std::uint32_t> choices, std::uint64_t seed) {
  std::uint64_t hash = seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(op) + 1;
  for (const std::uint32_t choice : choices) hash = (hash ^ choice) * 0x100000001B3U + (hash >> 29);
  return hash;
}

// Fills what no kernel may read: NaN in floating dtypes and scales, and -1 as an index.
constexpr std::byte kGarbage{0xFF};

// The rest of an operand's blocks are copies of these, chosen at random: encoding takes longer than most kernels.
constexpr std::size_t kMostEncodedBlocks = 64;

// Returns the shape of the storage that a view of `shape` is cut from.
Shape storage_shape(View view, Shape shape) {
  const std::uint32_t rank = shape.rank();
  if (view == View::offset) shape.set(0, shape[0] + 1);
  if (view == View::padded) shape.set(rank - 1, shape[rank - 1] + 5);
  if (view == View::turned && rank > 1) {
    const std::uint32_t columns = shape[rank - 1];
    shape.set(rank - 1, shape[rank - 2]);
    shape.set(rank - 2, columns);
  }
  return shape;
}

// Returns the offset of the `index`th element, in the order of a contiguous tensor, from the start of the tensor.
std::uint64_t element_at(const Operand& operand, std::uint64_t index) {
  std::uint64_t at = 0;
  for (std::size_t axis = operand.shape.rank(); axis-- > 0;) {
    at += index % operand.shape[axis] * operand.strides[axis];
    index /= operand.shape[axis];
  }
  return at;
}

}  // namespace

std::span<const SizesInfo> sample_sizes() {
  static constexpr SizesInfo kRows[] = {
#define SHUNT_SAMPLE_SIZES(name, columns, entries, weight_rows, context, cases) \
  {#name, columns, entries, weight_rows, context, SizeCases::cases},
#include "ops/sample_sizes.def"
  };
  return kRows;
}

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> all;
  for (std::size_t row = 0; row < sample_sizes().size(); ++row) all.push_back(static_cast<Sizes>(row));
  return all;
}

std::string to_string(const SampleCase& which) {
  std::string choices = fmt::format("{}", fmt::join(which.choices, "."));
  if (which.sizes == Sizes::awkward) return choices;
  return fmt::format("{}:{}", sample_sizes()[static_cast<std::size_t>(which.sizes)].name, choices);
}

SampleBuilder::SampleBuilder(Op op, const SampleCase& wanted, std::uint64_t seed)
    : wanted_(wanted),
      sizes_(sample_sizes()[static_cast<std::size_t>(wanted.sizes)]),
      random_(mixed(op, wanted.choices, seed)) {
  sample_.op = op;
  sample_.parameters = {.tokens = 3, .outputs = 2};
}

bool SampleBuilder::takes(Attr attr) const {
  return std::ranges::find(row().attributes, attr) != row().attributes.end();
}

std::size_t SampleBuilder::take(std::size_t options) {
  const std::size_t number = sample_.choices.size();
  const std::size_t choice = number < wanted_.choices.size() ? wanted_.choices[number] % options : 0;
  sample_.choices.push_back(static_cast<std::uint32_t>(choice));
  sample_.options.push_back(static_cast<std::uint32_t>(options));
  return choice;
}

DType SampleBuilder::pick_floating() {
  static const std::vector<DType> kFloating = dtypes_of({DTypeKind::floating});
  return pick(std::span<const DType>(kFloating));
}

DType SampleBuilder::pick_quantized() {
  static const std::vector<DType> kQuantized = dtypes_of({DTypeKind::quantized});
  return pick(std::span<const DType>(kQuantized));
}

DType SampleBuilder::pick_weight() {
  static const std::vector<DType> kWeights = dtypes_of({DTypeKind::floating, DTypeKind::quantized});
  return pick(std::span<const DType>(kWeights));
}

Entries SampleBuilder::pick_entries() {
  const Entries picked =
      pick({Entries{.count = 7, .valid = 7}, Entries{.count = 1, .valid = 1}, Entries{.count = 33, .valid = 33},
            Entries{.count = 0, .valid = 0}, Entries{.count = 8, .extent = Extent::tokens, .valid = 5},
            Entries{.count = 16, .extent = Extent::tokens, .valid = 16},
            Entries{.count = 4, .extent = Extent::outputs, .valid = 0}});
  const Entries entries = sizes_.entries == 0 ? picked : Entries{.count = sizes_.entries, .valid = sizes_.entries};
  if (entries.extent == Extent::tokens) sample_.parameters.tokens = entries.valid;
  if (entries.extent == Extent::outputs) sample_.parameters.outputs = entries.valid;
  return entries;
}

Shape SampleBuilder::pick_shape(const Entries& entries, std::uint32_t columns) {
  return pick({Shape{entries.count, columns}, Shape{entries.count, 3, columns}, Shape{entries.count, 2, 3, columns}});
}

std::uint32_t SampleBuilder::pick_columns(DType dtype) {
  const std::uint32_t block = info_of(dtype).block_elements;
  const bool plain = block == 1;
  const bool is_small = block < 256;  // several of these blocks are a chunk of a strip (strips.h)
  const std::uint32_t picked = pick({plain ? 192U : 2 * block, plain ? 1U : block, plain ? 3U : 3 * block,
                                     plain      ? 257U
                                     : is_small ? 12 * block
                                                : 5 * block});
  return sizes_.columns == 0 ? picked : (sizes_.columns + block - 1) / block * block;
}

Shape SampleBuilder::pick_pixels(std::initializer_list<Shape> options) {
  Shape picked = pick(options);
  if (sizes_.columns != 0) picked.set(1, std::max(sizes_.columns, 12U));
  return picked;
}

std::uint32_t SampleBuilder::pick_weight_rows(std::initializer_list<std::uint32_t> options) {
  const std::uint32_t picked = pick(options);
  return sizes_.weight_rows == 0 ? picked : sizes_.weight_rows;
}

std::uint32_t SampleBuilder::context(std::uint32_t least) const { return std::max(least, sizes_.context); }

SampleTensor SampleBuilder::empty_tensor(const Request& request) const {
  SampleTensor tensor;
  const Shape storage = storage_shape(request.view, request.shape);
  tensor.operand = Operand::contiguous(request.dtype, storage, request.kind);
  tensor.storage.assign(bytes_of(request.dtype, storage).value_or(0), kGarbage);
  const std::uint32_t rank = storage.rank();
  const std::size_t cut_axis = request.view == View::padded ? rank - 1 : 0;
  if (request.view == View::offset) tensor.offset = tensor.operand.strides[cut_axis];
  if (request.view == View::padded) tensor.offset = 2;
  if (request.view == View::turned && rank > 1)
    std::swap(tensor.operand.strides[rank - 1], tensor.operand.strides[rank - 2]);
  tensor.operand.shape = request.shape;
  tensor.operand.extent = request.extent;
  return tensor;
}

double SampleBuilder::number(Values values, std::uint64_t index, std::uint32_t columns) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Shading languages divide precisely only by magnitudes from 2^-126 to 2^126.
  static constexpr std::array kSpecial{0.0,        -0.0,  8e37, -8e37, kInfinity,
                                       -kInfinity, 2e-38, 90.0, -90.0, std::numeric_limits<double>::quiet_NaN()};
  constexpr double kHuge = 8e37;
  const std::uint64_t bits = random_();
  const bool negative = bits % 4 == 0;
  const double magnitude = 0.25 + 1.75 * 0x1p-53 * static_cast<double>(bits >> 11U);
  switch (values) {
    case Values::special:
    case Values::extreme:
      if (random_() % 3 == 0) {
        const double chosen = kSpecial[random_() % kSpecial.size()];
        if (values == Values::special || std::abs(chosen) != kHuge) return chosen;
      }
      break;
    case Values::ties:
      return static_cast<double>(random_() % 4);
    case Values::mask:
      return negative && index % columns != 0 ? -kInfinity : 0;
    case Values::ordinary:
      break;
  }
  return negative ? -magnitude : magnitude;
}

void SampleBuilder::fill(SampleTensor& tensor, Values values) {
  const Operand& operand = tensor.operand;
  if (operand.shape.elements() == 0) return;
  const std::uint32_t entries = operand.shape[0];
  const std::uint64_t valid =
      operand.shape.elements() / entries * valid_rows(entries, operand.extent, sample_.parameters);
  const double factor = info_of(operand.dtype).kind == DTypeKind::integer ? 1000 : 1;
  const bool is_contiguous = operand.is_contiguous();
  for (std::uint64_t index = 0; index < valid; ++index)
    store_element(operand.dtype, tensor.storage.data(),
                  tensor.offset + (is_contiguous ? index : element_at(operand, index)),
                  factor * number(values, index, operand.shape.columns()));
}

void SampleBuilder::fill_blocks(SampleTensor& tensor) {
  const Operand& operand = tensor.operand;
  if (operand.shape.elements() == 0) return;
  const DTypeInfo& info = info_of(operand.dtype);
  const std::uint32_t columns = operand.shape.columns();
  const std::uint32_t entries = operand.shape[0];
  const std::uint64_t valid = operand.shape.rows() / entries * valid_rows(entries, operand.extent, sample_.parameters);
  std::vector<float> values(info.block_elements);
  std::vector<const std::byte*> encoded;
  for (std::uint64_t row = 0; row < valid; ++row) {
    const std::uint64_t at = (tensor.offset + element_at(operand, row * columns)) / info.block_elements;
    for (std::uint64_t block = at; block < at + columns / info.block_elements; ++block) {
      std::byte* const out = tensor.storage.data() + block * info.block_bytes;
      if (encoded.size() == kMostEncodedBlocks) {
        std::memcpy(out, encoded[random_() % encoded.size()], info.block_bytes);
        continue;
      }
      for (float& value : values) value = static_cast<float>(number(Values::ordinary, 0, columns));
      encode_row(operand.dtype, values.data(), values.size(), out);
      encoded.push_back(out);
    }
  }
}

bool SampleBuilder::has_room(const Shape& shape) {
  elements_ += shape.elements();
  if (wanted_.sizes != Sizes::awkward && elements_ > kMostSampleElements) sample_.is_too_large = true;
  return !sample_.is_too_large;
}

void SampleBuilder::add(const Request& request) {
  if (!has_room(request.shape)) {
    SampleTensor tensor{.operand = Operand::contiguous(request.dtype, request.shape, request.kind)};
    tensor.operand.extent = request.extent;
    sample_.inputs.emplace_back(std::move(tensor));
    return;
  }
  SampleTensor tensor = empty_tensor(request);
  if (info_of(request.dtype).kind == DTypeKind::quantized)
    fill_blocks(tensor);
  else
    fill(tensor, request.values);
  sample_.inputs.emplace_back(std::move(tensor));
}

void SampleBuilder::add_indices(const Shape& shape, Extent extent, std::span<const std::int32_t> values) {
  SampleTensor tensor = empty_tensor({.dtype = DType::I32, .shape = shape, .extent = extent});
  const std::size_t valid = extent == Extent::fixed ? values.size() : valid_rows(shape[0], extent, sample_.parameters);
  for (std::size_t index = 0; index < valid; ++index) store_as(tensor.storage.data(), index, values[index]);
  sample_.inputs.emplace_back(std::move(tensor));
}

std::vector<std::int32_t> SampleBuilder::indices(std::uint32_t count, std::uint32_t limit) {
  std::vector<std::int32_t> numbers(count);
  for (std::int32_t& number : numbers) number = static_cast<std::int32_t>(random_() % limit);
  return numbers;
}

Sample make_sample(Op op, const SampleCase& wanted, std::uint64_t seed) {
  SampleBuilder sample(op, wanted, seed);
  info_of(op).rule->sample(sample);
  return std::move(sample).finish();
}

}  // namespace shunt
