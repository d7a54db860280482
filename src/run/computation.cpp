#include "shunt/computation.h"

#include <utility>

#include "run/graph_client.h"
#include "run/strategy.h"

namespace shunt {

struct Computation::Parts {
  GraphClient client;
};

Computation::Computation(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Computation::~Computation() = default;

Result<std::unique_ptr<Computation>> Computation::create(Graph graph, const Runtime& runtime, WeightSource* weights,
                                                         const ComputationOptions& options) {
  std::unique_ptr<Parts> parts(new Parts{GraphClient(std::move(graph), runtime, weights, options)});
  Runner& runner = parts->client.runner();
  SHUNT_TRY(check_strategy(options.strategy, runner.device_pool()));
  SHUNT_TRY(runner.attempt([] { return Status{}; }));
  return std::unique_ptr<Computation>(new Computation(std::move(parts)));
}

Status Computation::write(std::string_view input, std::span<const std::byte> bytes) {
  return parts_->client.write(input, bytes);
}
Status Computation::run(const Parameters& parameters) { return parts_->client.run(parameters); }
Status Computation::read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const {
  return parts_->client.read(index, offset, to);
}
void Computation::on_lost_state(std::function<Status()> rebuild) { parts_->client.on_lost_state(std::move(rebuild)); }

std::size_t Computation::output_count() const { return parts_->client.graph().outputs().size(); }
const TensorInfo& Computation::output(std::size_t index) const {
  const Graph& graph = parts_->client.graph();
  return graph.tensor(graph.outputs()[index]);
}

std::string Computation::explain() const {
  const auto planned = parts_->client.explained();
  return planned ? to_text(planned->plan, planned->graph, true) : "";
}
std::string Computation::explain_json() const {
  const auto planned = parts_->client.explained();
  return planned ? to_json(planned->plan, planned->graph) : "{}";
}

}  // namespace shunt
