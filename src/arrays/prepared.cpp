#include "arrays/prepared.h"

#include <algorithm>
#include <functional>

#include "plan/costs/cost.h"
#include "plan/planner.h"

namespace shunt::arrays {
namespace {

// Below this size, copies take less time than preparing a program for new memory.
constexpr std::uint64_t kInPlaceBytes = 1U << 20U;

Result<Plan> plan_for(const Graph& graph, Device& device, const DeviceCost* cost = nullptr) {
  Device* const devices[] = {&device};
  return make_plan({.graph = &graph, .devices = devices, .costs = {cost, cost == nullptr ? 0U : 1U}});
}

bool overlap(std::span<const float> x, std::span<const float> y) {
  const std::less<> before;
  return before(x.data(), y.data() + y.size()) && before(y.data(), x.data() + x.size());
}

// Transposes b [columns, outputs] of a matmul to [outputs, columns], in tiles that fit the cache.
void transpose(const Task& work, std::vector<float>& out) {
  constexpr std::size_t kTile = 32;
  const std::size_t rows = work.columns;
  const std::size_t columns = work.outputs;
  out.resize(work.b.size());
  for (std::size_t row = 0; row < rows; row += kTile)
    for (std::size_t column = 0; column < columns; column += kTile)
      for (std::size_t i = row; i < std::min(row + kTile, rows); ++i)
        for (std::size_t j = column; j < std::min(column + kTile, columns); ++j)
          out[j * rows + i] = work.b[i * columns + j];
}

// Elementwise kernels read each element before they write it.
bool may_share(Function function, std::span<const float> input, std::span<const float> out) {
  if (!overlap(input, out)) return true;
  return (function == Function::add || function == Function::multiply) && input.data() == out.data();
}

// Programs on the caller's memory, which the CPU imports as it is. That includes results, which only the programs
// change.
class InPlace {
 public:
  explicit InPlace(Device& device) : device_(device) {}

  // Adds a use of `op` on inputs of one shape.
  Status add(Op op, const Shape& shape, std::span<const std::span<const float>> inputs, std::span<float> result) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.operand = Operand::contiguous(DType::F32, shape);
    call.inputs.assign(inputs.size(), &call.operand);
    SHUNT_TRY_ASSIGN(const ResultShape inferred, infer(op, call.inputs, call.attributes));
    call.output = inferred.operand;
    ProgramOp program_op{
        .call = {.op = op, .attributes = &call.attributes, .inputs = call.inputs, .output = &call.output},
        .name = std::string(name_of(op))};
    for (const std::span<const float> input : inputs) {
      SHUNT_TRY_ASSIGN(const Binding binding, import(input));
      program_op.inputs.push_back(binding);
    }
    SHUNT_TRY_ASSIGN(program_op.output, import(result));
    ops_.push_back(std::move(program_op));
    return {};
  }

  Status run() {
    std::vector<OpCall> calls;
    for (const ProgramOp& op : ops_) calls.push_back(op.call);
    if (Support support = device_.supports(calls); !support) return fail(Code::unsupported, std::move(support.reason));
    SHUNT_TRY_ASSIGN(const auto program, device_.prepare({.name = "arrays", .ops = ops_}));
    return device_.submit(*program, {}).wait();
  }

 private:
  struct Call {
    Operand operand;
    Operand output;
    Attributes attributes;
    std::vector<const Operand*> inputs;
  };

  Result<Binding> import(std::span<const float> values) {
    SHUNT_TRY_ASSIGN(auto buffer, device_.import_host(std::as_bytes(values), nullptr));
    buffers_.push_back(std::move(buffer));
    return Binding{.buffer = buffers_.back().get(), .offset = 0, .bytes = values.size_bytes()};
  }

  Device& device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<ProgramOp> ops_;
};

}  // namespace

Result<std::unique_ptr<Prepared>> Prepared::create(const Bucket& bucket, Device& device, DeviceMemory& memory,
                                                   trace::Recorder* recorder) {
  SHUNT_TRY_ASSIGN(Graph graph, graph_for(bucket));
  SHUNT_TRY_ASSIGN(Plan plan, plan_for(graph, device));
  Device* const devices[] = {&device};
  SHUNT_TRY_ASSIGN(auto executable, Executable::create(std::move(graph), std::move(plan),
                                                       {.devices = devices,
                                                        .weights = &memory.weights,
                                                        .state = &memory.state,
                                                        .arenas = &memory.arenas,
                                                        .recorder = recorder}));
  return std::unique_ptr<Prepared>(new Prepared(std::move(executable)));
}

Status Prepared::write(std::string_view input, std::span<const float> values) {
  return executable_->write_input(*executable_->graph().find(input), std::as_bytes(values));
}

Status Prepared::run(const Task& work, std::optional<std::chrono::nanoseconds> timeout) {
  const bool has_b = inputs_of(work.function) == 2;
  const bool reduces = is_reduction(work.function);
  if (work.rows != 0) {
    const std::size_t whole = reduces ? std::size_t{work.rows} * work.columns : work.a.size();
    SHUNT_TRY(write("a", work.a.first(whole)));
    if (work.function == Function::matmul) transpose(work, staging_);
    if (has_b) SHUNT_TRY(write("b", work.function == Function::matmul ? staging_ : work.b.first(whole)));
  }
  if (reduces) {
    const auto write_rest = [&](std::string_view input, std::span<const float> values) {
      staging_.assign(work.columns, 0);
      std::ranges::copy(work.rest_of(values), staging_.begin());
      return write(input, staging_);
    };
    SHUNT_TRY(write_rest("a rest", work.a));
    if (has_b) SHUNT_TRY(write_rest("b rest", work.b));
  }
  return executable_->run({.parameters = {.tokens = work.rows}, .timeout = timeout});
}

Status Prepared::read(const Task& work, std::span<float> results) const {
  const auto read_output = [&](std::size_t output, std::span<float> to) {
    return executable_->read_output(output, 0, std::as_writable_bytes(to));
  };
  if (!is_reduction(work.function)) return read_output(0, results);
  if (work.rows != 0) SHUNT_TRY(read_output(0, results.first(work.rows)));
  return read_output(work.rows != 0 ? 1 : 0, results.last(1));
}

Result<double> predict_us(const Task& work, Device& device, const DeviceCost& cost) {
  SHUNT_TRY_ASSIGN(const Graph graph, graph_for(work.bucket()));
  SHUNT_TRY_ASSIGN(const Plan plan, plan_for(graph, device, &cost));
  double us = plan.predicted_us + cost.to_device().copy_us(work.a.size_bytes());
  if (!work.b.empty()) us += cost.to_device().copy_us(work.b.size_bytes());
  return us + cost.from_device().copy_us(work.results() * sizeof(float));
}

bool can_run_in_place(const Device& device, const Task& work) {
  if (!device.info().is_host_cpu() || work.function == Function::matmul || work.bytes() < kInPlaceBytes) return false;
  return is_reduction(work.function) ||
         (may_share(work.function, work.a, work.out) && may_share(work.function, work.b, work.out));
}

Status run_in_place(Device& device, const Task& work, std::span<float> results) {
  InPlace program(device);
  const Op op = op_of(work.function);
  const std::size_t inputs = inputs_of(work.function);
  if (!is_reduction(work.function)) {
    const Shape shape = work.function == Function::softmax ? Shape{work.rows, work.columns}
                                                           : Shape{static_cast<std::uint32_t>(work.a.size())};
    const std::span<const float> whole[] = {work.a, work.b};
    SHUNT_TRY(program.add(op, shape, std::span(whole).first(inputs), results));
    return program.run();
  }
  const std::size_t elements = std::size_t{work.rows} * work.columns;
  const std::span<const float> rows[] = {work.a.first(elements), inputs == 2 ? work.b.first(elements) : work.b};
  const std::span<const float> rest[] = {work.rest_of(work.a), inputs == 2 ? work.rest_of(work.b) : work.b};
  SHUNT_TRY(program.add(op, {work.rows, work.columns}, std::span(rows).first(inputs), results.first(work.rows)));
  const auto left = static_cast<std::uint32_t>(rest[0].size());
  if (left != 0) SHUNT_TRY(program.add(op, {1, left}, std::span(rest).first(inputs), results.last(1)));
  return program.run();
}

}  // namespace shunt::arrays
