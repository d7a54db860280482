#include "devices/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <thread>
#include <utility>

#include "devices/cuda/program.h"
#include "devices/cuda/transfer.h"
#include "devices/cuda/upload_ring.h"
#include "devices/cuda/weight_stream.h"
#include "devices/health.h"
#include "devices/identity.h"
#include "devices/waiting.h"
#include "ops/strips.h"

namespace shunt::cuda {
namespace {

std::string version_text(const Driver& driver) {
  int version = 0;
  static_cast<void>(driver.call().driver_version(&version));
  if (&driver.api() == &cuda_api())
    return fmt::format("{} {}.{}", driver.api().title, version / 1000, version % 1000 / 10);
  return fmt::format("{} {}", driver.api().title, version);
}

// Returns "0000:65:00.0"; empty if the driver does not tell.
std::string pci_address_of(const Context& context) {
  const AttributeNumbers& numbers = context.driver().api().attributes;
  const int bus = context.attribute(numbers.pci_bus);
  const int device = context.attribute(numbers.pci_device);
  if (bus == 0 && device == 0) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.0", context.attribute(numbers.pci_domain), bus, device);
}

// Returns the first word of a system file, such as "vendor" of a PCI device; empty if there is none.
std::string word_in(const std::string& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

// Returns "10de:2330"; empty if the system does not tell.
std::string hardware_of(const std::string& pci_address) {
  const std::string folder = fmt::format("/sys/bus/pci/devices/{}/", pci_address);
  const std::string vendor = word_in(folder + "vendor");
  const std::string device = word_in(folder + "device");
  if (!vendor.starts_with("0x") || !device.starts_with("0x")) return {};
  return fmt::format("{}:{}", vendor.substr(2), device.substr(2));
}

constexpr double kFlopsPerCycle = 256;  // of a multiprocessor: 128 lanes that multiply and add

// Returns the operations of a multiprocessor in a cycle: of its tensor cores, in products of F16 with F32 sums, as far
// as NVIDIA's descriptions of the architectures A100, GA102, AD102 and H100 tell.
double most_flops_per_cycle(const CudaGpu& gpu) {
  switch (gpu.capability) {
    case 80:
      return 2048;
    case 86:
    case 89:
      return 512;
    case 90:
      return 4096;
    default:
      return kFlopsPerCycle;
  }
}

// The memory transfers twice in a cycle of its clock.
PeakRates peak_of(const Context& context, const DeviceInfo& info) {
  const AttributeNumbers& numbers = context.driver().api().attributes;
  const double memory_hz = std::max(0, context.attribute(numbers.memory_clock_khz)) * 1e3;
  const double bus_bytes = std::max(0, context.attribute(numbers.memory_bus_bits)) / 8.0;
  const bool is_known = context.gpu().gfx.empty();  // multiprocessors of AMD's multiply in ways of their own
  return {
      .bytes_per_s = 2 * memory_hz * bus_bytes,
      .flops_per_s = is_known ? info.compute_units * (info.clock_mhz * 1e6) * most_flops_per_cycle(context.gpu()) : 0};
}

// Fills in what the two APIs report under attribute numbers of their own.
void describe_limits(const Context& context, DeviceInfo& info) {
  const AttributeNumbers& numbers = context.driver().api().attributes;
  const auto number = [&](int attribute) {
    return static_cast<std::uint32_t>(std::max(0, context.attribute(attribute)));
  };
  // The rates that whole models reach on an H200: of arithmetic as a share of that, more where tensor cores multiply,
  // and of memory (docs/measurements/2026-11-26-generation-on-cuda.md, 2026-11-26-tensor-cores.md).
  const bool has_tensor_cores = context.gpu().reads_strips();
  const double reached = has_tensor_cores ? 4 : 0.3;
  const double bytes_per_s = has_tensor_cores ? 1.6e12 : 700e9;
  info.compute_units = context.gpu().multiprocessors;
  info.clock_mhz = number(numbers.clock_khz) / 1000;
  info.shared_memory_bytes = number(numbers.shared_memory_bytes);
  info.largest_workgroup = number(numbers.largest_workgroup);
  info.subgroup_size = number(numbers.subgroup_size);
  info.features = {DeviceFeature::fp16,          DeviceFeature::fp64,      DeviceFeature::atomics,
                   DeviceFeature::shared_memory, DeviceFeature::subgroups, DeviceFeature::timestamps};
  // https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications
  const std::uint32_t capability = context.gpu().capability;
  info.features.insert(DeviceFeature::int8, !context.driver().takes_ptx() || capability >= 61);
  const bool is_amd_with_matrices = !context.gpu().gfx.empty() && has_matrix_kernels(context.gpu());
  info.features.insert(DeviceFeature::cooperative_matrix, capability >= 70 || is_amd_with_matrices);
  info.features.insert(DeviceFeature::bf16, capability >= 80 || is_amd_with_matrices);
  info.features.insert(DeviceFeature::async_transfers, number(numbers.copy_engines) > 0);
  info.features.insert(DeviceFeature::unified_memory, number(numbers.integrated) != 0);
  const double rate = info.compute_units * (info.clock_mhz * 1e6) * kFlopsPerCycle * reached;
  info.prior = {.launch_us = 15,
                .op_us = 3,
                .flops_per_s = rate > 0 ? rate : 1e12,
                .bytes_per_s = bytes_per_s,
                .uncertainty = 0.9};
}

// Returns whether the device reads the memory of all others of its driver by itself, and there are any.
bool links_to_all(const Context& context, int ordinal) {
  int count = 0;
  if (context.call().device_count(&count) != kSuccess || count < 2) return false;
  for (int other = 0; other < count; ++other) {
    int device = 0;
    if (other != ordinal && (context.call().device(&device, other) != kSuccess || !context.can_read_from(device)))
      return false;
  }
  return true;
}

DeviceInfo describe(const Context& context, int ordinal, const OpenOptions& options) {
  const Driver& driver = context.driver();
  const AttributeNumbers& numbers = driver.api().attributes;
  char name[256] = {};
  static_cast<void>(context.call().device_name(name, sizeof(name) - 1, context.device()));
  std::size_t bytes = 0;
  static_cast<void>(context.call().device_memory(&bytes, context.device()));
  std::uint8_t uuid[16] = {};
  DeviceInfo info;
  if (context.call().device_uuid(uuid, context.device()) == kSuccess)
    for (const std::uint8_t byte : uuid) info.uuid += fmt::format("{:02x}", byte);
  info.id = fmt::format("{}:{}", driver.api().name, ordinal);
  info.name = name;
  info.vendor = driver.takes_ptx() ? cuda_api().vendor : driver.api().vendor;
  info.type = context.attribute(numbers.integrated) != 0 ? DeviceType::integrated : DeviceType::discrete;
  info.api_version = version_text(driver);
  info.driver = word_in(driver.takes_ptx() ? "/sys/module/nvidia/version" : "/sys/module/amdgpu/version");
  if (!info.driver.empty()) info.driver = fmt::format("{} {}", info.vendor, info.driver);
  info.memory_bytes = bytes;
  info.links_to_peers = links_to_all(context, ordinal);
  info.alignment_bytes = 256;
  info.details = {context.gpu().gfx};
  if (driver.takes_ptx())
    info.details = {fmt::format("compute {}.{}", context.attribute(numbers.capability_major),
                                context.attribute(numbers.capability_minor))};
  describe_limits(context, info);
  if (driver.simulated()) {
    info.emulated = true;
    info.type = DeviceType::cpu;
    info.vendor = "simulated";
    info.details.emplace_back("simulated");
    info.prior = {.launch_us = 100, .op_us = 50, .flops_per_s = 20e6, .bytes_per_s = 100e6, .uncertainty = 0.9};
  } else {
    info.pci_address = pci_address_of(context);
    info.hardware = hardware_of(info.pci_address);
  }
  identify(info, options.known);
  return info;
}

bool can_be_strips(const Operand& weight) {
  if (weight.kind != TensorKind::weight || weight.shape.rank() < 2 || !weight.is_contiguous()) return false;
  const std::uint32_t columns = weight.shape.columns();
  return columns != 0 && has_strips(weight.dtype, weight.shape.elements() / columns, columns);
}

bool has_weight_for_strips(const OpCall& call) {
  return std::ranges::any_of(call.inputs,
                             [](const Operand* input) { return input != nullptr && can_be_strips(*input); });
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<Context> context, DeviceInfo info, trace::Recorder* recorder)
      : context_(std::move(context)),
        info_(std::move(info)),
        recorder_(recorder),
        kernels_(context_),
        transfer_(context_),
        strips_(context_, kernels_, transfer_),
        pinned_(context_),
        weights_(context_, strips_, transfer_, pinned_) {}
  ~CudaDevice() override = default;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return context_->memory_available(); }
  [[nodiscard]] PeakRates peak() const override { return peak_of(*context_, info_); }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    Support support{.scratch_bytes = sizeof(Parameters) + kCudaCounterBytes};
    std::uint64_t scratch = 0;
    for (const OpCall& call : run) {
      const CudaChoice choice = choose(call, Layout::rows);
      if (choice.main.module == nullptr) return {.reason = choice.refusal};
      support.scratch_bytes += 2 * cuda_block(call, choice.main).bytes.size();
      const CudaChoice laid_out = in_strips(call);
      for (const CudaChoice* const each : {&choice, &laid_out}) {
        if (each->main.module == nullptr) continue;
        scratch = std::max(scratch, scratch_of(*each, call));
        support.arithmetic = least_exact(support.arithmetic, each->main.kernel->arithmetic);
      }
      const bool is_laid_out = laid_out.main.module != nullptr && has_weight_for_strips(call);
      support.kernel = (is_laid_out ? laid_out : choice).use;
    }
    support.scratch_bytes += scratch;
    support.shared_scratch_bytes = scratch;
    return support;
  }
  [[nodiscard]] Layout layout_for(const OpCall& call, std::size_t input) const override {
    const bool is_taken = can_be_strips(call.input(input)) && in_strips(call).main.module != nullptr;
    return is_taken ? Layout::strips : Layout::rows;
  }

  [[nodiscard]] std::vector<KernelCandidate> kernels_for(const OpCall& call, Layout weights) const override {
    return cuda_candidates(call, context_->gpu(), weights);
  }
  void choose_kernels(KernelChoices choices) override { choices_ = std::move(choices); }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    SHUNT_TRY(health_.get().status);
    auto buffer = CudaBuffer::create(context_, bytes);
    if (!buffer) return std::unexpected(lose(fmt::format("{} bytes", bytes), std::move(buffer).error()).error());
    return std::move(*buffer);
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    if (Status status = health_.get().status; !status || from.empty()) return Event(std::move(status));
    context_->enter();
    Status written = transfer_.write(address_of(to), from, settle());
    if (written && info_.links_to_peers) written = context_->mark_write();
    ++writes_;
    return Event(written ? std::move(written) : lose("writing", std::move(written).error()));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    if (Status status = health_.get().status; !status || to.empty()) return Event(std::move(status));
    context_->enter();
    if (pinned_.may_write(to)) return download(address_of(from), to);
    Result<Arrival> arrival = transfer_.read(address_of(from), to, settle());
    if (!arrival) return Event(lose("reading", std::move(arrival).error()));
    Event event(this);
    pending_.push_back({.event = event, .arrival = std::move(*arrival), .writes = writes_});
    return event;
  }

  [[nodiscard]] Event copy_from_peer(Device& peer, const Binding& from, const Binding& to) override {
    auto* const other = dynamic_cast<CudaDevice*>(&peer);
    if (other == nullptr || !info_.links_to_peers || &other->context_->driver().api() != &context_->driver().api())
      return Device::copy_from_peer(peer, from, to);
    if (Status status = health_.get().status; !status || to.bytes == 0) return Event(std::move(status));
    Status shared = other->health_.get().status;
    if (shared) shared = other->context_->share_with(context_->device());
    if (!shared) return Event(fail(Code::unsupported, shared.error().message));  // the way through the host blames it
    context_->enter();
    const StreamHandle stream = context_->peer_stream();
    return pend(arrivals_, stream, "copying from another device", other, [&]() -> Status {
      SHUNT_TRY(context_->delay_peers_to_new_buffers());
      // The events of writes are done before the stream has passed them.
      if (other->passed_writes_ != other->writes_) SHUNT_TRY(context_->wait_for_writes(*other->context_));
      return check(context_->call().copy_within(address_of(to), address_of(from), to.bytes, stream), "copying");
    });
  }

  [[nodiscard]] Result<std::shared_ptr<const void>> pin_host(std::span<const std::byte> memory, HostAccess access,
                                                             std::shared_ptr<const void> owner) override {
    SHUNT_TRY(health_.get().status);
    context_->enter();
    return pinned_.pin(memory, access, std::move(owner));
  }
  [[nodiscard]] Event copy_weight(Device& peer, const Binding& from, const Binding& to,
                                  const MatrixRows& rows) override {
    const std::span<const std::byte> host = from.buffer->host();
    if (host.empty()) return copy_from_peer(peer, from, to);
    if (Status status = health_.get().status; !status) return Event(std::move(status));
    context_->enter();
    auto copy = weights_.copy(address_of(to), host.subspan(from.offset, from.bytes), to.layout, rows, settle());
    if (!copy) return Event(lose("copying a weight", std::move(copy).error()));
    Event event(this);
    copies_.push_back({.event = event, .copy = std::move(*copy)});
    return event;
  }

  [[nodiscard]] std::uint64_t weight_copy_bytes() const override { return WeightStream::kArrivalBytes; }

  [[nodiscard]] Result<std::unique_ptr<Upload>> upload() override {
    SHUNT_TRY(health_.get().status);
    return std::make_unique<CudaUpload>(*this);
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY(health_.get().status);
    auto program = CudaProgram::create(context_, kernels_, request, choices_);
    if (!program)
      return std::unexpected(lose(fmt::format("program \"{}\"", request.name), std::move(program).error()).error());
    return std::move(*program);
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    if (Status status = health_.get().status; !status) return Event(std::move(status));
    context_->enter();
    auto& mine = static_cast<CudaProgram&>(program);
    if (Status started = mine.submit(submission); !started)
      return Event(lose(fmt::format("program \"{}\"", mine.name()), std::move(started).error()));
    Event event(this);
    pending_.push_back({.event = event,
                        .program = &mine,
                        .submission = submission,
                        .deadline = deadline_of(submission),
                        .writes = writes_});
    return event;
  }

  [[nodiscard]] bool runs_in_order() const override { return true; }

  bool advance(std::chrono::nanoseconds patience) override {
    if (pending_.empty() && copies_.empty() && downloads_.empty() && arrivals_.empty()) return false;
    context_->enter();
    poll_patiently(patience, [this] {
      const bool has_copied = complete_first_of(copies_) || complete_first_of(downloads_) || give_up_first_arrival() ||
                              complete_first_of(arrivals_);
      return (!pending_.empty() && complete_first()) || has_copied;
    });
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  // A failed call of it is one of the device.
  class CudaUpload final : public Upload {
   public:
    explicit CudaUpload(CudaDevice& device)
        : device_(device),
          ring_({.context = device.context_,
                 .strips = device.strips_,
                 .settle = device.settle(),
                 .recorder = device.recorder_,
                 .device = device.info_.id}) {}

    void expect(std::uint64_t bytes) override {
      if (device_.health_.get().status) ring_.expect(bytes);
    }
    [[nodiscard]] Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit) override {
      SHUNT_TRY(device_.health_.get().status);
      device_.context_->enter();
      auto piece = ring_.take(bytes, unit);
      if (!piece) return std::unexpected(device_.lose("memory for uploads", std::move(piece).error()).error());
      return piece;
    }
    [[nodiscard]] Status send(const Binding& to, const MatrixRows& rows) override {
      return run([&] { return ring_.send(address_of(to), to.bytes, to.layout, rows); });
    }
    [[nodiscard]] Status finish() override {
      return run([&] { return ring_.finish(); });
    }

   private:
    template <class Call>
    Status run(const Call& call) {
      SHUNT_TRY(device_.health_.get().status);
      device_.context_->enter();
      Status done = call();
      return done ? std::move(done) : device_.lose("uploading", std::move(done).error());
    }

    CudaDevice& device_;
    UploadRing ring_;
  };

  [[nodiscard]] CudaChoice choose(const OpCall& call, Layout weights) const {
    return choose_cuda(call, context_->gpu(), weights, {.measured = &choices_});
  }
  // Returns the kernels for weights in strips, or none.
  [[nodiscard]] CudaChoice in_strips(const OpCall& call) const {
    return context_->gpu().reads_strips() ? choose(call, Layout::strips) : CudaChoice{};
  }

  // A submission or a read, in stream order.
  struct Pending {
    Event event;
    CudaProgram* program = nullptr;
    Submission submission = {};
    Deadline deadline{};  // from when it was the first of them
    Arrival arrival{};
    std::uint64_t writes = 0;  // before it

    [[nodiscard]] int query() const { return program != nullptr ? program->query() : arrival.pinned->query(); }
    [[nodiscard]] std::string what() const {
      return program != nullptr ? fmt::format("program \"{}\"", program->name()) : "reading";
    }
  };

  // A weight on its way to a step, in the order of copy_weight().
  struct PendingCopy {
    Event event;
    std::shared_ptr<WeightStream::Copy> copy;

    [[nodiscard]] int query() const { return WeightStream::query(*copy); }
    std::string_view what = "copying a weight";
  };

  // Bytes on their way on a stream for such copies only.
  struct PendingMark {
    Event event;
    std::unique_ptr<Mark> mark;
    std::string_view what;
    const CudaDevice* from;  // another device, or null

    [[nodiscard]] int query() const { return mark->query(); }
  };

  // Marks the end of what `give` gives a stream, which `pending` then has. `from`: another device, or null.
  template <class Give>
  Event pend(std::deque<PendingMark>& pending, StreamHandle stream, std::string_view what, const CudaDevice* from,
             const Give& give) {
    auto mark = Mark::create(context_);
    Status given = mark ? give() : std::unexpected(mark.error());
    if (given) given = check((*mark)->record(stream), "recording an event");
    if (!given) return Event(lose(what, std::move(given).error()));
    Event event(this);
    pending.push_back({.event = event, .mark = *std::move(mark), .what = what, .from = from});
    return event;
  }

  // The device copies them beside other work, once what it was given so far has written them.
  Event download(Address from, std::span<std::byte> to) {
    const StreamHandle stream = context_->download_stream();
    return pend(downloads_, stream, "reading", nullptr, [&]() -> Status {
      SHUNT_TRY(context_->delay_downloads());
      while (!to.empty()) {
        const std::size_t bytes = pinned_.first_alike(to).size();
        SHUNT_TRY(check(context_->call().copy_to_host(to.data(), from, bytes, stream), "copying from the device"));
        from += bytes;
        to = to.subspan(bytes);
      }
      return {};
    });
  }

  [[nodiscard]] static Address address_of(const Binding& binding) {
    return static_cast<CudaBuffer*>(binding.buffer)->address() + binding.offset;
  }

  // Completes the oldest pending work if it has ended or is late. Returns false if it has not.
  bool complete_first() {
    Pending& first = pending_.front();
    const int answer = first.query();
    if (answer == kNotReady) {
      if (!has_passed(first.deadline)) return false;
      context_->distrust();
    }
    Pending over = std::move(first);
    pending_.pop_front();
    if (!pending_.empty()) pending_.front().deadline = deadline_of(pending_.front().submission);
    Status ended;
    if (answer == kNotReady)
      ended = lose(over.what(), {Code::timed_out, "not done by its deadline"});
    else if (answer != kSuccess)
      ended = lose(over.what(), error_of(answer, "the device reports").error());
    else if (over.arrival.pinned != nullptr)
      transfer_.finish(std::move(over.arrival));
    passed_writes_ = over.writes;
    over.event.complete(std::move(ended));
    return true;
  }

  // Completes the oldest of these copies if it has arrived. Returns false if it has not, or there is none.
  template <class Copy>
  bool complete_first_of(std::deque<Copy>& copies) {
    if (copies.empty()) return false;
    const int answer = copies.front().query();
    if (answer == kNotReady) return false;
    Copy over = std::move(copies.front());
    copies.pop_front();
    Status ended;
    if (answer != kSuccess) ended = lose(over.what, error_of(answer, "the device reports").error());
    over.event.complete(std::move(ended));
    return true;
  }

  // Completes the oldest copy from another device if that was lost, so that it may never end. Returns false if it was
  // not.
  bool give_up_first_arrival() {
    if (arrivals_.empty()) return false;
    const PendingMark& first = arrivals_.front();
    Status status = first.from->health_.get().status;
    if (status || first.query() != kNotReady) return false;
    context_->distrust();
    PendingMark over = std::move(arrivals_.front());
    arrivals_.pop_front();
    over.event.complete(std::move(status));
    return true;
  }

  // Waits for pinned memory within a call; earlier pending work may turn out to be late meanwhile.
  [[nodiscard]] Settle settle() {
    return [this](const Pinned& pinned) -> Status {
      while (true) {
        const int answer = pinned.query();
        if (answer != kNotReady) return check(answer, "the device reports");
        if (!pending_.empty()) static_cast<void>(complete_first());
        SHUNT_TRY(health_.get().status);
        std::this_thread::yield();
      }
    };
  }

  // Returns the status of a failed call. A lost device stays lost: all pending and later work gets the same status.
  // Running out of memory, or a driver that declines, leaves a device as it was.
  Status lose(std::string_view what, Error why) {
    const Code code = why.code;
    Status status = health_.at(what, std::move(why));
    if (!health_.get().status || code == Code::out_of_memory || code == Code::unsupported) return status;
    status = health_.lose(std::move(status));
    std::deque<Pending> ended;
    ended.swap(pending_);
    for (Pending& each : ended) {
      each.arrival = {};
      each.event.complete(status);
    }
    weights_.give_all();
    for (PendingCopy& each : std::exchange(copies_, {})) each.event.complete(status);
    // Their memory is kept as long as the device may still write to it.
    for (std::deque<PendingMark>* const marks : {&downloads_, &arrivals_})
      for (PendingMark& each : std::exchange(*marks, {})) each.event.complete(status);
    return status;
  }

  std::shared_ptr<Context> context_;
  DeviceInfo info_;
  trace::Recorder* const recorder_;  // may be null
  Kernels kernels_;
  Transfer transfer_;
  StripWriter strips_;
  PinnedRanges pinned_;
  WeightStream weights_;
  std::deque<Pending> pending_;
  std::deque<PendingCopy> copies_;
  std::deque<PendingMark> downloads_;
  std::deque<PendingMark> arrivals_;  // from other devices
  std::uint64_t writes_ = 0;
  std::uint64_t passed_writes_ = 0;  // those that the stream is known to have passed
  KernelChoices choices_;
  HealthRecord health_{info_.id};
};

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(std::shared_ptr<const Driver> driver, int ordinal,
                                                 const OpenOptions& options) {
  SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(std::move(driver), ordinal));
  DeviceInfo info = describe(*context, ordinal, options);
  return std::make_unique<CudaDevice>(std::move(context), std::move(info), options.recorder);
}

}  // namespace shunt::cuda
