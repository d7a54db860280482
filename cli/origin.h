// The origin of a trace: the model, the options and the devices. It is stored in the trace, so that a report can say
// what ran and `shunt replay` can plan it again. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/session.h"
#include "output.h"
#include "shunt/computation.h"
#include "shunt/runtime.h"
#include "shunt/trace.h"
#include "trace/recorder.h"

namespace shunt::cli {

struct Origin {
  struct DeviceName {
    std::string id;
    std::string name;
    std::string type;
    bool is_host_cpu = false;
  };
  std::string command;  // "run"
  std::string version;  // of shunt
  std::string model;    // an absolute path; for run-graph, of an ONNX file
  std::string machine;  // likewise; empty: the machine that recorded the trace
  std::vector<DeviceName> devices;
  std::string named;  // the list of devices that the user gave; empty: none
  std::uint32_t threads = 0;
  std::map<std::string, std::uint64_t> budgets;
  std::map<std::string, std::vector<std::int64_t>> shapes;  // of the inputs of a graph other than a language model
  std::uint32_t context = 0;                                // the one in use; 0 for a graph
  std::uint32_t sequences = 1;
  std::uint32_t batch = 0;
  bool fuse = true;
  std::string cache_type;
  std::string strategy;
  std::string numerics;
  std::vector<double> margin;  // one or none

  [[nodiscard]] bool is_graph() const { return command == "run-graph"; }
  // For a graph only the strategy, numerics and the margin. Errors: invalid for unknown names.
  [[nodiscard]] Result<SessionOptions> session() const;
  // Without devices.
  [[nodiscard]] RuntimeOptions runtime() const;
};

// The measured speeds; not stored for simulated machines.
struct Speeds {
  std::uint64_t prompt_tokens = 0;
  double prompt_tokens_per_s = 0;
  std::uint64_t generated_tokens = 0;
  double generated_tokens_per_s = 0;
};

[[nodiscard]] Origin origin_of(std::string_view command, const std::string& model, const models::Session& session,
                               const Runtime& runtime, const RuntimeOptions& options);
[[nodiscard]] Origin origin_of(std::string_view command, const std::string& model,
                               const std::map<std::string, Shape>& shapes, const ComputationOptions& asked,
                               const Runtime& runtime, const RuntimeOptions& options);

[[nodiscard]] Json to_json(const Origin& origin);
[[nodiscard]] Json to_json(const Speeds& speeds);
void attach(trace::Recorder& recorder, const Origin& origin);
void attach(trace::Recorder& recorder, const Speeds& speeds);

// Errors: invalid if the recording has no origin.
[[nodiscard]] Result<Origin> origin_in(const trace::Recording& recording);
[[nodiscard]] std::optional<Speeds> speeds_in(const trace::Recording& recording);

}  // namespace shunt::cli
