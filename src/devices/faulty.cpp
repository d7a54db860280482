#include "devices/faulty.h"

#include <fmt/format.h>

#include <thread>
#include <utility>
#include <vector>

#include "devices/health.h"
#include "devices/upload.h"
#include "devices/waiting.h"

namespace shunt {
namespace {

// The longest time that a program without a timeout of its own may hang, like a GPU driver's watchdog.
constexpr std::chrono::seconds kWatchdog{10};

class FaultyProgram final : public Program {
 public:
  struct Output {
    std::uint32_t op = 0;
    Binding at;
    DType dtype = DType::F32;
  };

  FaultyProgram(std::unique_ptr<Program> real, const ProgramRequest& request)
      : real_(std::move(real)), name_(request.name), ops_(request.ops.size()) {
    for (std::uint32_t op = 0; op < ops_; ++op) {
      const OpCall& call = request.ops[op].call;
      if (info_of(call.output->dtype).kind == DTypeKind::floating && call.output->kind != TensorKind::state)
        outputs_.push_back({op, request.ops[op].output, call.output->dtype});
    }
  }

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return real_->scratch_bytes(); }
  [[nodiscard]] bool records() const override { return real_->records(); }
  [[nodiscard]] std::optional<std::uint64_t> op_ns() const override { return real_->op_ns(); }
  [[nodiscard]] Program& real() { return *real_; }
  [[nodiscard]] const Program& real() const { return *real_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // The number of ops submitted.
  [[nodiscard]] std::size_t size(const Submission& submission) const { return submission.op ? 1 : ops_; }
  // The last of them with a floating-point output; null if there is none.
  [[nodiscard]] const Output* last_output(const Submission& submission) const {
    const Output* last = nullptr;
    for (const Output& output : outputs_)
      if (submission.includes(output.op)) last = &output;
    return last;
  }

 private:
  std::unique_ptr<Program> real_;
  std::string name_;
  std::size_t ops_;
  std::vector<Output> outputs_;
};

class FaultyDevice final : public Device {
 public:
  FaultyDevice(std::unique_ptr<Device> real, std::shared_ptr<FaultCount> faults)
      : real_(std::move(real)),
        faults_(faults != nullptr ? std::move(faults) : std::make_shared<FaultCount>(real_->info().id, Faults{})),
        health_(real_->info().id) {}

  [[nodiscard]] const DeviceInfo& info() const override { return real_->info(); }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return real_->memory_available(); }
  [[nodiscard]] PeakRates peak() const override { return real_->peak(); }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override { return real_->supports(run); }

  [[nodiscard]] Layout layout_for(const OpCall& call, std::size_t input) const override {
    return real_->layout_for(call, input);
  }
  [[nodiscard]] std::vector<KernelCandidate> kernels_for(const OpCall& call, Layout weights) const override {
    return real_->kernels_for(call, weights);
  }
  void choose_kernels(KernelChoices choices) override { real_->choose_kernels(std::move(choices)); }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override {
    SHUNT_TRY(begin(faults_->allocation()));
    return real_->allocate(bytes, use);
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                            std::shared_ptr<const void> owner) override {
    SHUNT_TRY(begin(faults_->allocation()));
    return real_->import_host(memory, std::move(owner));
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return transfer([&] { return real_->write(to, from); });
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return transfer([&] { return real_->read(from, to); });
  }
  [[nodiscard]] Event copy_from_peer(Device& peer, const Binding& from, const Binding& to) override {
    auto* const faulty = dynamic_cast<FaultyDevice*>(&peer);
    return transfer([&] { return real_->copy_from_peer(faulty == nullptr ? peer : *faulty->real_, from, to); });
  }

  [[nodiscard]] Result<std::shared_ptr<const void>> pin_host(std::span<const std::byte> memory, HostAccess access,
                                                             std::shared_ptr<const void> owner) override {
    return real_->pin_host(memory, access, std::move(owner));
  }
  [[nodiscard]] bool runs_in_order() const override { return real_->runs_in_order(); }
  void prefetch(const Program& next) override { real_->prefetch(static_cast<const FaultyProgram&>(next).real()); }
  [[nodiscard]] Event copy_weight(Device& peer, const Binding& from, const Binding& to,
                                  const MatrixRows& rows) override {
    auto* const faulty = dynamic_cast<FaultyDevice*>(&peer);
    return transfer([&] { return real_->copy_weight(faulty == nullptr ? peer : *faulty->real_, from, to, rows); });
  }

  [[nodiscard]] std::uint64_t weight_copy_bytes() const override { return real_->weight_copy_bytes(); }

  [[nodiscard]] Result<std::unique_ptr<Upload>> upload() override {
    SHUNT_TRY(health().status);
    SHUNT_TRY_ASSIGN(std::unique_ptr<Upload> real, real_->upload());
    return std::make_unique<FaultyUpload>(*this, std::move(real));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY(begin(faults_->program()));
    SHUNT_TRY_ASSIGN(std::unique_ptr<Program> real, real_->prepare(request));
    return std::make_unique<FaultyProgram>(std::move(real), request);
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<FaultyProgram&>(program);
    if (Status lost = health().status; !lost) return Event(std::move(lost));
    const FaultCount::Ops faults = faults_->ops(mine.size(submission));
    const auto told = [&](Code code, std::string_view what) {
      return fail(code, fmt::format("{}: injected fault in program \"{}\": {}", info().id, mine.name(), what));
    };
    if (faults.hangs || !hung_.empty()) return hang(submission);
    if (faults.lost) return Event(health_.note(told(Code::device_lost, "device lost")));
    if (faults.error) return Event(Status(told(Code::internal, "error")));
    Event event = real_->submit(mine.real(), submission);
    const FaultyProgram::Output* const output = mine.last_output(submission);
    if (output == nullptr) return event;
    if (faults.nonfinite) return Event(spoil(*output, event));
    return faults.wrong ? Event(turn(*output, event)) : event;
  }

  bool advance(std::chrono::nanoseconds patience) override {
    if (hung_.empty()) return real_->advance(patience);
    real_->advance(patience);
    if (!has_passed(hung_.front().deadline)) {
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(patience_until(hung_.front().deadline, patience),
                                                                     std::chrono::milliseconds(1)));
      return true;
    }
    const Status status = health_.note(
        fail(Code::timed_out, fmt::format("{}: injected fault: a program hung until its deadline", info().id)));
    for (Hung& each : std::exchange(hung_, {})) each.event.complete(status);
    return true;
  }

  [[nodiscard]] std::uint64_t now_ns() const override { return real_->now_ns(); }
  [[nodiscard]] Health health() const override {
    const Health own = health_.get();
    return own.status ? real_->health() : own;
  }

 private:
  // Counts each piece that is sent as a transfer.
  class FaultyUpload final : public Upload {
   public:
    FaultyUpload(FaultyDevice& device, std::unique_ptr<Upload> real) : device_(device), real_(std::move(real)) {}

    void expect(std::uint64_t bytes) override { real_->expect(bytes); }
    [[nodiscard]] Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit) override {
      SHUNT_TRY(device_.health().status);
      return real_->take(bytes, unit);
    }
    [[nodiscard]] Status send(const Binding& to, const MatrixRows& rows) override {
      return device_.transfer([&] { return Event(real_->send(to, rows)); }).wait();
    }
    [[nodiscard]] Status finish() override {
      SHUNT_TRY(device_.health().status);
      return real_->finish();
    }

   private:
    FaultyDevice& device_;
    std::unique_ptr<Upload> real_;
  };

  struct Hung {
    Event event;
    Deadline deadline;
  };

  Status begin(Status fault) {
    SHUNT_TRY(health().status);
    return health_.note(std::move(fault));
  }

  template <class Start>
  Event transfer(const Start& start) {
    if (Status status = begin(faults_->transfer()); !status) return Event(std::move(status));
    return hung_.empty() ? start() : hang({});
  }

  Event hang(const Submission& submission) {
    const std::chrono::nanoseconds most = kWatchdog;
    hung_.push_back({Event(this), deadline_of({.timeout = std::min(submission.timeout.value_or(most), most)})});
    return hung_.back().event;
  }

  // All bits set is NaN in every floating dtype.
  Status spoil(const FaultyProgram::Output& output, Event& event) {
    SHUNT_TRY(event.wait());
    const std::vector<std::byte> nan(output.at.bytes, std::byte{0xFF});
    return real_->write(output.at, nan).wait();
  }

  Status turn(const FaultyProgram::Output& output, Event& event) {
    SHUNT_TRY(event.wait());
    std::vector<std::byte> numbers(output.at.bytes);
    SHUNT_TRY(real_->read(output.at, numbers).wait());
    make_wrong(output.dtype, numbers);
    return real_->write(output.at, numbers).wait();
  }

  const std::unique_ptr<Device> real_;
  const std::shared_ptr<FaultCount> faults_;
  HealthRecord health_;
  std::vector<Hung> hung_;  // all others wait for the first
};

}  // namespace

std::unique_ptr<Device> make_faulty(std::unique_ptr<Device> real, std::shared_ptr<FaultCount> faults) {
  return std::make_unique<FaultyDevice>(std::move(real), std::move(faults));
}

}  // namespace shunt
