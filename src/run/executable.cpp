#include "run/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "ops/op.h"
#include "ops/quantize/blocks.h"
#include "plan/record.h"
#include "run/execution.h"
#include "run/finite.h"

namespace shunt {
namespace {

// Reads of much more wait within the call.
constexpr std::uint64_t kBriefReadBytes = std::uint64_t{1} << 20U;

// The most bytes of results that a device is asked to bring along; copying more takes longer than another request.
constexpr std::uint64_t kMostResultBytes = std::uint64_t{1} << 20U;

// The most bytes of an input that are kept to compare them with the next ones.
constexpr std::uint64_t kMostKeptBytes = std::uint64_t{1} << 20U;

// Memory of state is pinned in pieces of so much.
constexpr std::uint64_t kPinnedPieceBytes = std::uint64_t{4} << 20U;
// PinnedMemory::tried_bytes once nothing is left to pin.
constexpr std::uint64_t kTriedAll = ~std::uint64_t{0};

// Timing ops one by one makes a GPU's run half as long again, and more if each op is waited for.
constexpr std::uint32_t kRunsPerProfile = 32;

// Returns the byte at which element `elements` of a tensor begins. REQUIRES: it starts a block.
std::uint64_t byte_offset(DType dtype, std::uint64_t elements) {
  const DTypeInfo& info = info_of(dtype);
  return elements / info.block_elements * info.block_bytes;
}

// At its end no device writes weights any more, also if memory runs out on the way there.
struct NothingOnItsWay {
  WeightStore& weights;
  explicit NothingOnItsWay(WeightStore& of) : weights(of) {}
  ~NothingOnItsWay() { weights.abandon(); }
  NothingOnItsWay(const NothingOnItsWay&) = delete;
  NothingOnItsWay& operator=(const NothingOnItsWay&) = delete;
};

}  // namespace

Executable::Executable(Graph graph, Plan plan, const ExecutableContext& context)
    : graph_(std::move(graph)),
      plan_(std::move(plan)),
      context_(context),
      devices_(context.devices.begin(), context.devices.end()),
      staging_(plan_.steps.size()),
      pinned_(plan_.steps.size()) {}

Result<std::unique_ptr<Executable>> Executable::create(Graph graph, Plan plan, const ExecutableContext& context) {
  std::unique_ptr<Executable> executable(new Executable(std::move(graph), std::move(plan), context));
  SHUNT_TRY(check(executable->plan_, executable->graph_));
  executable->choose_layouts();
  SHUNT_TRY(executable->bind_storage());
  executable->find_reads_in_order();
  executable->name_events();
  SHUNT_TRY(executable->prepare_programs());
  executable->is_bound_ = true;
  return executable;
}

std::vector<Executable::WantedLayout> Executable::wanted_layouts(std::uint32_t position) const {
  const Unit& unit = plan_.units[position];
  const std::uint32_t device = plan_.decisions[position].device;
  const UnitCall call(graph_, unit);
  std::vector<WantedLayout> wanted;
  for (std::size_t input = 0; input < unit.inputs.size(); ++input) {
    if (unit.inputs[input] == kNone) continue;
    const TensorId base = graph_.tensor(unit.inputs[input]).base;
    if (graph_.tensor(base).operand.kind != TensorKind::weight) continue;
    const Residence* const residence = plan_.find(base, device);
    const bool is_whole = base == unit.inputs[input] && residence->device == device;
    wanted.push_back({static_cast<std::size_t>(residence - plan_.residences.data()),
                      is_whole ? devices_[device]->layout_for(call.call(), input) : Layout::rows});
  }
  return wanted;
}

void Executable::choose_layouts() {
  std::vector<std::vector<WantedLayout>> units;
  std::vector<bool> is_wanted_in_rows(plan_.residences.size(), false);
  layouts_.assign(plan_.residences.size(), Layout::rows);
  reads_.assign(plan_.residences.size(), WeightStore::Reads::some_rows);
  for (const Step& step : plan_.steps) {
    if (step.transfer.copied != Copied::weight) continue;
    const auto index_of = [&](std::uint32_t device) {
      return static_cast<std::size_t>(plan_.find(step.transfer.tensor, device) - plan_.residences.data());
    };
    const std::size_t source = index_of(step.transfer.from);
    reads_[source] = WeightStore::Reads::all;
    // Copies by way of the host have the layout of their source.
    is_wanted_in_rows[source] = true;
    if (devices_[step.transfer.from]->info().memory_pool != kHostPool)
      is_wanted_in_rows[index_of(step.transfer.to)] = true;
  }
  for (std::uint32_t position = 0; position < plan_.units.size(); ++position) {
    units.push_back(wanted_layouts(position));
    for (const auto& [residence, layout] : units.back()) {
      if (layout == Layout::rows) is_wanted_in_rows[residence] = true;
      layouts_[residence] = is_wanted_in_rows[residence] ? Layout::rows : layout;
      if (plan_.units[position].op != Op::gather) reads_[residence] = WeightStore::Reads::all;
    }
  }
  // A unit reads all its weights in one layout; those that have no other than rows do not count.
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<WantedLayout>& wanted : units) {
      const auto is_as_wanted = [&](const WantedLayout& each) { return layouts_[each.residence] == each.layout; };
      if (std::ranges::all_of(wanted, is_as_wanted)) continue;
      for (const WantedLayout& each : wanted)
        if (std::exchange(layouts_[each.residence], Layout::rows) != Layout::rows) changed = true;
    }
  }
}

Result<Binding> Executable::bind_weight(std::size_t number, Progress& progress) {
  const Residence& residence = plan_.residences[number];
  Device& device = *devices_[residence.device];
  if (context_.watch != nullptr) SHUNT_TRY(context_.watch->check("copying weights"));
  SHUNT_TRY_ASSIGN(WeightStore::Weight weight,
                   on_device(device, context_.weights->acquire(graph_.tensor(residence.tensor), device,
                                                               layouts_[number], reads_[number])));
  progress.done += residence.bytes;
  if (context_.watch != nullptr && weight.was_copied)
    context_.watch->report(progress.kind, progress.done, progress.total);
  weights_.push_back(std::move(weight.buffer));
  return Binding{.buffer = weights_.back().get(), .offset = 0, .bytes = weight.bytes, .layout = layouts_[number]};
}

Status Executable::bind_storage() {
  const NothingOnItsWay after(*context_.weights);
  Status bound = bind_residences();
  Status arrived = context_.weights->finish();
  return bound ? std::move(arrived) : std::move(bound);
}

Status Executable::bind_residences() {
  arenas_.resize(devices_.size());
  Progress progress{.kind = ProgressKind::copying_weights};
  for (std::size_t number = 0; number < plan_.residences.size(); ++number) {
    const Residence& residence = plan_.residences[number];
    if (residence.kind != StorageKind::weight) continue;
    progress.total += residence.bytes;
    context_.weights->expect(graph_.tensor(residence.tensor), *devices_[residence.device], layouts_[number]);
  }
  for (std::size_t number = 0; number < plan_.residences.size(); ++number) {
    const Residence& residence = plan_.residences[number];
    const TensorInfo& tensor = graph_.tensor(residence.tensor);
    Device& device = *devices_[residence.device];
    switch (residence.kind) {
      case StorageKind::value:
      case StorageKind::input: {
        SHUNT_TRY_ASSIGN(Buffer * arena, arena_on(residence.device));
        storage_.push_back(
            {.buffer = arena, .offset = residence.offset, .bytes = residence.bytes, .layout = layouts_[number]});
        break;
      }
      case StorageKind::weight: {
        SHUNT_TRY_ASSIGN(const Binding weight, bind_weight(number, progress));
        storage_.push_back(weight);
        break;
      }
      case StorageKind::state: {
        SHUNT_TRY_ASSIGN(const Binding state, on_device(device, context_.state->acquire(tensor, device)));
        storage_.push_back(state);
        break;
      }
    }
  }
  return {};
}

Result<Buffer*> Executable::arena_on(std::uint32_t device) {
  std::shared_ptr<Buffer>& arena = arenas_[device];
  if (arena == nullptr) {
    SHUNT_TRY_ASSIGN(arena, on_device(*devices_[device],
                                      context_.arenas->acquire(plan_.devices[device].arena_bytes, *devices_[device])));
  }
  return arena.get();
}

void Executable::unbind() {
  is_bound_ = false;
  programs_.clear();
  std::ranges::fill(arenas_, nullptr);
  written_.clear();
  has_lent_weights_ = false;
}

Status Executable::bind() {
  unbind();
  for (std::size_t number = 0; number < plan_.residences.size(); ++number) {
    const Residence& residence = plan_.residences[number];
    if (residence.kind != StorageKind::value && residence.kind != StorageKind::input) continue;
    SHUNT_TRY_ASSIGN(storage_[number].buffer, arena_on(residence.device));
  }
  SHUNT_TRY(prepare_programs());
  is_bound_ = true;
  return {};
}

Binding Executable::binding_of(TensorId id, std::uint32_t device) const {
  if (id == kNone) return {};
  const TensorInfo& tensor = graph_.tensor(id);
  const Residence* residence = plan_.find(tensor.base, device);
  Binding binding = storage_[static_cast<std::size_t>(residence - plan_.residences.data())];
  binding.offset += byte_offset(tensor.operand.dtype, tensor.offset);
  binding.bytes = tensor.operand.span_bytes();
  return binding;
}

std::pair<Binding, Binding> Executable::ends_of(const Transfer& transfer) const {
  std::pair<Binding, Binding> ends{binding_of(transfer.tensor, transfer.from),
                                   binding_of(transfer.tensor, transfer.to)};
  if (transfer.copied != Copied::state) return ends;
  const bool returns = plan_.find(transfer.tensor, transfer.to)->kind == StorageKind::state;
  const StateInUse::Range& range = returns ? state_in_use_.written : state_in_use_.read;
  const Shape& shape = graph_.tensor(transfer.tensor).operand.shape;
  const std::uint64_t rows = shape.rank() == 0 ? 0 : shape[0];
  if (rows == 0) return ends;
  const std::uint64_t row_bytes = transfer.bytes / rows;
  const std::uint64_t end = std::min(range.end, rows);
  const std::uint64_t begin = std::min(range.begin, end);
  for (Binding* const binding : {&ends.first, &ends.second}) {
    binding->offset += begin * row_bytes;
    binding->bytes = (end - begin) * row_bytes;
  }
  return ends;
}

// Not before the step first runs: by then threads have brought the pages of a weight into memory, which takes a driver
// longer. Of state only what was in use, which grows.
void Executable::pin_host_of(std::uint32_t number) {
  PinnedMemory& pinned = pinned_[number];
  if (pinned.tried_bytes == kTriedAll) return;
  const Transfer& transfer = plan_.steps[number].transfer;
  const bool is_state = transfer.copied == Copied::state;
  const bool returns = is_state && devices_[transfer.to]->info().memory_pool == kHostPool;
  const Binding whole = binding_of(transfer.tensor, returns ? transfer.to : transfer.from);
  const std::span<const std::byte> host = whole.buffer->host();
  std::uint64_t bytes = whole.bytes;
  std::shared_ptr<const void> owner;
  if (is_state) {
    const auto [source, target] = ends_of(transfer);
    const Binding& used = returns ? target : source;
    const std::uint64_t pieces = (used.offset + used.bytes - whole.offset + kPinnedPieceBytes - 1) / kPinnedPieceBytes;
    // The driver of another GPU takes no span that was pinned for this one in part.
    if (std::ranges::count_if(devices_, [](const Device* each) { return !each->info().is_host_cpu(); }) == 1)
      bytes = std::min(bytes, pieces * kPinnedPieceBytes);
    owner = context_.state->find(graph_.tensor(graph_.tensor(transfer.tensor).base).name);
  } else if (const auto weight = std::ranges::find(weights_, whole.buffer, &std::shared_ptr<Buffer>::get);
             weight != weights_.end()) {
    owner = *weight;
  }
  const bool can_be_pinned = owner != nullptr && !host.empty();
  const bool is_new = bytes > pinned.tried_bytes;
  if (is_new) pinned.tried_bytes = bytes;
  if (!can_be_pinned || bytes == whole.bytes) pinned.tried_bytes = kTriedAll;
  if (!can_be_pinned || !is_new) return;
  if (auto held = devices_[returns ? transfer.from : transfer.to]->pin_host(
          host.subspan(whole.offset, bytes), is_state ? HostAccess::reads_and_writes : HostAccess::reads,
          std::move(owner)))
    pinned.held = std::move(*held);
}

std::vector<Binding> Executable::results_of(const Step& step) const {
  std::vector<Binding> results;
  for (std::uint32_t position = step.first_unit; position < step.first_unit + step.unit_count; ++position)
    for (const TensorId output : graph_.outputs()) {
      const TensorInfo& tensor = graph_.tensor(output);
      const bool is_made_here = graph_.tensor(plan_.units[position].output).base == tensor.base;
      if (!is_made_here || tensor.operand.kind == TensorKind::state) continue;
      const Binding result = binding_of(output, step.device);
      if (result.bytes <= kMostResultBytes) results.push_back(result);
    }
  return results;
}

Status Executable::prepare_programs() {
  for (std::size_t number = 0; number < plan_.steps.size(); ++number) {
    const Step& step = plan_.steps[number];
    programs_.emplace_back();
    if (step.kind != Step::Kind::compute) continue;
    SHUNT_TRY_ASSIGN(programs_.back(),
                     on_device(*devices_[step.device], prepare(step, fmt::format("step {}", number))));
  }
  return {};
}

Result<Executable::Prepared> Executable::prepare(const Step& step, std::string_view name) const {
  std::vector<UnitCall> calls;
  calls.reserve(step.unit_count);
  std::vector<ProgramOp> program_ops;
  std::deque<std::string> reasons;  // which do not move
  for (std::uint32_t position = step.first_unit; position < step.first_unit + step.unit_count; ++position) {
    const Unit& unit = plan_.units[position];
    const Decision& decision = plan_.decisions[position];
    const Candidate& chosen = decision.candidates[decision.device];
    calls.emplace_back(graph_, unit);
    reasons.push_back(
        fmt::format("{}{}", name_of(decision.reason), kernel_in_words(chosen.kernel, chosen.kernel_measured)));
    ProgramOp op{.call = calls.back().call(),
                 .output = binding_of(unit.output, step.device),
                 .name = graph_.nodes()[unit.nodes.back()].name,
                 .reason = reasons.back(),
                 .predicted_us = chosen.compute_us};
    for (const TensorId input : unit.inputs) op.inputs.push_back(binding_of(input, step.device));
    program_ops.push_back(std::move(op));
  }
  const std::vector<Binding> results = results_of(step);
  Device& device = *devices_[step.device];
  const ProgramRequest request{
      .name = fmt::format("{}: {} .. {}", name, program_ops.front().name, program_ops.back().name),
      .ops = program_ops,
      .predicted_us = step.end_us - step.start_us,
      .results = results,
      .shared_scratch_bytes = plan_.devices[step.device].shared_scratch_bytes,
      .plan = plan_number_};
  Prepared prepared;
  SHUNT_TRY_ASSIGN(prepared.program, device.prepare(request));
  if (!prepared.program->records()) prepared.trace.emplace(request, device.info().id, context_.recorder);
  return prepared;
}

std::optional<std::uint32_t> Executable::next_audit() const {
  if (context_.audits == nullptr || context_.audits->each == 0 || (runs_ + 1) % context_.audits->each != 0)
    return std::nullopt;
  const auto position = static_cast<std::uint32_t>(runs_ / context_.audits->each % plan_.units.size());
  return can_audit(plan_.units[position].op) && !uses_travelling_state(position) ? std::optional(position)
                                                                                 : std::nullopt;
}

// Copies of state have whatever else was there where it is not in use.
bool Executable::uses_travelling_state(std::uint32_t position) const {
  return std::ranges::any_of(plan_.units[position].inputs, [&](TensorId input) {
    if (input == kNone || graph_.tensor(input).operand.kind != TensorKind::state) return false;
    return plan_.find(graph_.tensor(input).base, plan_.decisions[position].device)->kind == StorageKind::value;
  });
}

Status Executable::run_part(const Step& step, std::uint32_t begin, std::uint32_t end, const Submission& submission) {
  if (begin == end) return {};
  Step part{.device = step.device, .first_unit = begin, .unit_count = end - begin};
  for (std::uint32_t position = begin; position < end; ++position) {
    const Decision& decision = plan_.decisions[position];
    part.end_us += decision.candidates[decision.device].compute_us;
  }
  SHUNT_TRY_ASSIGN(const Prepared prepared, prepare(part, "audit"));
  Device& device = *devices_[step.device];
  const std::uint64_t start_ns = device.now_ns();
  Status status = device.submit(*prepared.program, submission).wait();
  if (prepared.trace) prepared.trace->record_program(start_ns, device.now_ns(), submission.step, status);
  return status;
}

Status Executable::run_in_ops(std::uint32_t number, const Submission& submission) {
  const Step& step = plan_.steps[number];
  const Prepared& prepared = programs_[number];
  Device& device = *devices_[step.device];
  Submission one = submission;
  for (std::uint32_t op = 0; op < step.unit_count; ++op) {
    one.op = op;
    const std::uint64_t start_ns = device.now_ns();
    SHUNT_TRY(device.submit(*prepared.program, one).wait());
    const std::uint64_t end_ns = device.now_ns();
    const std::uint64_t took_ns = std::min(prepared.program->op_ns().value_or(~std::uint64_t{0}), end_ns - start_ns);
    prepared.trace->record_op(op, end_ns - took_ns, end_ns, submission.step);
  }
  return {};
}

// Reads weights from their source, so that a copy that has changed is found, too.
Result<std::vector<std::byte>> Executable::read_tensor(TensorId id, std::uint32_t device) const {
  const TensorInfo& tensor = graph_.tensor(id);
  const Binding binding = binding_of(id, device);
  std::vector<std::byte> bytes(binding.bytes);
  if (tensor.operand.kind == TensorKind::weight)
    SHUNT_TRY(
        context_.weights->read(graph_.tensor(tensor.base), byte_offset(tensor.operand.dtype, tensor.offset), bytes));
  else
    SHUNT_TRY(devices_[device]->read(binding, bytes).wait());
  return bytes;
}

Status Executable::run_inspected(const Step& step, std::uint32_t position, const Submission& submission) {
  const TensorId output = plan_.units[position].output;
  SHUNT_TRY(run_part(step, step.first_unit, position + 1, submission));
  SHUNT_TRY_ASSIGN(const std::vector<std::byte> bytes, read_tensor(output, step.device));
  inspected_ = are_finite(graph_.tensor(output).operand, submission.parameters, 0, bytes);
  return run_part(step, position + 1, step.first_unit + step.unit_count, submission);
}

Result<bool> Executable::is_finite_at(std::uint32_t position, const Submission& submission) {
  inspected_ = true;
  const Status status = Execution(*this, submission, position).wait();
  const bool finite = *std::exchange(inspected_, std::nullopt);
  SHUNT_TRY(status);
  return finite;
}

Result<bool> Executable::is_finite_weight(TensorId weight, std::uint32_t device) const {
  const Operand& operand = graph_.tensor(weight).operand;
  SHUNT_TRY_ASSIGN(const std::vector<std::byte> bytes, read_tensor(weight, device));
  if (info_of(operand.dtype).kind != DTypeKind::quantized) return are_finite(operand, {}, 0, bytes);
  std::vector<float> row(operand.shape.columns());
  SHUNT_TRY_ASSIGN(const std::uint64_t row_bytes, bytes_of(operand.dtype, {operand.shape.columns()}));
  for (std::uint64_t at = 0; at + row_bytes <= bytes.size() && row_bytes != 0; at += row_bytes) {
    decode_row(operand.dtype, bytes.data() + at, row.size(), row.data());
    if (!are_finite(row)) return false;
  }
  return true;
}

Result<std::string> Executable::find_not_finite(const Submission& submission) {
  std::vector<std::uint32_t> positions;
  for (std::uint32_t position = 0; position < plan_.units.size(); ++position)
    if (graph_.tensor(plan_.units[position].output).operand.kind == TensorKind::value) positions.push_back(position);
  // Numbers computed from non-finite ones are not finite. So the first such op lies between the last finite result and
  // the first one seen that is not.
  std::size_t begin = 0;
  std::size_t end = positions.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    SHUNT_TRY_ASSIGN(const bool finite, is_finite_at(positions[middle], submission));
    (finite ? begin : end) = finite ? middle + 1 : middle;
  }
  if (begin == positions.size()) return std::string("each op alone computes finite numbers");
  const Unit& unit = plan_.units[positions[begin]];
  const std::uint32_t device = plan_.decisions[positions[begin]].device;
  std::string found = fmt::format("op {} makes tensor \"{}\" not finite on {}", name_of(unit.op),
                                  graph_.tensor(unit.output).name, plan_.devices[device].id);
  for (const TensorId input : unit.inputs) {
    if (input == kNone || graph_.tensor(input).operand.kind != TensorKind::weight) continue;
    SHUNT_TRY_ASSIGN(const bool finite, is_finite_weight(input, device));
    if (!finite) found += fmt::format("; its weight \"{}\" has numbers that are not finite", graph_.tensor(input).name);
  }
  return found;
}

Status Executable::run_audited(const Step& step, std::uint32_t position, const Submission& submission) {
  if (inspected_) return run_inspected(step, position, submission);
  const Unit& unit = plan_.units[position];
  const UnitCall call(graph_, unit);
  const Device& device = *devices_[step.device];
  const std::uint64_t start_ns = device.now_ns();
  SHUNT_TRY(run_part(step, step.first_unit, position, submission));
  const Decision& decision = plan_.decisions[position];
  AuditedOp op{.call = call.call(),
               .arithmetic = decision.candidates[decision.device].arithmetic,
               .parameters = submission.parameters};
  for (const TensorId input : unit.inputs) {
    op.inputs.emplace_back();
    if (input == kNone) continue;
    SHUNT_TRY_ASSIGN(op.inputs.back(), read_tensor(input, step.device));
  }
  SHUNT_TRY(run_part(step, position, position + 1, submission));
  SHUNT_TRY_ASSIGN(op.output, read_tensor(unit.output, step.device));
  const auto turn = static_cast<std::uint32_t>(runs_ / context_.audits->each / plan_.units.size());
  Status right = audit(op, turn);
  const std::string label = fmt::format("{} {}", name_of(unit.op), graph_.nodes()[unit.nodes.back()].name);
  record_audit(label, step.device, start_ns, submission, right);
  if (!right) {
    context_.audits->wrong.push_back(device.info().id);
    return fail_at(fmt::format("\"{}\", {}, is wrong", label, to_string(op.call)), std::move(right).error());
  }
  return run_part(step, position + 1, step.first_unit + step.unit_count, submission);
}

void Executable::record_audit(std::string_view label, std::uint32_t device, std::uint64_t start_ns,
                              const Submission& submission, const Status& right) const {
  if (context_.recorder == nullptr) return;
  context_.recorder->record({.start_ns = start_ns,
                             .duration_ns = devices_[device]->now_ns() - start_ns,
                             .what = context_.recorder->intern(label),
                             .device = context_.recorder->intern(plan_.devices[device].id),
                             .kind = trace::Kind::audit,
                             .failed = !right,
                             .step = submission.step,
                             .plan = plan_number_});
}

void Executable::find_reads_in_order() {
  for (const Step& step : plan_.steps) {
    const Transfer& transfer = step.transfer;
    reads_in_order_.push_back(step.kind == Step::Kind::transfer && transfer.copied == Copied::value &&
                              transfer.bytes <= kBriefReadBytes && devices_[transfer.from]->runs_in_order() &&
                              devices_[transfer.to]->info().memory_pool == kHostPool &&
                              binding_of(transfer.tensor, transfer.from).buffer->host().empty());
  }
}

void Executable::name_events() {
  if (context_.recorder == nullptr) return;
  if (context_.recorder->enabled()) plan_number_ = context_.recorder->attach(trace::kPlans, to_json(plan_, graph_));
  run_label_ = context_.recorder->intern(fmt::format("plan {}", plan_number_));
  for (const Step& step : plan_.steps)
    transfer_labels_.push_back(
        step.kind == Step::Kind::compute
            ? 0
            : context_.recorder->intern(fmt::format("copy {} from {}", graph_.tensor(step.transfer.tensor).name,
                                                    plan_.devices[step.transfer.from].id)));
}

void Executable::claim_arenas() {
  if (context_.arenas->claim(this)) return;
  written_.clear();
  has_lent_weights_ = false;
}

Status Executable::write_input(TensorId input, std::span<const std::byte> bytes) {
  if (input >= graph_.tensors().size() || graph_.tensor(input).operand.kind != TensorKind::input)
    return fail(Code::invalid, fmt::format("tensor {} is not an input of the graph", input));
  claim_arenas();
  std::vector<std::byte>& written = written_[input];
  if (!bytes.empty() && written.size() >= bytes.size() &&
      std::ranges::equal(bytes, std::span(written).first(bytes.size())))
    return {};
  written.clear();
  for (std::size_t index = 0; index < plan_.residences.size(); ++index) {
    const Residence& residence = plan_.residences[index];
    if (residence.tensor != input) continue;
    if (bytes.size() > residence.bytes)
      return fail(Code::invalid, fmt::format("input \"{}\" has {} bytes, but {} were given", graph_.tensor(input).name,
                                             residence.bytes, bytes.size()));
    Device& device = *devices_[residence.device];
    SHUNT_TRY(on_device(device, device.write(storage_[index], bytes).wait()));
  }
  if (bytes.size() <= kMostKeptBytes) written.assign(bytes.begin(), bytes.end());
  return {};
}

Status Executable::run(const Submission& submission) {
  const std::uint64_t start_ns = devices_.front()->now_ns();
  Submission sampled = submission;
  sampled.profile = submission.profile && (runs_ == 1 || runs_ % kRunsPerProfile == 0);
  const std::optional<std::uint32_t> audited = next_audit();
  ++runs_;
  claim_arenas();
  Execution execution(*this, sampled, audited);
  const Status status = execution.wait();
  has_lent_weights_ = status.has_value();
  const bool in_ops =
      std::ranges::any_of(programs_, [&](const Prepared& program) { return program.is_timed_in_ops(sampled); });
  const bool is_as_planned = !audited && !in_ops;
  if (!is_as_planned) actual_us_.clear();
  record_run(submission.step, start_ns, is_as_planned ? plan_.predicted_us : 0, status);
  SHUNT_TRY(status);
  return context_.weights->health();
}

void Executable::record_run(std::uint32_t step, std::uint64_t start_ns, double predicted_us,
                            const Status& status) const {
  if (context_.recorder == nullptr) return;
  context_.recorder->record({.start_ns = start_ns,
                             .duration_ns = devices_.front()->now_ns() - start_ns,
                             .what = run_label_,
                             .kind = trace::Kind::run,
                             .failed = !status,
                             .code = status ? Code::internal : status.error().code,
                             .step = step,
                             .plan = plan_number_,
                             .predicted_us = static_cast<float>(predicted_us)});
}

Status Executable::read_output(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const {
  if (index >= graph_.outputs().size())
    return fail(Code::invalid,
                fmt::format("output {} was asked for, but the graph has {}", index, graph_.outputs().size()));
  const TensorId output = graph_.outputs()[index];
  const auto home = std::ranges::find(plan_.residences, graph_.tensor(output).base, &Residence::tensor);
  Binding binding = binding_of(output, home->device);
  if (offset > binding.bytes || to.size() > binding.bytes - offset)
    return fail(Code::invalid, fmt::format("{} bytes from {} of output \"{}\" were asked for, but it has {}", to.size(),
                                           offset, graph_.tensor(output).name, binding.bytes));
  binding.offset += offset;
  binding.bytes = to.size();
  Device& device = *devices_[home->device];
  return on_device(device, device.read(binding, to).wait());
}

std::uint64_t Executable::scratch_bytes() const {
  std::uint64_t bytes = 0;
  for (const Prepared& prepared : programs_)
    if (prepared.program != nullptr) bytes += prepared.program->scratch_bytes();
  return bytes;
}

}  // namespace shunt
