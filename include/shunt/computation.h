// A graph of your own, planned and prepared on the devices of a runtime, and ready to run any number of times.
//
// A Computation owns its state and memory, and shares ownership of what it uses of the runtime, so both may be
// destroyed in any order. The source of its weights, and the memory that it refers to, must outlive it. A device that
// fails is quarantined, and its work is computed again elsewhere. A graph without state is planned again when devices
// turn out slower or faster than predicted. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shunt/graph.h"
#include "shunt/numerics.h"
#include "shunt/runtime.h"
#include "shunt/strategy.h"
#include "shunt/weights.h"

namespace shunt {

struct ComputationOptions {
  Strategy strategy = Strategy::automatic;  // not `layers`, which is for models
  Numerics numerics = Numerics::exact;
  // Another choice replaces the first device only if that one would take more than 1 + margin times as long. Empty:
  // 0.05, or 1 while any device's rates are priors.
  std::optional<double> margin = std::nullopt;
  bool profile = false;  // record the time of each op in a sample of the runs
};

class Computation {
 public:
  // `weights` may be null for a graph without weights. Errors: invalid for a strategy that is for models; unsupported
  // if no device can run an op, with each device's reason, or if the preferred one cannot and RuntimeOptions::strict is
  // set; out_of_memory; io; those of the devices.
  [[nodiscard]] static Result<std::unique_ptr<Computation>> create(Graph graph, const Runtime& runtime,
                                                                   WeightSource* weights,
                                                                   const ComputationOptions& options = {});
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  // Writes the first bytes of an input and leaves the rest as it was. Errors: invalid for an unknown name, or for more
  // bytes than the input has.
  [[nodiscard]] Status write(std::string_view input, std::span<const std::byte> bytes);
  // Computes the outputs from the inputs, and new state from the state. `parameters` count the valid rows of tensors
  // whose extent is tokens or outputs; other rows may hold anything. Errors: those of a device if no other is left;
  // device_lost for lost state that cannot be rebuilt; interrupted by RuntimeOptions::watch, before the run or, without
  // state, between its steps. After an error no output may be read. An interrupted run does not affect the next one.
  [[nodiscard]] Status run(const Parameters& parameters = {});
  // Copies bytes of output `index` from `offset` in its contiguous tensor. If numbers are not finite, they are computed
  // again without each device in turn, in case one is at fault. Errors: invalid outside the tensor.
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const;

  // Sets a function to call when the graph's state was lost with a device and is zero again. It calls write() and run()
  // to restore the state after the last successful run, and returns their errors. Without it lost state cannot be
  // rebuilt. With it each run reads all outputs to check that they are finite.
  void on_lost_state(std::function<Status()> rebuild);

  [[nodiscard]] std::size_t output_count() const;
  // Describes output `index`. REQUIRES: index < output_count().
  [[nodiscard]] const TensorInfo& output(std::size_t index) const;
  // Explains where each op runs and why: every candidate with its predicted times or what it lacks. After an error the
  // text is empty and the JSON is {}.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string explain_json() const;

 private:
  struct Parts;
  explicit Computation(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace shunt
