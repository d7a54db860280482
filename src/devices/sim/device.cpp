#include "devices/sim/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "devices/backend.h"
#include "devices/sim/machine.h"
#include "devices/sim/program.h"

namespace shunt::sim {
namespace {

// A device that does not compute has no memory: writes are dropped, and reads return zeros.
void move_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (to == nullptr || bytes == 0) return;
  if (from == nullptr)
    std::memset(to, 0, bytes);
  else
    std::memcpy(to, from, bytes);
}

class SimDevice final : public Device {
 public:
  SimDevice(Spec spec, std::shared_ptr<VirtualClock> clock, trace::Recorder* recorder, PoolUse use,
            std::shared_ptr<FaultCount> faults)
      : spec_(std::move(spec)),
        clock_(std::move(clock)),
        recorder_(recorder),
        use_(std::move(use)),
        budget_(std::make_shared<Budget>(spec_, use_)),
        faults_(faults != nullptr ? std::move(faults) : std::make_shared<FaultCount>(spec_.id, spec_.faults)) {
    info_.id = spec_.id;
    info_.name = spec_.name;
    info_.vendor = kVendor;
    info_.type = spec_.type;
    info_.emulated = spec_.emulated;
    info_.compute_resource = spec_.compute_resource.empty() ? spec_.id : spec_.compute_resource;
    info_.memory_pool = spec_.memory_pool.empty() ? spec_.id : spec_.memory_pool;
    info_.memory_resource = spec_.memory_resource.empty() ? info_.memory_pool : spec_.memory_resource;
    info_.links_to_peers = spec_.link.peers && !is_host();
    info_.memory_bytes = spec_.memory_bytes;
    info_.largest_binding_bytes = spec_.largest_binding_bytes;
    info_.features = spec_.features;
    const Rate& rate = spec_.believed.value_or(spec_.rate);
    info_.prior = {.launch_us = spec_.launch_us,
                   .op_us = spec_.op_us,
                   .flops_per_s = rate.flops_per_s,
                   .bytes_per_s = rate.bytes_per_s,
                   .link_us = spec_.link.latency_us,
                   .link_bytes_per_s = spec_.link.bytes_per_s,
                   .uncertainty = spec_.uncertainty,
                   .families = spec_.believed ? decltype(spec_.rate_of_family)() : spec_.rate_of_family};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return budget_->available(); }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    for (const OpCall& call : run)
      if (std::ranges::find(spec_.lacks, call.op) != spec_.lacks.end())
        return {.reason = fmt::format("{}: {} lacks it by its description", name_of(call.op), info_.id)};
    Support support = KernelRun::supports(run, scalar_kernel, 1, info_.id);
    support.scratch_bytes = spec_.computes ? support.scratch_bytes + kScratchMargin : 0;
    support.shared_scratch_bytes = support.scratch_bytes;
    return support;
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    SHUNT_TRY(health().status);
    SHUNT_TRY(faults_->allocation());
    SHUNT_TRY_ASSIGN(std::unique_ptr<SimBuffer> buffer, SimBuffer::create(budget_, bytes, spec_.computes));
    return buffer;
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte>,
                                                            std::shared_ptr<const void>) override {
    return fail(Code::unsupported, fmt::format("{} cannot address the host's memory", info_.id));
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return transfer(to_device_free_, from.size(), [to, from] {
      move_bytes(address_of(to), from.data(), from.size());
      return Status{};
    });
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return transfer(from_device_free_, to.size(), [from, to] {
      move_bytes(to.data(), address_of(from), to.size());
      return Status{};
    });
  }
  [[nodiscard]] Event copy_from_peer(Device& peer, const Binding& from, const Binding& to) override {
    if (const std::span<const std::byte> host = from.buffer->host(); !host.empty())
      return write(to, host.subspan(from.offset, from.bytes));
    auto* const sim_peer = dynamic_cast<SimDevice*>(&peer);
    const bool is_one_machine = sim_peer != nullptr && sim_peer->clock_ == clock_;
    const auto goes_straight = [&] {
      return is_host() || sim_peer->is_host() || (info_.links_to_peers && sim_peer->info_.links_to_peers);
    };
    if (!is_one_machine || !goes_straight())
      return Event(fail(Code::unsupported, fmt::format("{} has no link to {}", info_.id, peer.info().id)));
    auto move = [this, sim_peer, from, to]() -> Status {
      SHUNT_TRY(health().status);
      SHUNT_TRY(sim_peer->health().status);
      move_bytes(address_of(to), address_of(from), from.bytes);
      return Status{};
    };
    if (is_host()) return sim_peer->transfer(sim_peer->from_device_free_, from.bytes, std::move(move));
    return transfer(to_device_free_, from.bytes, std::move(move));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY(health().status);
    SHUNT_TRY(note(faults_->program()));
    auto program = std::make_unique<SimProgram>(request, spec_, recorder_);
    std::shared_ptr<Scratch> scratch = scratch_.lock();
    if (scratch == nullptr) scratch_ = scratch = std::make_shared<Scratch>(budget_);
    SHUNT_TRY(scratch->grow_to(program->scratch_bytes()));
    program->keep(std::move(scratch));
    return program;
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<SimProgram&>(program);
    const std::scoped_lock lock(mutex_);
    if (!health_.status) return Event(health_.status);
    FaultCount::Ops faults = faults_->ops(mine.size());
    // Work submitted behind a hanging program never begins.
    if (hung_) faults.hangs = 0;
    hung_ = faults.hangs.has_value();

    const Time start = std::max(clock_->now(), compute_free_);
    const Time end = start + mine.begin_of(mine.size());
    compute_free_ = end;
    const Pending pending = add_pending();
    if (faults.lost && (!faults.hangs || *faults.lost < *faults.hangs)) {
      at(start + mine.begin_of(*faults.lost),
         [this, &mine, lost = faults.lost, start, submission, number = pending.number] {
           if (is_pending(number)) end_early(mine, *lost, start, submission, lost_at(mine, *lost));
         });
    } else if (!faults.hangs) {
      at(end, [this, &mine, faults, start, submission, number = pending.number] {
        if (is_pending(number)) end_in_time(number, mine, faults, start, submission);
      });
    }
    const std::size_t reached = faults.hangs.value_or(mine.size());
    watch(pending.number, mine, reached, start, submission, faults.hangs.has_value() ? Time::max() : end);
    return pending.event;
  }

  // Makes a replacement on the same clock, in the same memory, with the faults still to come.
  [[nodiscard]] std::unique_ptr<Device> again() const {
    return make_sim_device(spec_, clock_, recorder_, use_, faults_);
  }

  void let_others_take(std::uint64_t bytes) { use_->set_others(bytes); }

  bool advance(std::chrono::nanoseconds) override { return clock_->advance(); }
  [[nodiscard]] std::uint64_t now_ns() const override { return static_cast<std::uint64_t>(clock_->now().count()); }
  [[nodiscard]] Health health() const override {
    const std::scoped_lock lock(mutex_);
    return health_;
  }

 private:
  [[nodiscard]] bool is_host() const { return info_.memory_pool == kHostPool; }

  struct Pending {
    std::uint64_t number;
    Event event;
  };

  // Schedules an event that is skipped if the device is gone by then.
  void at(Time when, std::function<void()> event) {
    clock_->at(when, [alive = std::weak_ptr(alive_), event = std::move(event)] {
      if (!alive.expired()) event();
    });
  }

  // REQUIRES (here and in the next two): mutex_ is held.
  Pending add_pending() {
    pending_.push_back({next_pending_++, Event(this)});
    return pending_.back();
  }
  [[nodiscard]] Time link_time(std::uint64_t bytes) const {
    if (is_host()) return {};
    return from_us(spec_.link.latency_us + static_cast<double>(bytes) / spec_.link.bytes_per_s * 1e6);
  }
  Event transfer_from(Time& link_free, std::uint64_t bytes, std::function<Status()> move) {
    const Time start = std::max(clock_->now(), link_free);
    link_free = start + link_time(bytes);
    const Pending pending = add_pending();
    at(link_free, [this, move = std::move(move), number = pending.number] {
      if (is_pending(number)) complete(number, move());
    });
    return pending.event;
  }
  // Schedules the end of a program that does not end by itself: its own timeout, or the watchdog.
  void watch(std::uint64_t number, SimProgram& program, std::size_t reached, Time start, const Submission& submission,
             Time end) {
    const Time watchdog = start + from_us(spec_.watchdog_us);
    const Time now = clock_->now();
    const Time deadline = submission.timeout && *submission.timeout < Time::max() - now
                              ? now + std::max(*submission.timeout, Time{})
                              : Time::max();
    if (std::min(deadline, watchdog) >= end) return;
    const bool in_time = deadline <= watchdog;
    at(std::min(deadline, watchdog), [this, number, &program, reached, start, submission, in_time] {
      if (!is_pending(number)) return;
      end_early(program, reached, start, submission,
                in_time
                    ? fail(Code::timed_out, fmt::format("program \"{}\" on {} did not end in the {} us it was given",
                                                        program.name(), info_.id, submission.timeout->count() / 1000))
                    : fail(Code::device_lost, fmt::format("the watchdog of {} ended program \"{}\" after {} us",
                                                          info_.id, program.name(), spec_.watchdog_us)));
    });
  }

  Event transfer(Time& link_free, std::uint64_t bytes, std::function<Status()> move) {
    if (Status status = health().status; !status) return Event(std::move(status));
    if (Status status = note(faults_->transfer()); !status) return Event(std::move(status));
    const std::scoped_lock lock(mutex_);
    return transfer_from(link_free, bytes, std::move(move));
  }

  [[nodiscard]] bool is_pending(std::uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::find(pending_, number, &Pending::number) != pending_.end();
  }

  void complete(std::uint64_t number, Status status) {
    std::unique_lock lock(mutex_);
    const auto place = std::ranges::find(pending_, number, &Pending::number);
    if (place == pending_.end()) return;
    Event event = std::move(place->event);
    pending_.erase(place);
    lock.unlock();
    event.complete(std::move(status));
  }

  void end_in_time(std::uint64_t number, SimProgram& program, const FaultCount::Ops& faults, Time start,
                   const Submission& submission) {
    const std::size_t count = faults.error.value_or(program.size());
    Status status = program.compute(count, submission.parameters, faults);
    if (status && faults.error)
      status = fail(Code::internal, fmt::format("program \"{}\": injected fault: \"{}\" fails on {}", program.name(),
                                                program.op_name(*faults.error), info_.id));
    program.record(start, clock_->now(), count, submission, status);
    complete(number, std::move(status));
  }

  // Ends the device and all pending work. Of the program's first `most` ops, those done by now have taken effect.
  void end_early(SimProgram& program, std::size_t most, Time start, const Submission& submission, Status why) {
    const Time now = clock_->now();
    std::size_t done = 0;
    while (done < most && start + program.begin_of(done + 1) <= now) ++done;
    if (const Status computed = program.compute(done, submission.parameters, {}); !computed) why = computed;
    program.record(start, now, done, submission, why);
    lose(why);
  }
  void lose(const Status& why) {
    std::vector<Pending> ended;
    {
      const std::scoped_lock lock(mutex_);
      health_ = {why, health_.epoch + 1};
      ended.swap(pending_);
    }
    for (Pending& pending : ended) pending.event.complete(why);
  }
  // Passes a fault's outcome on; device_lost also loses the device.
  Status note(Status fault) {
    if (!fault && fault.error().code == Code::device_lost) lose(fault);
    return fault;
  }

  [[nodiscard]] std::unexpected<Error> lost_at(const SimProgram& program, std::size_t op) const {
    return fail(Code::device_lost,
                fmt::format("{} was lost in program \"{}\" at \"{}\"", info_.id, program.name(), program.op_name(op)));
  }

  const Spec spec_;
  const std::shared_ptr<VirtualClock> clock_;
  trace::Recorder* const recorder_;
  const PoolUse use_;
  const std::shared_ptr<Budget> budget_;
  std::weak_ptr<Scratch> scratch_;  // of the programs that live
  const std::shared_ptr<FaultCount> faults_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
  DeviceInfo info_;

  mutable std::mutex mutex_;
  Health health_;
  std::vector<Pending> pending_;  // in the order of submission
  std::uint64_t next_pending_ = 0;
  bool hung_ = false;
  Time compute_free_{};
  Time to_device_free_{};
  Time from_device_free_{};
};

// Returns one more than the greatest N of the names "sim:N"; "sim" alone is "sim:0".
std::size_t wanted_devices(std::string_view list) {
  constexpr std::size_t kMost = 64;
  constexpr std::string_view kPrefix = "sim:";
  std::size_t count = 0;
  for (const std::string_view name : names_in(list)) {
    std::size_t number = 0;
    if (name == "sim") count = std::max<std::size_t>(count, 1);
    if (!name.starts_with(kPrefix)) continue;
    const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size() && number < kMost) count = std::max(count, number + 1);
  }
  return count;
}

}  // namespace

std::unique_ptr<Device> make_sim_device(Spec spec, std::shared_ptr<VirtualClock> clock, trace::Recorder* recorder,
                                        PoolUse use, std::shared_ptr<FaultCount> faults) {
  return std::make_unique<SimDevice>(std::move(spec), std::move(clock), recorder, std::move(use), std::move(faults));
}

void take_memory(Device& device, std::uint64_t bytes) { static_cast<SimDevice&>(device).let_others_take(bytes); }

std::vector<std::unique_ptr<Device>> make_sim_devices(std::span<const Spec> specs,
                                                      const std::shared_ptr<VirtualClock>& clock,
                                                      trace::Recorder* recorder, const FaultTable& faults) {
  std::map<std::string_view, PoolUse> pools;
  std::vector<std::unique_ptr<Device>> devices;
  for (const Spec& spec : specs) {
    const std::string& pool = spec.memory_pool.empty() ? spec.id : spec.memory_pool;
    PoolUse& use = pools[spec.memory_resource.empty() ? pool : spec.memory_resource];
    if (use == nullptr) use = no_use();
    use->follow(spec.taken, clock);
    const auto told = faults.find(spec.id);
    devices.push_back(make_sim_device(spec, clock, recorder, use, told == faults.end() ? nullptr : told->second));
  }
  return devices;
}

}  // namespace shunt::sim

namespace shunt {

Result<BackendReport> open_sim(const OpenOptions& options) {
  BackendReport report{.api = "sim"};
  if (const auto* lost = dynamic_cast<const sim::SimDevice*>(options.in_place_of)) {
    report.devices.push_back(lost->again());
    return report;
  }
  std::vector<sim::Spec> specs;
  if (!options.machine.empty()) {
    SHUNT_TRY_ASSIGN(sim::Machine machine, sim::read_machine(std::string(options.machine)));
    specs = std::move(machine.devices);
  } else {
    const std::size_t count = sim::wanted_devices(options.devices);
    for (std::size_t number = 0; number < count; ++number) specs.push_back({.id = fmt::format("sim:{}", number)});
  }
  if (specs.empty()) report.stop(StartStage::no_device, "a device is simulated where it is named, as sim:0 or sim:1");
  // Traces start at the same origin as those of real devices.
  const auto clock =
      std::make_shared<sim::VirtualClock>(std::chrono::nanoseconds(static_cast<std::int64_t>(trace::now_ns())));
  report.devices = sim::make_sim_devices(specs, clock, options.recorder, options.faults);
  return report;
}

}  // namespace shunt
