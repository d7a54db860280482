#include "devices/cpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "devices/cpu/memory.h"
#include "devices/cpu/program.h"
#include "devices/cpu/targets.h"
#include "devices/registry.h"
#include "ops/kernel.h"

namespace shunt::cpu {
namespace {

template <KernelSet set>
const CpuKernel* kernel_for(const OpCall& call) {
  const CpuFamily& family = cpu_family(info_of(call.op).family);
  return set == KernelSet::simd ? family.simd : family.scalar;
}

// "model name : AMD EPYC 7543" of /proc/cpuinfo.
std::string processor_name() {
  std::string name = "CPU";
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (file == nullptr) return name;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    const std::string_view text(line);
    const std::size_t colon = text.find(": ");
    if (!text.starts_with("model name") || colon == std::string_view::npos) continue;
    name = text.substr(colon + 2, text.find_last_not_of('\n') - colon - 1);
    break;
  }
  static_cast<void>(std::fclose(file));
  return name;
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options)
      : kernels_(options.kernels), engine_(std::move(options.engine)), recorder_(options.recorder) {
    const bool simd = kernels_ == KernelSet::simd;
    const double threads = engine_->threads();
    info_.id = !options.id.empty() ? options.id : simd ? "cpu:simd" : "cpu:scalar";
    info_.name = processor_name();
    info_.vendor = "host";
    info_.type = DeviceType::cpu;
    info_.compute_resource = "cpu";
    info_.memory_pool = std::move(options.memory_pool);
    info_.memory_bytes = total_memory().value_or(0);
    info_.compute_units = engine_->threads();
    if (simd) info_.features = simd_targets();
    info_.prior = {.launch_us = 5,
                   .op_us = 1,
                   .flops_per_s = (simd ? 50e9 : 1e9) * threads,
                   .bytes_per_s = (simd ? 10e9 : 1e9) * threads,
                   .uncertainty = 0.7};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return available_memory(); }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return KernelRun::supports(run, choose(), engine_->threads(), info_.id);
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return allocate_host(bytes);
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory) override {
    return wrap_host(memory);
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to.buffer->host().data() + to.offset, from.data(), from.size());
    return Event(Status{});
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    if (!to.empty()) std::memcpy(to.data(), from.buffer->host().data() + from.offset, to.size());
    return Event(Status{});
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return CpuProgram::create(request, choose(), engine_->threads(), recorder_, info_.id);
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    Event event(this);
    engine_->enqueue([event, &program, submission, deadline = deadline_of(submission)](ThreadPool& pool) mutable {
      event.complete(static_cast<CpuProgram&>(program).run(pool, submission, deadline));
    });
    return event;
  }

  bool advance() override { return engine_->advance(); }
  [[nodiscard]] Health health() const override { return {}; }

 private:
  [[nodiscard]] KernelRun::Choose choose() const {
    return kernels_ == KernelSet::simd ? kernel_for<KernelSet::simd> : kernel_for<KernelSet::scalar>;
  }

  KernelSet kernels_;
  std::shared_ptr<Engine> engine_;
  trace::Recorder* recorder_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(CpuDeviceOptions options) {
  return std::make_unique<CpuDevice>(std::move(options));
}

}  // namespace shunt::cpu

namespace shunt {

Result<BackendReport> open_cpu(const OpenOptions& options) {
  const std::uint32_t threads = options.threads != 0 ? options.threads : cpu::usable_cores();
  const auto engine = std::make_shared<cpu::Engine>(threads, options.pin_to_cpus);
  SHUNT_TRY(engine->pinned());
  BackendReport report{.api = "cpu"};
  for (const cpu::KernelSet kernels : {cpu::KernelSet::simd, cpu::KernelSet::scalar})
    report.devices.push_back(
        cpu::make_cpu_device({.kernels = kernels, .engine = engine, .recorder = options.recorder}));
  return report;
}

}  // namespace shunt
