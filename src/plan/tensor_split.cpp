#include "plan/tensor_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "plan/problem.h"

namespace shunt {
namespace {

// Parts have a multiple of kRows rows, and at least kLeastRows.
constexpr std::uint32_t kRows = 64;
constexpr double kLeastRows = 256;
// The share of the plan's time that a rough estimate must save before the split is planned.
constexpr double kLeastGain = 0.05;
constexpr double kAll = 1;
// The usable share of a memory, before other uses are subtracted.
constexpr double kUsable = 0.95;

// Returns the weights that a unit multiplies with by row; none if it does not.
std::vector<TensorId> matrices_of(const Graph& graph, const Unit& unit) {
  std::vector<TensorId> matrices;
  for (const NodeId node : unit.nodes) {
    const Node& each = graph.nodes()[node];
    if (each.op != Op::linear) continue;
    const TensorInfo& weight = graph.tensor(each.inputs[1]);
    if (weight.operand.kind != TensorKind::weight || weight.producer != kNone || !weight.rows_of.empty()) return {};
    matrices.push_back(each.inputs[1]);
  }
  return matrices;
}

struct Share {
  std::uint32_t device = 0;
  double all_us = 0;    // time of the device for everything
  double start_us = 0;  // and to take part at all
  double most = kAll;
  double part = 0;
};

// Divides the work so that all end at once, with no part above its limit. False: they cannot hold everything.
bool divide(std::span<Share> shares) {
  std::vector<bool> is_full(shares.size(), false);
  for (std::size_t round = 0; round <= shares.size(); ++round) {
    double left = kAll;
    double start = 0;
    double speed = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (is_full[i]) {
        left -= shares[i].most;
      } else {
        start += shares[i].start_us / shares[i].all_us;
        speed += 1 / shares[i].all_us;
      }
    }
    if (speed == 0) return left <= 0;
    const double end_us = (left + start) / speed;
    bool fits = true;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      shares[i].part = is_full[i] ? shares[i].most : (end_us - shares[i].start_us) / shares[i].all_us;
      if (is_full[i] || shares[i].part <= shares[i].most) continue;
      is_full[i] = true;
      fits = false;
    }
    if (fits) return true;
  }
  return false;
}

double end_of(std::span<const Share> shares) {
  double end_us = 0;
  for (const Share& share : shares) end_us = std::max(end_us, share.start_us + share.all_us * share.part);
  return end_us;
}

// Divides the work, leaving out devices that would get next to nothing.
void divide_among_useful(std::vector<Share>& shares, double rows) {
  while (divide(shares)) {
    const auto least = std::ranges::min_element(shares, {}, &Share::part);
    if (shares.size() == 1 || least->part * rows >= kLeastRows) return;
    shares.erase(least);
  }
  shares.clear();
}

RowSplit split_by(std::span<const Share> shares, const TensorInfo& weight) {
  RowSplit split{.weight = weight.name, .rows = {}, .devices = {}};
  const std::uint32_t rows = weight.operand.shape[0];
  std::uint32_t first = 0;
  double end = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    end += shares[i].part;
    const auto blocks = static_cast<std::uint32_t>(std::lround(end * rows / kRows));
    const std::uint32_t next = i + 1 == shares.size() ? rows : std::min(blocks * kRows, rows);
    if (next == first) continue;
    split.rows.push_back(next - first);
    split.devices.push_back(shares[i].device);
    first = next;
  }
  return split;
}

class Sharing {
 public:
  Sharing(const PlanRequest& request, const Plan& plan)
      : request_(request),
        graph_(*request.graph),
        plan_(plan),
        lanes_(PlanProblem(request).lanes),
        most_(request.devices.size(), kAll) {
    for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit)
      if (!matrices_of(graph_, plan.units[unit]).empty()) units_.push_back(unit);
  }

  // Limits a device's part of each weight to the share of all weights that its memory holds.
  void stay_within(std::span<const std::uint64_t> budgets) {
    std::vector<double> left(memories_of(lanes_), std::numeric_limits<double>::infinity());
    for (std::size_t device = 0; device < budgets.size(); ++device)
      if (budgets[device] != kNoBudget)
        left[lanes_[device].memory] =
            std::min(left[lanes_[device].memory], static_cast<double>(budgets[device]) * kUsable);
    for (const MemoryUse& use : plan_.memory)
      for (std::size_t device = 0; device < lanes_.size(); ++device)
        if (plan_.devices[device].pool == use.pool) {
          left[lanes_[device].memory] -= static_cast<double>(use.total() - use.weight_bytes);
          break;
        }
    double all = 0;
    for (const std::uint32_t unit : units_)
      for (const TensorId weight : matrices_of(graph_, plan_.units[unit]))
        all += static_cast<double>(graph_.tensor(weight).operand.span_bytes());
    for (std::size_t device = 0; device < most_.size(); ++device)
      most_[device] = std::clamp(left[lanes_[device].memory] / all, 0.0, kAll);
  }

  struct Proposal {
    std::vector<RowSplit> splits;
    double gain_us = 0;
    std::vector<double> bytes;  // by memory
  };

  [[nodiscard]] bool fits(const Proposal& proposal) const {
    for (std::size_t device = 0; device < request_.budget_bytes.size(); ++device)
      if (proposal.bytes[lanes_[device].memory] > static_cast<double>(request_.budget_bytes[device])) return false;
    return true;
  }

  [[nodiscard]] Proposal propose() const {
    Proposal proposal{.splits = {}, .gain_us = 0, .bytes = std::vector<double>(memories_of(lanes_), 0)};
    std::set<TensorId> known;
    for (const std::uint32_t unit : units_) {
      const std::vector<TensorId> weights = matrices_of(graph_, plan_.units[unit]);
      const Decision& decision = plan_.decisions[unit];
      const double now_us = decision.candidates[decision.device].compute_us;
      const std::vector<Share> shares = shares_of(unit);
      const double gain_us = shares.size() < 2 ? 0 : now_us - end_of(shares);
      const bool makes_room = most_[decision.device] < kAll;
      const bool is_split = shares.size() > 1 && (makes_room || gain_us > 0) &&
                            std::ranges::none_of(weights, [&](TensorId weight) { return known.contains(weight); });
      for (const TensorId weight : weights) {
        const Operand& operand = graph_.tensor(weight).operand;
        const auto bytes = static_cast<double>(operand.span_bytes());
        if (!is_split) {
          if (known.insert(weight).second) proposal.bytes[lanes_[decision.device].memory] += bytes;
          continue;
        }
        known.insert(weight);
        for (const Share& share : shares) proposal.bytes[lanes_[share.device].memory] += bytes * share.part;
        proposal.splits.push_back(split_by(shares, graph_.tensor(weight)));
      }
      if (is_split) proposal.gain_us += gain_us;
    }
    return proposal;
  }

 private:
  // Two devices on one chip, or that read one memory, are together no faster than the better one. The unit's present
  // device comes first.
  [[nodiscard]] std::vector<Share> shares_of(std::uint32_t unit) const {
    const Decision& decision = plan_.decisions[unit];
    const std::vector<TensorId> weights = matrices_of(graph_, plan_.units[unit]);
    const std::uint32_t rows = graph_.tensor(weights.front()).operand.shape[0];
    if (std::ranges::any_of(weights, [&](TensorId id) { return graph_.tensor(id).operand.shape[0] != rows; }))
      return {};
    std::vector<Share> shares;
    for (const Candidate& candidate : decision.candidates) {
      if (candidate.compute_us <= 0 || most_[candidate.device] <= 0) continue;
      const Share share{.device = candidate.device,
                        .all_us = candidate.compute_us,
                        .start_us = start_us(unit, candidate.device),
                        .most = most_[candidate.device]};
      const DeviceInfo& info = request_.devices[candidate.device]->info();
      const auto same = std::ranges::find_if(shares, [&](const Share& other) {
        const DeviceInfo& its = request_.devices[other.device]->info();
        return its.compute_resource == info.compute_resource || its.memory_resource == info.memory_resource;
      });
      if (same == shares.end())
        shares.push_back(share);
      else if (share.start_us + share.all_us < same->start_us + same->all_us)
        *same = share;
    }
    divide_among_useful(shares, rows);
    std::ranges::stable_partition(shares, [&](const Share& share) { return share.device == decision.device; });
    return shares;
  }

  [[nodiscard]] double start_us(std::uint32_t unit, std::uint32_t device) const {
    const std::uint32_t home = plan_.decisions[unit].device;
    const Lane& lane = lanes_[device];
    if (device == home) return lane.launch_us;  // of the next step
    double us = lane.launch_us + lane.wake_us;
    const Unit& each = plan_.units[unit];
    for (const TensorId input : each.inputs)
      if (input != kNone && graph_.tensor(input).operand.kind == TensorKind::value)
        us += predict_copy(lanes_[home], lane, graph_.tensor(input).operand.span_bytes()).us;
    return us + predict_copy(lane, lanes_[home], graph_.tensor(each.output).operand.span_bytes()).us;
  }

  const PlanRequest& request_;
  const Graph& graph_;
  const Plan& plan_;
  std::vector<Lane> lanes_;
  std::vector<double> most_;  // by device: the largest part of each weight
  std::vector<std::uint32_t> units_;
};

}  // namespace

std::vector<RowSplit> splits_for_binding(const PlanRequest& request) {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const Device* device : request.devices) most = std::min(most, device->info().largest_binding_bytes);
  std::vector<RowSplit> splits;
  std::set<TensorId> known;
  for (NodeId node = 0; node < request.graph->nodes().size(); ++node)
    for (const TensorId id : matrices_of(*request.graph, unit_of(*request.graph, node))) {
      const TensorInfo& weight = request.graph->tensor(id);
      const std::uint32_t rows = weight.operand.shape[0];
      const std::uint64_t bytes = weight.operand.span_bytes();
      if (bytes <= most || bytes / rows * kRows > most || !known.insert(id).second) continue;
      // Equal parts, rounded down to what each device can hold.
      const std::uint64_t at_most = most / (bytes / rows) / kRows * kRows;
      const std::uint64_t parts = (rows + at_most - 1) / at_most;
      const std::uint64_t each = ((rows + parts - 1) / parts + kRows - 1) / kRows * kRows;
      RowSplit split{.weight = weight.name, .rows = {}, .devices = {}};
      for (std::uint64_t first = 0; first < rows; first += each)
        split.rows.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(each, rows - first)));
      splits.push_back(std::move(split));
    }
  return splits;
}

std::vector<RowSplit> splits_for_speed(const PlanRequest& request, const Plan& plan) {
  const auto* search = std::get_if<Search>(&request.where);
  if (request.devices.size() < 2 || search == nullptr || search->preferred != kNone) return {};
  Sharing sharing(request, plan);
  Sharing::Proposal proposal = sharing.propose();
  if (!sharing.fits(proposal)) {
    sharing.stay_within(request.budget_bytes);
    proposal = sharing.propose();
  }
  if (proposal.gain_us < kLeastGain * plan.predicted_us) return {};
  return std::move(proposal.splits);
}

std::vector<std::uint32_t> suggestions(const Graph& graph, std::span<const RowSplit> splits) {
  std::vector<std::uint32_t> suggested(graph.tensors().size(), kNone);
  std::map<std::pair<std::string_view, std::uint32_t>, std::uint32_t> devices;  // by weight and first row
  for (const RowSplit& split : splits) {
    std::uint32_t first = 0;
    for (std::size_t part = 0; part < split.devices.size(); ++part) {
      devices.emplace(std::pair(std::string_view(split.weight), first), split.devices[part]);
      first += split.rows[part];
    }
  }
  for (TensorId id = 0; id < graph.tensors().size(); ++id)
    if (const auto place = devices.find({graph.tensor(id).rows_of, graph.tensor(id).first_row}); place != devices.end())
      suggested[id] = place->second;
  return suggested;
}

std::vector<RowSplit> choose_splits(const PlanRequest& request, const Plan* plan, const TimeOfSplits& us_of) {
  const auto* search = std::get_if<Search>(&request.where);
  if (search == nullptr || !search->homes.empty()) return {};
  std::vector<RowSplit> chosen;
  std::optional<double> least_us;
  const auto consider = [&](std::vector<RowSplit> more, double margin) {
    std::erase_if(more, [&](const RowSplit& split) {
      return std::ranges::find(chosen, split.weight, &RowSplit::weight) != chosen.end();
    });
    if (more.empty()) return;
    more.insert(more.end(), chosen.begin(), chosen.end());
    if (!least_us && plan != nullptr)
      if (const auto us = us_of(chosen)) least_us = *us;
    const auto us = us_of(more);
    if (!us || (least_us && *us * (1 + margin) >= *least_us)) return;
    least_us = *us;
    chosen = std::move(more);
  };
  // A preferred device is to run all that it can.
  consider(splits_for_binding(request), search->preferred == kNone ? 0 : -1);
  if (plan != nullptr) consider(splits_for_speed(request, *plan), margin_or_default(search->margin, plan->is_measured));
  return chosen;
}

}  // namespace shunt
