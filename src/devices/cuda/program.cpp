#include "devices/cuda/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace shunt::cuda {
namespace {

Address address_of(const Binding& binding) {
  if (binding.buffer == nullptr) return 0;
  return static_cast<CudaBuffer*>(binding.buffer)->address() + binding.offset;
}

// A launch may give a block so much shared memory without asking.
constexpr std::uint32_t kUsualSharedBytes = 48U << 10U;

// Returns the layout of the weights that have another than rows.
Layout layout_of(const ProgramOp& op) {
  const auto in_strips = [](const Binding& input) { return input.layout == Layout::strips; };
  return std::ranges::any_of(op.inputs, in_strips) ? Layout::strips : Layout::rows;
}

// Returns what an op reads and writes.
Hazards accesses_of(const ProgramOp& op) {
  Hazards accesses;
  for (const Binding& input : op.inputs) accesses.note(Access::read(input));
  accesses.note(Access::write(op.output));
  return accesses;
}

// Returns the reads of some inputs, which are bits of a mask.
Hazards reads_of(const ProgramOp& op, std::uint32_t mask) {
  Hazards reads;
  for (std::uint32_t i = 0; i < op.inputs.size(); ++i)
    if ((mask >> i & 1U) != 0) reads.note(Access::read(op.inputs[i]));
  return reads;
}

std::uint64_t number_before(const CudaChoice& choice, const OpCall& call) {
  const auto depends_on = choice.main.kernel->before_depends_on;
  return depends_on == nullptr ? 0 : depends_on(call);
}

bool is_same_input(const ProgramOp& a, const ProgramOp& b, std::uint32_t input) {
  if (!a.call.has_input(input) || !b.call.has_input(input)) return a.call.has_input(input) == b.call.has_input(input);
  const Operand& x = a.call.input(input);
  const Operand& other = b.call.input(input);
  return a.inputs[input].buffer == b.inputs[input].buffer && a.inputs[input].offset == b.inputs[input].offset &&
         x.dtype == other.dtype && x.extent == other.extent && x.shape == other.shape && x.strides == other.strides;
}

}  // namespace

// Streams beside the device's own, while a graph is captured: what they are given between fork() and join() runs beside
// what that one is given.
class SideStreams {
 public:
  explicit SideStreams(Context& context) : context_(context) {}
  ~SideStreams() {
    const DriverFunctions& call = context_.call();
    for (const Side& side : sides_) {
      static_cast<void>(call.stream_destroy(side.stream));
      static_cast<void>(call.event_destroy(side.done));
    }
    if (begun_ != nullptr) static_cast<void>(call.event_destroy(begun_));
  }
  SideStreams(const SideStreams&) = delete;
  SideStreams& operator=(const SideStreams&) = delete;

  // Makes `count` streams wait for what the device's stream was given so far.
  [[nodiscard]] Status fork(std::size_t count) {
    const DriverFunctions& call = context_.call();
    forked_ = count;
    if (count == 0) return {};
    if (begun_ == nullptr) SHUNT_TRY(check(call.event_create(&begun_, kEventWithoutTime), kWhat));
    while (sides_.size() < count) SHUNT_TRY(add());
    SHUNT_TRY(check(call.event_record(begun_, context_.stream()), kWhat));
    for (std::size_t i = 0; i < count; ++i) SHUNT_TRY(check(call.stream_wait(sides_[i].stream, begun_, 0), kWhat));
    return {};
  }
  [[nodiscard]] StreamHandle stream(std::size_t index) const { return sides_[index].stream; }
  // Makes the device's stream wait for those of the last fork().
  [[nodiscard]] Status join() {
    const DriverFunctions& call = context_.call();
    const std::size_t count = std::exchange(forked_, 0);
    for (std::size_t i = 0; i < count; ++i) {
      SHUNT_TRY(check(call.event_record(sides_[i].done, sides_[i].stream), kWhat));
      SHUNT_TRY(check(call.stream_wait(context_.stream(), sides_[i].done, 0), kWhat));
    }
    return {};
  }

 private:
  static constexpr std::string_view kWhat = "recording kernels side by side";
  struct Side {
    StreamHandle stream = nullptr;
    EventHandle done = nullptr;
  };
  [[nodiscard]] Status add() {
    Side side;
    SHUNT_TRY(check(context_.call().stream_create(&side.stream, kStreamNonBlocking, kUsualPriority), kWhat));
    if (const int made = context_.call().event_create(&side.done, kEventWithoutTime); made != kSuccess) {
      static_cast<void>(context_.call().stream_destroy(side.stream));
      return error_of(made, kWhat);
    }
    sides_.push_back(side);
    return {};
  }

  Context& context_;
  std::vector<Side> sides_;
  EventHandle begun_ = nullptr;
  std::size_t forked_ = 0;
};

std::span<const std::byte> image_for(const Driver& driver, const CudaModule& module) {
  return driver.takes_ptx() ? module.ptx : module.code_object;
}

Kernels::Kernels(std::shared_ptr<Context> context) : context_(std::move(context)), modules_(cuda_modules().size()) {}

Kernels::~Kernels() {
  for (ModuleHandle module : modules_)
    if (module != nullptr)
      context_->end([module](const DriverFunctions& call) { static_cast<void>(call.module_unload(module)); });
}

Result<FunctionHandle> Kernels::of(const CudaEntry& entry, std::uint32_t shared_bytes) {
  SHUNT_TRY_ASSIGN(Function * function, find(entry));
  if (shared_bytes > kUsualSharedBytes && shared_bytes > function->shared_bytes) {
    SHUNT_TRY(
        check(context_->call().function_attribute(function->handle, kMostSharedBytes, static_cast<int>(shared_bytes)),
              entry.name));
    function->shared_bytes = shared_bytes;
  }
  return function->handle;
}

Result<Kernels::Function*> Kernels::find(const CudaEntry& entry) {
  const std::pair key(entry.module, entry.name);
  if (const auto found = functions_.find(key); found != functions_.end()) return &found->second;
  const CudaModule& row = *entry.module;
  const std::span<const std::byte> image = image_for(context_->driver(), row);
  if (image.empty())
    return fail(Code::unsupported,
                fmt::format("this build has no kernel {} for {}", row.name, context_->driver().api().title));
  const DriverFunctions& call = context_->call();
  ModuleHandle& module = modules_[static_cast<std::size_t>(&row - cuda_modules().data())];
  if (module == nullptr)
    SHUNT_TRY(check(call.module_load(&module, image.data()), fmt::format("loading kernel {}", row.name)));
  FunctionHandle function = nullptr;
  SHUNT_TRY(check(call.module_function(&function, module, entry.name.c_str()), entry.name));
  return &functions_.emplace(key, Function{function}).first->second;
}

std::uint64_t scratch_of(const CudaChoice& choice, const OpCall& call) {
  if (choice.main.module == nullptr || choice.main.kernel->scratch_bytes == nullptr) return 0;
  return choice.main.kernel->scratch_bytes(call);
}

Result<std::unique_ptr<CudaProgram>> CudaProgram::create(std::shared_ptr<Context> context, Kernels& kernels,
                                                         const ProgramRequest& request, const KernelChoices& choices) {
  std::unique_ptr<CudaProgram> program(new CudaProgram(std::move(context)));
  program->context_->enter();
  program->name_ = request.name;
  std::vector<CudaChoice> chosen;
  std::uint64_t scratch_bytes = 0;
  for (const ProgramOp& op : request.ops) {
    chosen.push_back(
        choose_cuda(op.call, program->context_->gpu(), layout_of(op), {.measured = &choices, .named = op.kernel}));
    if (chosen.back().main.module == nullptr) return fail(Code::unsupported, chosen.back().refusal);
    scratch_bytes = std::max(scratch_bytes, scratch_of(chosen.back(), op.call));
  }
  if (scratch_bytes != 0) {
    const std::uint64_t bytes = kCudaCounterBytes + std::max(scratch_bytes, request.shared_scratch_bytes);
    SHUNT_TRY_ASSIGN(program->scratch_, program->context_->scratch(bytes));
  }
  for (std::uint32_t op = 0; op < request.ops.size(); ++op)
    SHUNT_TRY(program->plan(request.ops[op], op, chosen[op], kernels));
  SHUNT_TRY(program->upload());
  SHUNT_TRY(program->capture());
  return program;
}

CudaProgram::~CudaProgram() {
  for (const EventHandle event : {op_begins_, op_ends_})
    if (event != nullptr)
      context_->end([event](const DriverFunctions& call) { static_cast<void>(call.event_destroy(event)); });
  if (executable_ == nullptr) return;
  context_->end([executable = executable_](const DriverFunctions& call) {
    static_cast<void>(call.executable_destroy(executable));
  });
}

bool CudaProgram::Left::serves(const CudaChoice& choice, const ProgramOp& op) const {
  if (of == nullptr || by != choice.before.back().name || number != number_before(choice, op.call)) return false;
  for (std::uint32_t i = 0; i < kMaxCudaInputs; ++i)
    if ((read >> i & 1U) != 0 && !is_same_input(*of, op, i)) return false;
  return true;
}

bool CudaProgram::Left::ends_with(const Hazards& accesses) const {
  return of != nullptr && accesses.has(reads_of(*of, read));
}

Status CudaProgram::plan(const ProgramOp& op, std::uint32_t number, const CudaChoice& choice, Kernels& kernels) {
  const Binding scratch{.buffer = scratch_.get(), .bytes = scratch_ == nullptr ? 0 : scratch_->bytes()};
  const bool has_before = !choice.before.empty();
  if (has_before && !left_.serves(choice, op)) {
    const std::uint32_t read = choice.main.kernel->read_before;
    Hazards accesses = reads_of(op, read);
    accesses.note(Access::write(scratch));
    for (const CudaEntry& before : choice.before) SHUNT_TRY(add(before, op, number, accesses, kernels));
    left_ = {.by = choice.before.back().name, .read = read, .number = number_before(choice, op.call), .of = &op};
  }
  Hazards accesses = accesses_of(op);
  if (has_before) {
    accesses.note(Access::read(scratch));
  } else if (scratch_of(choice, op.call) != 0) {
    accesses.note(Access::write(scratch));
    left_ = {};
  }
  if (left_.ends_with(accesses)) left_ = {};
  SHUNT_TRY(add(choice.main, op, number, accesses, kernels));
  written_.note(Access::write(op.output));
  return {};
}

Status CudaProgram::add(const CudaEntry& entry, const ProgramOp& op, std::uint32_t number, const Hazards& accesses,
                        Kernels& kernels) {
  const CudaKernel& kernel = *entry.kernel;
  if (kernel.blocks(op.call) == 0) return {};
  const std::uint32_t shared_bytes = kernel.shared_bytes == nullptr ? 0 : kernel.shared_bytes(op.call);
  SHUNT_TRY_ASSIGN(const FunctionHandle function, kernels.of(entry, shared_bytes));
  CudaBlock block = cuda_block(op.call, entry);
  // Offsets are within blocks_ until its address is known; operands are addresses already.
  CudaCall call{.output = address_of(op.output),
                .constants = block.constants_at,
                .scratch = scratch_ == nullptr ? 0 : scratch_->address() + kCudaCounterBytes};
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    call.inputs[i] = address_of(op.inputs[i]);
    if (!written_.has(Access::read(op.inputs[i]))) call.unwritten |= 1U << i;
  }
  std::memcpy(block.bytes.data(), &call, sizeof(call));
  const Call placed{.at = content_.size(),
                    .bytes = block.bytes.size(),
                    .op = number,
                    .blocks = kernel.blocks(op.call),
                    .least = kernel.least_blocks == nullptr ? 1 : kernel.least_blocks(op.call)};
  content_.insert(content_.end(), block.bytes.begin(), block.bytes.end());
  Launch launch{.function = function,
                .calls = {placed},
                .most_blocks = most_blocks_of(kernel, context_->gpu()),
                .threads = kernel.threads(op.call),
                .shared_bytes = shared_bytes,
                .fills = kernel.most_blocks != 0,
                .starts_early = entry.starts_early(),
                .first = &op.call};
  SHUNT_TRY_ASSIGN(std::optional<Launch> joined, join_last(kernel, launch, accesses, kernels));
  if (joined) {
    launches_.back() = std::move(*joined);
  } else {
    // Kernels that fill the GPU gain nothing from others beside them.
    launch.waits = launches_.empty() || launch.fills || launches_.back().fills || hazards_.has(accesses);
    if (launch.waits) hazards_.clear();
    launches_.push_back(std::move(launch));
  }
  hazards_.note(accesses);
  return {};
}

std::uint64_t CudaProgram::sum_of(std::span<const Call> calls, std::uint64_t Call::* member) {
  std::uint64_t sum = 0;
  for (const Call& call : calls) sum += call.*member;
  return sum;
}

Result<std::optional<CudaProgram::Launch>> CudaProgram::join_last(const CudaKernel& kernel, const Launch& alone,
                                                                  const Hazards& accesses, Kernels& kernels) const {
  if (!kernel.shares_launch || launches_.empty() || hazards_.has(accesses)) return std::nullopt;
  Launch joined = launches_.back();
  const Call& next = alone.calls.front();
  const std::uint64_t needed = sum_of(joined.calls, joined.fills ? &Call::least : &Call::blocks);
  if (joined.threads != alone.threads || joined.calls.size() == kMostSharedCalls ||
      needed + (joined.fills ? next.least : next.blocks) > joined.most_blocks)
    return std::nullopt;
  if (joined.function != alone.function || joined.shared_bytes != alone.shared_bytes) {
    const CudaEntry entry = joint_entry(kernel, *joined.first, *alone.first, context_->gpu());
    if (entry.module == nullptr) return std::nullopt;
    joined.shared_bytes = std::max(joined.shared_bytes, alone.shared_bytes);
    SHUNT_TRY_ASSIGN(joined.function, kernels.of(entry, joined.shared_bytes));
  }
  joined.calls.push_back(next);
  return joined;
}

Status CudaProgram::upload() {
  SHUNT_TRY_ASSIGN(blocks_, CudaBuffer::create(context_, content_.size()));
  SHUNT_TRY_ASSIGN(upload_, Pinned::create(context_, std::max<std::uint64_t>(content_.size(), sizeof(Parameters))));
  SHUNT_TRY_ASSIGN(const Address parameters, context_->parameters());
  for (Launch& launch : launches_) {
    for (Call& placed : launch.calls) {
      CudaCall call;
      std::byte* const at = content_.data() + placed.at;
      placed.at += blocks_->address();
      std::memcpy(&call, at, sizeof(call));
      call.parameters = parameters;
      if (call.constants != 0) call.constants += placed.at;
      std::memcpy(at, &call, sizeof(call));
    }
  }
  if (content_.empty()) return {};
  const DriverFunctions& call = context_->call();
  std::ranges::copy(content_, upload_->memory().begin());
  return check(call.copy_to_device(blocks_->address(), upload_->memory().data(), content_.size(), context_->stream()),
               "copying the arguments of kernels");
}

Status CudaProgram::capture() {
  if (launches_.empty()) return {};
  const DriverFunctions& call = context_->call();
  SHUNT_TRY(check(call.capture_begin(context_->stream(), kCaptureRelaxed), "starting to record kernels"));
  SideStreams sides(*context_);
  const Status launched = record(sides);
  GraphHandle graph = nullptr;
  const Status ended = check(call.capture_end(context_->stream(), &graph), "recording kernels");
  Status made = !launched ? launched : ended;
  if (made) made = check(call.graph_instantiate(&executable_, graph, 0), "preparing the recorded kernels");
  if (graph != nullptr) static_cast<void>(call.graph_destroy(graph));
  return made;
}

Status CudaProgram::record(SideStreams& sides) {
  bool follows_one = false;  // the last group was a single launch
  for (std::size_t first = 0; first < launches_.size();) {
    std::size_t end = first + 1;
    while (end < launches_.size() && !launches_[end].waits) ++end;
    const bool is_one = end == first + 1;
    SHUNT_TRY(sides.fork(end - first - 1));
    SHUNT_TRY(launch(launches_[first], launches_[first].calls, context_->stream(), is_one && follows_one));
    for (std::size_t i = first + 1; i < end; ++i)
      SHUNT_TRY(launch(launches_[i], launches_[i].calls, sides.stream(i - first - 1)));
    SHUNT_TRY(sides.join());
    follows_one = is_one;
    first = end;
  }
  return {};
}

CudaShares CudaProgram::share(std::span<const Call> calls, std::uint64_t blocks) {
  CudaShares shares;
  const std::uint64_t all = sum_of(calls, &Call::blocks);
  std::uint64_t wanted = 0;
  std::uint64_t last = 0;  // the beginning of the call
  std::uint64_t left = sum_of(calls, &Call::least);
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) {
    wanted += calls[i].blocks;
    left -= calls[i].least;
    const std::uint64_t begin = std::clamp(wanted * blocks / all, last + calls[i].least, blocks - left);
    shares.begins[i] = static_cast<std::uint32_t>(begin);
    shares.offsets[i] = static_cast<std::uint32_t>(calls[i + 1].at - calls[0].at);
    last = begin;
  }
  return shares;
}

Status CudaProgram::launch(const Launch& each, std::span<const Call> calls, StreamHandle stream, bool early) {
  const std::uint64_t wanted = std::min(sum_of(calls, &Call::blocks), each.most_blocks);
  const auto blocks = static_cast<unsigned>(std::max(wanted, sum_of(calls, &Call::least)));
  CudaShares shares = share(calls, blocks);
  Address first = calls.front().at;
  CudaCopies copies{};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::span bytes = std::span(content_).subspan(calls[i].at - blocks_->address(), calls[i].bytes);
    std::ranges::copy(bytes.first(std::min(bytes.size(), sizeof(CudaCopy))),
                      std::as_writable_bytes(std::span(copies.calls[i].bytes)).begin());
  }
  void* arguments[] = {&first, &shares, &copies};
  const DriverFunctions& call = context_->call();
  if (early && each.starts_early && call.launch_with != nullptr) {
    LaunchAttribute attribute{.id = kStartsEarly, .value = 1};
    const LaunchConfig config{.blocks = blocks,
                              .blocks_y = 1,
                              .blocks_z = 1,
                              .threads = each.threads,
                              .threads_y = 1,
                              .threads_z = 1,
                              .shared_bytes = each.shared_bytes,
                              .stream = stream,
                              .attributes = &attribute,
                              .attribute_count = 1};
    return check(call.launch_with(&config, each.function, arguments, nullptr), "starting a kernel");
  }
  return check(
      call.launch(each.function, blocks, 1, 1, each.threads, 1, 1, each.shared_bytes, stream, arguments, nullptr),
      "starting a kernel");
}

Status CudaProgram::submit(const Submission& submission) {
  const DriverFunctions& call = context_->call();
  SHUNT_TRY(context_->write_parameters(submission.parameters, upload_->memory()));
  if (submission.op) {
    SHUNT_TRY(launch_op(submission));
  } else if (executable_ != nullptr) {
    SHUNT_TRY(check(call.graph_launch(executable_, context_->stream()), "starting kernels"));
  }
  return upload_->mark();
}

Status CudaProgram::launch_op(const Submission& submission) {
  const DriverFunctions& call = context_->call();
  for (EventHandle* const event : {&op_begins_, &op_ends_})
    if (*event == nullptr) SHUNT_TRY(check(call.event_create(event, kEventWithTime), "an event with its time"));
  SHUNT_TRY(check(call.event_record(op_begins_, context_->stream()), "recording when an op begins"));
  for (const Launch& each : launches_)
    for (const Call& of : each.calls)
      if (submission.includes(of.op)) SHUNT_TRY(launch(each, {&of, 1}, context_->stream()));
  return check(call.event_record(op_ends_, context_->stream()), "recording when an op ends");
}

std::optional<std::uint64_t> CudaProgram::op_ns() const {
  float milliseconds = 0;
  context_->enter();
  if (op_ends_ == nullptr || context_->call().event_elapsed(&milliseconds, op_begins_, op_ends_) != kSuccess)
    return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace shunt::cuda
