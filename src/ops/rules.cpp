#include "ops/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace shunt {
namespace {

// Returns the last `count` axes of `shape`.
Shape last_axes(const Shape& shape, std::uint32_t count) {
  Shape last;
  for (std::size_t axis = shape.rank() - count; axis < shape.rank(); ++axis) last.append(shape[axis]);
  return last;
}

constexpr std::uint32_t kSequences = 3;
constexpr std::uint32_t kSparePages = 2;

Result<ResultShape> same_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  SHUNT_TRY(need_floating("x", x));
  if (x.shape.rank() == 0) return invalid("x must have at least one axis");
  if (present(inputs, 1)) {
    SHUNT_TRY(need_floating("second operand", *inputs[1]));
    if (!is_suffix(inputs[1]->shape, x.shape))
      return invalid(fmt::format("{} does not equal the last axes of {}", text_of(*inputs[1]), text_of(x)));
  }
  return value(x.dtype, x.shape, x.extent);
}

void make_same_sample(SampleBuilder& sample) {
  const SampleBuilder::Request x = pick_rows(sample);
  sample.add(x);
  const OpInfo& row = sample.row();
  if (row.inputs.size() > 1)
    add_broadcast(sample, x, row.required_inputs < 2, row.inputs[1] == "mask" ? Values::mask : Values::ordinary);
  if (sample.takes(Attr::scale)) sample.set(Attr::scale, sample.pick({1.0F, 0.125F}));
  if (sample.takes(Attr::epsilon)) sample.set(Attr::epsilon, sample.pick({1e-5F, 1e-2F}));
}

void make_same_bench(BenchBuilder& bench) {
  bench.add_values({bench.rows(), bench.sizes().embedding});
  bench.fill_up(BenchBuilder::weight(DType::F32, {bench.sizes().embedding}));
}

Result<ResultShape> reshape_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& dims = attributes.shape(Attr::dims);
  SHUNT_TRY(bytes_of(x.dtype, dims));
  if (dims.elements() != x.shape.elements())
    return invalid(
        fmt::format("{} has {} elements, {} has {}", text_of(x), x.shape.elements(), to_string(dims), dims.elements()));
  if (!x.is_contiguous()) return invalid(fmt::format("{} is a strided view; copy it first", text_of(x)));
  if (x.extent != Extent::fixed && (dims.rank() == 0 || dims[0] != x.shape[0]))
    return invalid(fmt::format("axis 0 of {} is a bucket and cannot be reshaped to {}", text_of(x), to_string(dims)));
  ResultShape result = value(x.dtype, dims, x.extent);
  result.operand.kind = x.kind;
  return result;
}

Result<ResultShape> permute_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const Shape& axes = attributes.shape(Attr::axes);
  if (axes.rank() != x.shape.rank())
    return invalid(fmt::format("axes {} do not name each axis of {}", to_string(axes), text_of(x)));
  if (info_of(x.dtype).kind == DTypeKind::quantized) return invalid("blocks of a quantized tensor cannot be permuted");
  ResultShape result;
  result.operand = x;
  std::uint32_t seen = 0;
  for (std::size_t axis = 0; axis < axes.rank(); ++axis) {
    if (axes[axis] >= axes.rank() || (seen >> axes[axis] & 1U) != 0)
      return invalid(fmt::format("axes {} do not name each axis of {}", to_string(axes), text_of(x)));
    seen |= 1U << axes[axis];
    result.operand.shape.set(axis, x.shape[axes[axis]]);
    result.operand.strides[axis] = x.strides[axes[axis]];
  }
  if (x.extent != Extent::fixed && axes[0] != 0) return invalid("axis 0 is a bucket and must stay outermost");
  return result;
}

Result<ResultShape> slice_shape(InputOperands inputs, const Attributes& attributes) {
  const Operand& x = *inputs[0];
  const std::uint32_t axis = attributes.u32(Attr::axis);
  const std::uint32_t begin = attributes.u32(Attr::begin);
  const std::uint32_t count = attributes.u32(Attr::count);
  if (axis >= x.shape.rank()) return invalid(fmt::format("axis {} out of range for {}", axis, text_of(x)));
  if (begin > x.shape[axis] || count > x.shape[axis] - begin)
    return invalid(fmt::format("{} indices from {} on axis {} run past {}", count, begin, axis, text_of(x)));
  if (axis == 0 && x.extent != Extent::fixed) return invalid("axis 0 is a bucket and cannot be cut");
  if (axis + 1 == x.shape.rank() && info_of(x.dtype).kind == DTypeKind::quantized)
    return invalid("blocks of a quantized tensor cannot be cut");
  ResultShape result{.operand = x, .offset = begin * x.strides[axis]};
  result.operand.shape.set(axis, count);
  return result;
}

}  // namespace

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

std::string text_of(const Operand& operand) {
  return fmt::format("{}{}", name_of(operand.dtype), to_string(operand.shape));
}

bool is_floating(const Operand& operand) { return info_of(operand.dtype).kind == DTypeKind::floating; }

Status need_floating(std::string_view name, const Operand& operand) {
  if (!is_floating(operand))
    return invalid(fmt::format("{} must be of a floating dtype, is {}", name, text_of(operand)));
  return {};
}

Status need_cache(std::string_view name, const Operand& operand) {
  std::vector<std::string_view> names;
  for (const DType dtype : cache_dtypes()) names.push_back(name_of(dtype));
  if (operand.kind != TensorKind::state || std::ranges::find(cache_dtypes(), operand.dtype) == cache_dtypes().end())
    return invalid(
        fmt::format("{} must be a state tensor of {}, is {}", name, fmt::join(names, ", "), text_of(operand)));
  return {};
}

Status need_rank(std::string_view name, const Operand& operand, std::uint32_t rank) {
  if (operand.shape.rank() != rank)
    return invalid(fmt::format("{} must have {} axes, is {}", name, rank, text_of(operand)));
  return {};
}

Status need(std::string_view name, const Operand& operand, DType dtype, const Shape& shape) {
  if (operand.dtype != dtype || operand.shape != shape)
    return invalid(fmt::format("{} must be {}{}, is {}", name, name_of(dtype), to_string(shape), text_of(operand)));
  return {};
}

Status need_whole_rows(std::string_view name, const Operand& operand) {
  if (operand.shape.rank() == 0 || (operand.shape.rank() == 1 && operand.extent != Extent::fixed))
    return invalid(fmt::format("{} must have rows, is {}", name, text_of(operand)));
  if (!operand.has_contiguous_rows())
    return invalid(fmt::format("{} {} is a view whose rows are not contiguous; copy it first", name, text_of(operand)));
  return {};
}

bool is_suffix(const Shape& small, const Shape& large) {
  if (small.rank() > large.rank()) return false;
  for (std::size_t axis = 0; axis < small.rank(); ++axis)
    if (small[axis] != large[large.rank() - small.rank() + axis]) return false;
  return true;
}

ResultShape value(DType dtype, const Shape& shape, Extent extent) {
  return {.operand = Operand::contiguous(dtype, shape, TensorKind::value, extent)};
}

ResultShape one_of_each_row(DType dtype, const Operand& x) {
  Shape shape;
  for (std::size_t axis = 0; axis + 1 < x.shape.rank(); ++axis) shape.append(x.shape[axis]);
  if (shape.rank() == 0) shape.append(1);
  return value(dtype, shape, x.shape.rank() > 1 ? x.extent : Extent::fixed);
}

Status need_elements(const Operand& x) {
  if (x.shape.rank() == 0 || x.shape.columns() == 0)
    return invalid(fmt::format("{} has no elements to compare", text_of(x)));
  return {};
}

bool present(InputOperands inputs, std::size_t index) { return index < inputs.size() && inputs[index] != nullptr; }

Status need_page_table(InputOperands inputs, std::size_t first, std::uint32_t tokens) {
  SHUNT_TRY(need("positions", *inputs[first], DType::I32, Shape{tokens}));
  SHUNT_TRY(need("sequences", *inputs[first + 1], DType::I32, Shape{tokens}));
  SHUNT_TRY(need_rank("pages", *inputs[first + 2], 2));
  if (inputs[first + 2]->dtype != DType::I32) return invalid("pages must be I32");
  return {};
}

double bytes_of(const Operand& operand) {
  const DTypeInfo& info = info_of(operand.dtype);
  return static_cast<double>(operand.shape.elements()) * info.block_bytes / info.block_elements;
}

Cost read_all_write_one(const OpCall& call) {
  Cost cost;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) cost.bytes_read += bytes_of(call.input(i));
  cost.bytes_written = bytes_of(*call.output);
  return cost;
}

Cost rowwise_cost(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = 4.0 * static_cast<double>(call.input(0).shape.elements());
  return cost;
}

SampleBuilder::Request pick_rows(SampleBuilder& sample) {
  const DType dtype = sample.pick_floating();
  const std::uint32_t columns = sample.pick_columns(dtype);
  const Entries entries = sample.pick_entries();
  return {.dtype = dtype,
          .shape = sample.pick_shape(entries, columns),
          .extent = entries.extent,
          .view = sample.pick_view()};
}

void add_broadcast(SampleBuilder& sample, const SampleBuilder::Request& first, bool optional, Values values) {
  enum class Along { nothing, all_leading, axis_0, absent };
  const DType dtype = sample.pick_floating();
  const Along along = optional ? sample.pick({Along::all_leading, Along::nothing, Along::axis_0, Along::absent})
                               : sample.pick({Along::all_leading, Along::nothing, Along::axis_0});
  const View view = sample.pick_view();
  if (along == Along::absent) return sample.add_absent();
  const std::uint32_t rank = first.shape.rank();
  const std::uint32_t kept = along == Along::nothing ? rank : along == Along::axis_0 ? std::max(rank - 1, 1U) : 1;
  const bool has_axis_0 = kept == rank;
  sample.add({.dtype = dtype,
              .shape = last_axes(first.shape, kept),
              .extent = has_axis_0 ? first.extent : Extent::fixed,
              .view = view,
              .values = values});
}

Paging pick_paging(SampleBuilder& sample) {
  Paging paging{.tokens = sample.pick_entries(), .page_tokens = sample.pick({32U, 1U, 5U})};
  // Each sequence holds its share of the tokens, and at least as many before them.
  const std::uint32_t share = paging.tokens.count / kSequences + 1;
  paging.before = sample.context(share);
  paging.sequence_pages = (paging.before + share) / paging.page_tokens + 1;
  paging.pages = kSequences * paging.sequence_pages + kSparePages;
  return paging;
}

void add_paging(SampleBuilder& sample, const Paging& paging) {
  const std::uint32_t count = paging.tokens.count;
  std::vector<std::int32_t> positions(count);
  std::vector<std::int32_t> sequences(count);
  for (std::uint32_t token = 0; token < count; ++token) {
    sequences[token] = static_cast<std::int32_t>(token % kSequences);
    positions[token] = static_cast<std::int32_t>(paging.before / (1 + token % kSequences) + token / kSequences);
  }
  std::vector<std::int32_t> pages(paging.pages);
  std::iota(pages.begin(), pages.end(), 0);
  std::ranges::shuffle(pages, sample.random());
  pages.resize(std::size_t{kSequences} * paging.sequence_pages);
  sample.add_indices({count}, paging.tokens.extent, positions);
  sample.add_indices({count}, paging.tokens.extent, sequences);
  sample.add_indices({kSequences, paging.sequence_pages}, Extent::fixed, pages);
}

std::uint32_t whole_blocks(DType dtype, std::uint32_t elements) {
  const std::uint32_t block = info_of(dtype).block_elements;
  return (elements + block - 1) / block * block;
}

void bench_rows(BenchBuilder& bench) { bench.fill_up(BenchBuilder::values({bench.rows(), bench.sizes().embedding})); }

// x [..., columns], and an optional second operand broadcast over it -> the same
extern const OpRule same_rule{.shape = same_shape, .sample = make_same_sample, .bench = make_same_bench};
extern const OpRule reshape_rule{.shape = reshape_shape};
extern const OpRule permute_rule{.shape = permute_shape};
extern const OpRule slice_rule{.shape = slice_shape};

}  // namespace shunt
