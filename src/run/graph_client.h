// A caller's own graph as the client of a runner (run/runner.h): its one bucket, the inputs written to it, and how its
// state is rebuilt.
//
// Keeps the parts of the runtime that it uses. The source of its weights must outlive it. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "run/runner.h"
#include "shunt/computation.h"

namespace shunt {

class GraphClient final : private RunClient {
 public:
  GraphClient(Graph graph, const Runtime& runtime, WeightSource* weights, const ComputationOptions& options);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] Runner& runner() { return runner_; }
  // Returns the executable, with everything that was written; null after an error.
  [[nodiscard]] Executable* executable() const;
  // Returns the graph that it runs, with its plan explained; nothing if there is none.
  [[nodiscard]] std::optional<PlannedGraph> explained();
  void on_lost_state(std::function<Status()> rebuild) { rebuild_state_ = std::move(rebuild); }

  // The same as in Computation.
  [[nodiscard]] Status write(std::string_view input, std::span<const std::byte> bytes);
  [[nodiscard]] Status run(const Parameters& parameters);
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> to);

 private:
  [[nodiscard]] std::unique_ptr<BucketPlanner> planner_for(const DeviceSet& set,
                                                           std::optional<double> margin) const override;
  [[nodiscard]] std::vector<Expected> expected() const override;
  [[nodiscard]] Result<std::vector<Sample>> samples() const override;
  void forget() override;
  [[nodiscard]] Status rebuild() override;
  [[nodiscard]] std::optional<double> rebuild_us(BucketPlanner& planner) const override;

  // Called within Runner::attempt().
  [[nodiscard]] Status write_now(std::string_view input, std::span<const std::byte> bytes) const;
  [[nodiscard]] Status run_now(const Parameters& parameters);
  [[nodiscard]] Status read_now(std::size_t index, std::uint64_t offset, std::span<std::byte> to);

  const std::unique_ptr<const Runtime> runtime_;  // the members below end before it
  const Graph graph_;
  const ComputationOptions options_;
  const bool has_state_;
  const bool writes_state_;
  bool state_is_written_ = false;  // by a run that succeeded; after a failed run, the next one rebuilds it
  bool is_restored_ = false;       // devices hold the inputs that were written
  bool is_computed_ = false;       // outputs are those of the last run
  std::function<Status()> rebuild_state_;
  std::map<std::string, std::vector<std::byte>, std::less<>> inputs_;  // what was written, kept to write it again
  Parameters last_;
  Runner runner_;
};

}  // namespace shunt
