#include "shunt/computation.h"

#include <fmt/format.h>

#include "plan/planner.h"
#include "run/executable.h"

namespace shunt {

struct Computation::Parts {
  explicit Parts(WeightSource* source) : weights(source) {}

  WeightStore weights;
  StateStore state;
  ArenaStore arenas;
  std::unique_ptr<Executable> executable;
  std::uint32_t steps = 0;
};

Computation::Computation(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Computation::~Computation() = default;

Result<std::unique_ptr<Computation>> Computation::create(Graph graph, const Runtime& runtime, WeightSource* weights) {
  SHUNT_TRY_ASSIGN(Plan plan, make_plan({.graph = &graph,
                                         .devices = runtime.devices(),
                                         .costs = runtime.costs(),
                                         .budget_bytes = {runtime.budgets().begin(), runtime.budgets().end()}}));
  auto parts = std::make_unique<Parts>(weights);
  SHUNT_TRY_ASSIGN(parts->executable, Executable::create(std::move(graph), std::move(plan),
                                                         {.devices = runtime.devices(),
                                                          .weights = &parts->weights,
                                                          .state = &parts->state,
                                                          .arenas = &parts->arenas,
                                                          .recorder = &runtime.recorder()}));
  return std::unique_ptr<Computation>(new Computation(std::move(parts)));
}

Status Computation::write(std::string_view input, std::span<const std::byte> bytes) {
  const auto id = parts_->executable->graph().find(input);
  if (!id) return fail(Code::invalid, fmt::format("the graph has no input \"{}\"", input));
  return parts_->executable->write_input(*id, bytes);
}

Status Computation::run(const Parameters& parameters) {
  return parts_->executable->run({.parameters = parameters, .step = parts_->steps++});
}

Status Computation::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const {
  return parts_->executable->read_output(index, offset, to);
}

std::size_t Computation::output_count() const { return parts_->executable->graph().outputs().size(); }

const TensorInfo& Computation::output(std::size_t index) const {
  const Graph& graph = parts_->executable->graph();
  return graph.tensor(graph.outputs()[index]);
}

std::string Computation::explain() const {
  return to_text(parts_->executable->plan(), parts_->executable->graph(), true);
}
std::string Computation::explain_json() const {
  return to_json(parts_->executable->plan(), parts_->executable->graph());
}

}  // namespace shunt
