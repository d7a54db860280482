// A graph of your own, planned and prepared on the devices of a runtime, ready to be run again and again.
//
// A Computation owns its state and its memory, and keeps what it uses of the runtime, so that the two may end in any
// order. The source of its weights, with the memory it names, must outlive it. A device that fails is quarantined from
// then on, and what it knew is computed again elsewhere. A graph without state is planned anew where devices turn out
// to be slower or faster than they were taken for. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shunt/graph.h"
#include "shunt/runtime.h"
#include "shunt/strategy.h"
#include "shunt/weights.h"

namespace shunt {

struct ComputationOptions {
  Strategy strategy = Strategy::automatic;  // not layers: a graph has none
  // By which part of its own time another choice must be faster than the device named first; nothing: 0.05, and 1 (half
  // the time) while the rates of a device are priors and not measured.
  std::optional<double> margin = std::nullopt;
  bool profile = false;  // record the time of each op, in a sample of the runs
};

class Computation {
 public:
  // `weights` may be null for graphs without any. Errors: invalid for a strategy that is for models; unsupported where
  // no device can run an op, with each device's reason, or where RuntimeOptions::strict allows no other than the one
  // that the strategy likes; out_of_memory, io and those of the devices.
  [[nodiscard]] static Result<std::unique_ptr<Computation>> create(Graph graph, const Runtime& runtime,
                                                                   WeightSource* weights,
                                                                   const ComputationOptions& options = {});
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  // The first bytes of the input of that name; the rest stays as it was. Errors: invalid for another name or more
  // bytes than it has.
  [[nodiscard]] Status write(std::string_view input, std::span<const std::byte> bytes);
  // Computes the outputs from the inputs, and new state from the state. `parameters` say how many rows are valid in a
  // graph with inputs of extent tokens or outputs; the others may hold anything. Errors: those of a device where no
  // other is left, device_lost for state that was lost with one and that nobody can make again; interrupted where
  // RuntimeOptions::watch says so: before the run, or between its steps in a graph without state. Then no output may be
  // read; after an interruption the next run is as if this one had not been asked for.
  [[nodiscard]] Status run(const Parameters& parameters = {});
  // Bytes of output `index` from `offset`, as they lie in the contiguous tensor. Where numbers are not finite, they are
  // computed again without each device in turn, in case it is one's fault. Errors: invalid outside of the tensor.
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const;

  // `rebuild` is called when the graph's state was lost with a device, and is zeros again: it makes the state what it
  // was after the last run that went well, by write() and run(), and passes their errors on. Without it a graph with
  // state ends with its device. With it each run reads all outputs, to see that they are finite.
  void on_lost_state(std::function<Status()> rebuild);

  [[nodiscard]] std::size_t output_count() const;
  // What output `index` is. REQUIRES: index < output_count().
  [[nodiscard]] const TensorInfo& output(std::size_t index) const;
  // Where each op runs and why: every candidate with its predicted times or what it lacks. Nothing after an error.
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string explain_json() const;

 private:
  struct Parts;
  explicit Computation(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace shunt
