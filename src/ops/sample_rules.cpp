#include <algorithm>
#include <numeric>

#include "ops/rules.h"
#include "ops/sample.h"

namespace shunt::sample_rule {
namespace {

// The last axes of `shape`, `count` of them.
Shape last_axes(const Shape& shape, std::uint32_t count) {
  Shape last;
  for (std::size_t axis = shape.rank() - count; axis < shape.rank(); ++axis) last.append(shape[axis]);
  return last;
}

// A further operand that is broadcast along missing leading axes of `first`.
void add_broadcast(Sampler& sampler, const Sampler::Request& first, bool optional, Values values) {
  enum class Along { nothing, all_leading, axis_0, absent };
  const DType dtype = sampler.pick_floating();
  const Along along = optional ? sampler.pick({Along::all_leading, Along::nothing, Along::axis_0, Along::absent})
                               : sampler.pick({Along::all_leading, Along::nothing, Along::axis_0});
  const View view = sampler.pick_view();
  if (along == Along::absent) return sampler.add_absent();
  const std::uint32_t rank = first.shape.rank();
  const std::uint32_t kept = along == Along::nothing ? rank : along == Along::axis_0 ? std::max(rank - 1, 1U) : 1;
  const bool has_axis_0 = kept == rank;
  sampler.add({.dtype = dtype,
               .shape = last_axes(first.shape, kept),
               .extent = has_axis_0 ? first.extent : Extent::fixed,
               .view = view,
               .values = values});
}

// [entries, ..., columns] floats, sometimes of rank 1.
Sampler::Request pick_rows(Sampler& sampler) {
  const DType dtype = sampler.pick_floating();
  const std::uint32_t columns = sampler.pick_columns(dtype);
  const Entries entries = sampler.pick_entries();
  return {.dtype = dtype,
          .shape = sampler.pick_shape(entries, columns),
          .extent = entries.extent,
          .view = sampler.pick_view()};
}

// Tokens of a few sequences whose pages are shuffled over the state.
struct Paging {
  Entries tokens;
  std::uint32_t before = 0;  // positions that a sequence holds already
  std::uint32_t page_tokens = 1;
  std::uint32_t pages = 0;
  std::uint32_t sequence_pages = 0;
};
constexpr std::uint32_t kSequences = 3;
constexpr std::uint32_t kSparePages = 2;

Paging pick_paging(Sampler& sampler) {
  Paging paging{.tokens = sampler.pick_entries(), .page_tokens = sampler.pick({32U, 1U, 5U})};
  // Each sequence holds its share of the tokens, and as many before them or more.
  const std::uint32_t share = paging.tokens.count / kSequences + 1;
  paging.before = sampler.context(share);
  paging.sequence_pages = (paging.before + share) / paging.page_tokens + 1;
  paging.pages = kSequences * paging.sequence_pages + kSparePages;
  return paging;
}

// positions, sequences and pages; no two tokens have the same place.
void add_paging(Sampler& sampler, const Paging& paging) {
  const std::uint32_t count = paging.tokens.count;
  std::vector<std::int32_t> positions(count);
  std::vector<std::int32_t> sequences(count);
  for (std::uint32_t token = 0; token < count; ++token) {
    sequences[token] = static_cast<std::int32_t>(token % kSequences);
    positions[token] = static_cast<std::int32_t>(paging.before / (1 + token % kSequences) + token / kSequences);
  }
  std::vector<std::int32_t> pages(paging.pages);
  std::iota(pages.begin(), pages.end(), 0);
  std::ranges::shuffle(pages, sampler.random());
  pages.resize(std::size_t{kSequences} * paging.sequence_pages);
  sampler.add_indices({count}, paging.tokens.extent, positions);
  sampler.add_indices({count}, paging.tokens.extent, sequences);
  sampler.add_indices({kSequences, paging.sequence_pages}, Extent::fixed, pages);
}

void set_rotary_attributes(Sampler& sampler, std::uint32_t head_dim) {
  sampler.set(Attr::rotary_halves, sampler.pick({0U, 1U}));
  sampler.set(Attr::rotary_base, sampler.pick({10000.0F, 500000.0F}));
  sampler.set(Attr::rotary_dims, sampler.pick({0U, head_dim / 4 * 2}));
}

}  // namespace

void same(Sampler& sampler) {
  const Sampler::Request x = pick_rows(sampler);
  sampler.add(x);
  const OpInfo& row = sampler.row();
  if (row.inputs.size() > 1)
    add_broadcast(sampler, x, row.required_inputs < 2, row.inputs[1] == "mask" ? Values::mask : Values::ordinary);
  if (sampler.takes(Attr::scale)) sampler.set(Attr::scale, sampler.pick({1.0F, 0.125F}));
  if (sampler.takes(Attr::epsilon)) sampler.set(Attr::epsilon, sampler.pick({1e-5F, 1e-2F}));
}

void elementwise(Sampler& sampler) {
  Sampler::Request first = pick_rows(sampler);
  // F32 devices make nothing of use of the sine of a huge number.
  const bool turns = sampler.row().expression.contains("sin(") || sampler.row().expression.contains("cos(");
  first.values = sampler.pick({Values::ordinary, turns ? Values::extreme : Values::special});
  // Also a vector, of columns or of entries.
  const bool is_vector = sampler.pick({false, false, true});
  if (is_vector) first.shape = Shape{first.shape[0]};
  sampler.add(first);
  // The reference of a fused row rounds inner results, and what it rounds to zero must not meet an infinity.
  const Values others = sampler.row().is_fused() ? Values::ordinary : first.values;
  for (std::size_t input = 1; input < sampler.row().inputs.size(); ++input)
    add_broadcast(sampler, first, false, others);
  if (sampler.takes(Attr::factor)) sampler.set(Attr::factor, sampler.pick({0.5F, -3.0F}));
  if (sampler.takes(Attr::cap)) sampler.set(Attr::cap, sampler.pick({30.0F, 0.75F}));
  if (sampler.takes(Attr::low)) sampler.set(Attr::low, sampler.pick({-0.5F, -3.40282347e38F}));
  if (sampler.takes(Attr::high)) sampler.set(Attr::high, sampler.pick({1.25F, 3.40282347e38F}));
  if (sampler.takes(Attr::limit)) sampler.set(Attr::limit, sampler.pick({7.0F, 0.5F}));
  if (sampler.takes(Attr::alpha)) sampler.set(Attr::alpha, sampler.pick({1.702F, 1.0F}));
}

void gather(Sampler& sampler) {
  const DType dtype = sampler.pick_weight();
  const std::uint32_t columns = sampler.pick_columns(dtype);
  const Entries ids = sampler.pick_entries();
  const std::uint32_t rows = sampler.pick_weight_rows({37U, 1U});
  const View view = sampler.pick({View::contiguous, View::offset});
  sampler.add({.dtype = dtype, .shape = {rows, columns}, .kind = TensorKind::weight, .view = view});
  sampler.add_indices({ids.count}, ids.extent, sampler.indices(ids.count, rows));
}

void matmul(Sampler& sampler) {
  const DType weight = sampler.pick_weight();
  const std::uint32_t columns = sampler.pick_columns(weight);
  const DType dtype = sampler.pick_floating();
  const Entries entries = sampler.pick_entries();
  const std::uint32_t rows = sampler.pick_weight_rows({5U, 1U, 16U, 131U});
  const View view = sampler.pick_view();
  const bool has_middle_axis = sampler.pick({false, false, true});
  Shape x{entries.count, columns};
  Shape result{entries.count, rows};
  if (has_middle_axis) x = Shape{entries.count, 2, columns};
  if (has_middle_axis) result = Shape{entries.count, 2, rows};
  sampler.add({.dtype = dtype, .shape = x, .extent = entries.extent, .view = view});
  sampler.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
  if (sampler.row().inputs.size() > 2) sampler.add({.shape = result, .extent = entries.extent});
}

void norm_matmul(Sampler& sampler) {
  const DType weight = sampler.pick_weight();
  const std::uint32_t columns = sampler.pick_columns(weight);
  const Entries entries = sampler.pick_entries();
  const std::uint32_t rows = sampler.pick_weight_rows({5U, 1U, 16U, 131U});
  const View view = sampler.pick_view();
  sampler.set(Attr::epsilon, sampler.pick({1e-5F, 0.5F}));
  sampler.add({.shape = {entries.count, columns}, .extent = entries.extent, .view = view});
  sampler.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
  sampler.add({.shape = {columns}, .kind = TensorKind::weight});
  if (sampler.row().inputs.size() > 3)
    sampler.add({.dtype = weight, .shape = {rows, columns}, .kind = TensorKind::weight});
}

void rotary(Sampler& sampler) {
  const DType dtype = sampler.pick_floating();
  const Entries entries = sampler.pick_entries();
  const std::uint32_t heads = sampler.pick({3U, 1U});
  const std::uint32_t head_dim = sampler.pick({64U, 2U, 80U, 34U});
  const View view = sampler.pick_view();
  const bool has_factors = sampler.pick({false, true});
  set_rotary_attributes(sampler, head_dim);
  sampler.add({.dtype = dtype, .shape = {entries.count, heads, head_dim}, .extent = entries.extent, .view = view});
  sampler.add_indices({entries.count}, entries.extent, sampler.indices(entries.count, 4000));
  if (!has_factors) return sampler.add_absent();
  // As many as the shape rule wants: half of the dims that are rotated.
  const std::uint32_t dims = head_dim / 4 * 2;
  sampler.set(Attr::rotary_dims, dims);
  sampler.add({.shape = {(dims == 0 ? head_dim : dims) / 2}});
}

void cache_write(Sampler& sampler) {
  const DType state = sampler.pick_floating();
  const DType dtype = sampler.pick_floating();
  const Paging paging = pick_paging(sampler);
  const std::uint32_t heads = sampler.pick({3U, 1U});
  const std::uint32_t head_dim = sampler.pick({64U, 2U, 34U});
  const View view = sampler.pick_view();
  if (sampler.takes(Attr::rotary_halves)) set_rotary_attributes(sampler, head_dim);
  sampler.add(
      {.dtype = state, .shape = {paging.pages, paging.page_tokens, heads, head_dim}, .kind = TensorKind::state});
  sampler.add(
      {.dtype = dtype, .shape = {paging.tokens.count, heads, head_dim}, .extent = paging.tokens.extent, .view = view});
  add_paging(sampler, paging);
}

void attention(Sampler& sampler) {
  struct Heads {
    std::uint32_t of_query;
    std::uint32_t of_state;
  };
  const DType state = sampler.pick_floating();
  const DType dtype = sampler.pick_floating();
  const Paging paging = pick_paging(sampler);
  const Heads heads = sampler.pick({Heads{4, 2}, Heads{1, 1}, Heads{6, 1}, Heads{3, 3}});
  const std::uint32_t head_dim = sampler.pick({64U, 16U, 40U, 7U, 260U});
  const View view = sampler.pick_view();
  sampler.set(Attr::scale, sampler.pick({0.125F, 1.0F}));
  sampler.add({.dtype = dtype,
               .shape = {paging.tokens.count, heads.of_query, head_dim},
               .extent = paging.tokens.extent,
               .view = view});
  for (int keys_then_values = 0; keys_then_values < 2; ++keys_then_values)
    sampler.add({.dtype = state,
                 .shape = {paging.pages, paging.page_tokens, heads.of_state, head_dim},
                 .kind = TensorKind::state});
  add_paging(sampler, paging);
  // What some kernels have nothing of; often left out, so that these are tried with all the rest.
  struct More {
    float soft_cap = 0;
    std::uint32_t window = 0;
    bool sinks = false;
  };
  const More more = sampler.pick({More{}, More{}, More{}, More{.soft_cap = 2}, More{.window = 3}, More{.sinks = true},
                                  More{.soft_cap = 5, .window = 1, .sinks = true}});
  sampler.set(Attr::soft_cap, more.soft_cap);
  sampler.set(Attr::window, more.window);
  if (more.sinks)
    sampler.add({.shape = {heads.of_query}});
  else
    sampler.add_absent();
}

void matmul_experts(Sampler& sampler) {
  const DType weight = sampler.pick_weight();
  const std::uint32_t columns = sampler.pick_columns(weight);
  const Entries entries = sampler.pick_entries();
  const std::uint32_t used = sampler.pick({2U, 1U, 3U});
  const std::uint32_t experts = sampler.pick({4U, 1U, 9U});
  const std::uint32_t rows = sampler.pick_weight_rows({5U, 1U, 16U, 131U});
  const bool row_for_each = sampler.pick({false, true});
  const bool has_slots = sampler.pick({false, true});
  const bool has_bias = sampler.pick({false, true});
  const View view = sampler.pick_view();
  const std::uint32_t held = has_slots ? experts / 2 + 1 : experts;
  sampler.add({.shape = {entries.count, row_for_each ? used : 1, columns}, .extent = entries.extent, .view = view});
  sampler.add({.dtype = weight, .shape = {held, rows, columns}, .kind = TensorKind::weight});
  sampler.add_indices({entries.count, used}, entries.extent, sampler.indices(entries.count * used, experts));
  if (has_slots) {
    // Every other expert is held, the last of them in the first place.
    std::vector<std::int32_t> slots(experts, -1);
    for (std::uint32_t expert = 0; expert < experts; expert += 2)
      slots[expert] = static_cast<std::int32_t>((experts - 1) / 2 - expert / 2);
    sampler.add_indices({experts}, Extent::fixed, slots);
  } else {
    sampler.add_absent();
  }
  if (has_bias)
    sampler.add({.shape = {held, rows}, .kind = TensorKind::weight});
  else
    sampler.add_absent();
}

void argmax(Sampler& sampler) {
  Sampler::Request x = pick_rows(sampler);
  x.values = sampler.pick({Values::ordinary, Values::ties});
  sampler.add(x);
}

void top_k(Sampler& sampler) {
  Sampler::Request x = pick_rows(sampler);
  x.values = sampler.pick({Values::ordinary, Values::ties, Values::special});
  const bool all = sampler.pick({false, true});
  sampler.set(Attr::k, all ? x.shape.columns() : std::min(x.shape.columns(), 4U));
  sampler.add(x);
}

void take(Sampler& sampler) {
  const Sampler::Request x = pick_rows(sampler);
  const std::uint32_t count = sampler.pick({4U, 1U, 70U});
  sampler.add(x);
  Shape shape = x.shape;
  shape.set(shape.rank() - 1, count);
  // One of them is an index that x has not.
  sampler.add_indices(shape, x.extent,
                      sampler.indices(static_cast<std::uint32_t>(shape.elements()), x.shape.columns() + 1));
}

void reduce(Sampler& sampler) { sampler.add(pick_rows(sampler)); }

void dot(Sampler& sampler) {
  const Sampler::Request a = pick_rows(sampler);
  sampler.add(a);
  add_broadcast(sampler, a, false, Values::ordinary);
}

void weighted_sum(Sampler& sampler) {
  const DType dtype = sampler.pick_floating();
  const std::uint32_t columns = sampler.pick_columns(dtype);
  const Entries entries = sampler.pick_entries();
  const std::uint32_t count = sampler.pick({4U, 1U, 9U});
  const View view = sampler.pick_view();
  const DType weights = sampler.pick_floating();
  const View weights_view = sampler.pick_view();
  const bool has_middle_axis = sampler.pick({false, false, true});
  Shape rows{entries.count, count};
  if (has_middle_axis) rows = Shape{entries.count, 2, count};
  Shape x = rows;
  x.append(columns);
  sampler.add({.dtype = dtype, .shape = x, .extent = entries.extent, .view = view});
  sampler.add({.dtype = weights, .shape = rows, .extent = entries.extent, .view = weights_view});
}

void concat(Sampler& sampler) {
  const DType floating = sampler.pick_floating();
  const std::uint32_t columns = sampler.pick_columns(floating);
  const Entries entries = sampler.pick_entries();
  const Shape shape = sampler.pick_shape(entries, columns);
  const View view = sampler.pick_view();
  const View second_view = sampler.pick_view();
  const DType dtype = sampler.pick({floating, floating, DType::I32, DType::I8, DType::U32});
  // Axis 0 of a bucket cannot grow.
  const bool outermost = sampler.pick({false, true}) && entries.extent == Extent::fixed;
  const bool innermost = sampler.pick({false, true});
  const std::uint32_t axis = outermost ? 0 : innermost ? shape.rank() - 1 : 1;
  Shape second = shape;
  second.set(axis, shape[axis] + 2);
  sampler.set(Attr::axis, axis);
  sampler.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
  sampler.add({.dtype = dtype, .shape = second, .extent = entries.extent, .view = second_view});
}

void copy(Sampler& sampler) {
  Sampler::Request x = pick_rows(sampler);
  x.dtype = sampler.pick({x.dtype, x.dtype, DType::I32, DType::I8, DType::U32});
  x.values = sampler.pick({Values::ordinary, Values::special});
  sampler.set(Attr::to, sampler.pick({DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8, DType::U32}));
  sampler.add(x);
}

void quantize(Sampler& sampler) {
  const DType to = sampler.pick_quantized();
  const std::uint32_t columns = sampler.pick_columns(to);
  const DType dtype = sampler.pick_floating();
  const Entries entries = sampler.pick_entries();
  const Shape shape = sampler.pick_shape(entries, columns);
  // Blocks are made of neighbours, so the rows must be contiguous.
  const View view = sampler.pick({View::contiguous, View::offset, View::padded});
  sampler.set(Attr::to, to);
  sampler.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
}

void dequantize(Sampler& sampler) {
  const DType dtype = sampler.pick_quantized();
  const std::uint32_t columns = sampler.pick_columns(dtype);
  const Entries entries = sampler.pick_entries();
  const Shape shape = sampler.pick_shape(entries, columns);
  const View view = sampler.pick({View::contiguous, View::offset});
  sampler.set(Attr::to, sampler.pick_floating());
  sampler.add({.dtype = dtype, .shape = shape, .extent = entries.extent, .view = view});
}

namespace {

Sampler::Request pick_images(Sampler& sampler, std::uint32_t channels) {
  const DType dtype = sampler.pick_floating();
  const Entries entries =
      sampler.pick({Entries{.count = 2, .valid = 2}, Entries{.count = 1, .valid = 1}, Entries{.count = 0, .valid = 0},
                    Entries{.count = 4, .extent = Extent::tokens, .valid = 3}});
  const Shape pixels = sampler.pick_pixels({Shape{9, 12}, Shape{5, 5}, Shape{7, 37}});
  return {.dtype = dtype,
          .shape = {entries.count, channels, pixels[0], pixels[1]},
          .extent = entries.extent,
          .view = sampler.pick_view()};
}

void set_window(Sampler& sampler) {
  sampler.set(Attr::stride, sampler.pick({Shape{1, 1}, Shape{2, 3}}));
  sampler.set(Attr::padding, sampler.pick({Shape{0, 0}, Shape{1, 1}, Shape{0, 1, 1, 0}}));
}

}  // namespace

void conv2d(Sampler& sampler) {
  const std::uint32_t groups = sampler.pick({1U, 2U, 6U});
  const Sampler::Request x = pick_images(sampler, 6);
  const DType dtype = sampler.pick_floating();
  const Shape kernel = sampler.pick({Shape{3, 3}, Shape{1, 1}, Shape{2, 3}});
  const std::uint32_t filters = sampler.pick({6U, 12U});
  const bool has_bias = sampler.pick({false, true});
  set_window(sampler);
  sampler.set(Attr::dilation, sampler.pick({Shape{1, 1}, Shape{2, 1}}));
  sampler.set(Attr::groups, groups);
  sampler.add(x);
  sampler.add({.dtype = dtype, .shape = {filters, 6 / groups, kernel[0], kernel[1]}, .kind = TensorKind::weight});
  if (has_bias)
    sampler.add({.shape = {filters}, .kind = TensorKind::weight});
  else
    sampler.add_absent();
}

void pool2d(Sampler& sampler) {
  const Sampler::Request x = pick_images(sampler, 3);
  sampler.set(Attr::kernel, sampler.pick({Shape{2, 2}, Shape{3, 4}}));
  set_window(sampler);
  sampler.add(x);
}

void resize(Sampler& sampler) {
  const Sampler::Request x = pick_images(sampler, 3);
  sampler.set(Attr::size, sampler.pick({Shape{18, 24}, Shape{1, 1}, Shape{4, 50}, Shape{13, 5}}));
  sampler.add(x);
}

}  // namespace shunt::sample_rule
