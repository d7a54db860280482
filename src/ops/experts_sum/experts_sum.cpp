#include "ops/experts_sum/experts_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernel_arguments.h"
#include "ops/rules.h"
#include "ops/strided.h"

namespace shunt {
namespace {

Result<ResultShape> result_shape(InputOperands inputs, const Attributes&) {
  const Operand& x = *inputs[0];
  const Operand& scores = *inputs[1];
  SHUNT_TRY(need_rank("x", x, 3));
  SHUNT_TRY(need_rank("scores", scores, 2));
  const Shape shape{x.shape[0], x.shape[2]};
  SHUNT_TRY(need("x", x, DType::F32, x.shape));
  SHUNT_TRY(need("scores", scores, DType::F32, Shape{x.shape[0], scores.shape[1]}));
  SHUNT_TRY(need("ids", *inputs[2], DType::I32, Shape{x.shape[0], x.shape[1]}));
  SHUNT_TRY(need("residual", *inputs[3], DType::F32, shape));
  return value(DType::F32, shape, x.extent);
}

// Reads of the scores only those that were chosen.
Cost cost_of(const OpCall& call) {
  const double elements = static_cast<double>(call.input(0).shape.elements());
  const double ids = bytes_of(call.input(2));
  return {.flops = 2 * elements,
          .bytes_read = bytes_of(call.input(0)) + 2 * ids + bytes_of(call.input(3)),
          .bytes_written = bytes_of(*call.output)};
}

void make_sample(SampleBuilder& sample) {
  const std::uint32_t columns = sample.pick_columns(DType::F32);
  const Entries entries = sample.pick_entries();
  const std::uint32_t used = sample.pick({4U, 1U, 9U});
  const std::uint32_t experts = sample.pick({16U, 1U, 70U});
  const View view = sample.pick_view();
  const View scores_view = sample.pick_view();
  sample.set(Attr::scale, sample.pick({1.0F, 0.125F}));
  sample.add({.shape = {entries.count, used, columns}, .extent = entries.extent, .view = view});
  sample.add({.shape = {entries.count, experts}, .extent = entries.extent, .view = scores_view});
  // Some of the indices may be out of range.
  sample.add_indices({entries.count, used}, entries.extent, sample.indices(entries.count * used, experts + 1));
  sample.add({.shape = {entries.count, columns}, .extent = entries.extent, .view = view});
}

void make_bench(BenchBuilder& bench) {
  const std::uint32_t columns = bench.sizes().embedding;
  bench.add_values({bench.rows(), kBenchUsedExperts, columns});
  bench.add_values({bench.rows(), kBenchExperts});
  bench.add_indices({bench.rows(), kBenchUsedExperts});
  bench.add_values({bench.rows(), columns});
}

BenchIndices bench_indices(const BenchCase& use, std::size_t) {
  return {.first = 1, .step = 3, .modulus = use.shape(1).columns()};
}

// Each thread has the shares of a token.
CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = call.input(0).shape[1] * sizeof(double)};
}

int run(const CpuCall& call) {
  const auto& args = call.args<ExpertsSumArgs>();
  const std::uint64_t tokens = valid_rows(args.tokens, static_cast<Extent>(args.extent), *call.parameters);
  const Range range = share_of(tokens, call.share, call.shares);
  const std::span<double> shares(reinterpret_cast<double*>(call.thread_scratch), args.used);
  for (std::uint64_t token = range.begin; token < range.end; ++token) {
    write_shares(args, call, token, shares);
    const float* const x = call.in<float>(0) + token * args.x_strides[0];
    const float* const residual = call.in<float>(3) + token * args.residual_strides[0];
    for (std::uint64_t column = 0; column < args.columns; ++column) {
      auto sum = static_cast<double>(residual[column * args.residual_strides[1]]);
      for (std::size_t j = 0; j < shares.size(); ++j)
        sum += shares[j] * static_cast<double>(x[j * args.x_strides[1] + column * args.x_strides[2]]);
      call.out<float>()[token * args.columns + column] = static_cast<float>(sum);
    }
  }
  return 0;
}

}  // namespace

void write_shares(const ExpertsSumArgs& args, const CpuCall& call, std::uint64_t token, std::span<double> shares) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const float* const scores = call.in<float>(1) + token * args.score_strides[0];
  const std::int32_t* const ids = call.in<std::int32_t>(2) + token * args.id_strides[0];
  for (std::size_t j = 0; j < shares.size(); ++j) {
    const auto id = static_cast<std::uint32_t>(ids[j * args.id_strides[1]]);
    const float score = id < args.experts ? scores[std::uint64_t{id} * args.score_strides[1]] : 0.0F;
    shares[j] = static_cast<double>(args.scale) * static_cast<double>(score);
  }
  double largest = kLowest;
  for (const double score : shares) largest = std::max(largest, score);
  if (largest == kLowest) {
    std::ranges::fill(shares, 0);
    return;
  }
  double sum = 0;
  for (double& score : shares) sum += score = std::exp(score - largest);
  for (double& share : shares) share /= sum;
}

ExpertsSumArgs experts_sum_arguments(const OpCall& call) {
  const auto write = [](auto& strides, const Operand& operand) {
    for (std::size_t axis = 0; axis < operand.shape.rank(); ++axis)
      strides[axis] = static_cast<std::uint32_t>(operand.strides[axis]);
  };
  const Operand& x = call.input(0);
  ExpertsSumArgs args;
  write(args.x_strides, x);
  write(args.score_strides, call.input(1));
  write(args.id_strides, call.input(2));
  write(args.residual_strides, call.input(3));
  args.tokens = x.shape[0];
  args.extent = static_cast<std::uint32_t>(x.extent);
  args.used = x.shape[1];
  args.experts = call.input(1).shape[1];
  args.columns = x.shape[2];
  args.scale = call.attributes->f32(Attr::scale);
  return args;
}

extern const CpuKernel experts_sum_scalar{fits_arguments, work, write_arguments<experts_sum_arguments>, run};

extern const OpRule experts_sum_rule{
    .shape = result_shape, .cost = cost_of, .sample = make_sample, .bench = make_bench, .bench_indices = bench_indices};

}  // namespace shunt
