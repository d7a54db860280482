#include "devices/cpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ranges>

#include "base/out_of_memory.h"
#include "base/system/memory_nodes.h"
#include "devices/backend.h"
#include "devices/cpu/memory.h"
#include "devices/cpu/program.h"
#include "devices/cpu/targets.h"
#include "devices/identity.h"
#include "ops/kernel.h"

namespace shunt::cpu {
namespace {

template <KernelSet set>
const CpuKernel* kernel_for(const OpCall& call) {
  const CpuFamily& family = cpu_family(info_of(call.op).family);
  // Custom ops have one kernel for both sets.
  return set == KernelSet::simd && call.op != Op::custom ? family.simd : family.scalar;
}

// Returns the lines of a system file, without line ends; none if there is no such file.
std::vector<std::string> lines_of(const char* path) {
  std::vector<std::string> lines;
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return lines;
  std::string line;
  for (int letter = std::fgetc(file); letter != EOF; letter = std::fgetc(file)) {
    if (letter != '\n') {
      line += static_cast<char>(letter);
      continue;
    }
    lines.push_back(std::move(line));
    line.clear();
  }
  static_cast<void>(std::fclose(file));
  return lines;
}

// Returns the value of the first of these keys in /proc/cpuinfo: "model name : AMD EPYC 7543". Empty: not there.
std::string processor_says(std::initializer_list<std::string_view> keys) {
  for (const std::string& line : lines_of("/proc/cpuinfo")) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    for (const std::string_view key : keys)
      if (line.starts_with(key) && line.find_first_not_of("\t ", key.size()) == colon) return line.substr(colon + 2);
  }
  return {};
}

std::uint32_t number_in(std::string_view text) {
  std::uint32_t number = 0;
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number));
  return number;
}

std::uint32_t highest_clock_mhz() {
  const std::vector<std::string> khz = lines_of("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  return khz.empty() ? number_in(processor_says({"cpu MHz"})) : number_in(khz.front()) / 1000;
}

DeviceFeatures features() {
  DeviceFeatures found = {DeviceFeature::fp64, DeviceFeature::atomics, DeviceFeature::unified_memory,
                          DeviceFeature::timestamps};
  // Flags of x86 and Arm, as Linux spells them.
  const std::string flags = processor_says({"flags", "Features"});
  for (const auto word : std::views::split(flags, ' ')) {
    const std::string_view flag(word.begin(), word.end());
    found.insert(DeviceFeature::fp16, flag == "avx512_fp16" || flag == "asimdhp");
    found.insert(DeviceFeature::bf16, flag == "avx512_bf16" || flag == "bf16");
    found.insert(DeviceFeature::int8, flag == "avx512_vnni" || flag == "avx_vnni" || flag == "asimddp");
    found.insert(DeviceFeature::cooperative_matrix, flag == "amx_tile" || flag == "sme");
  }
  return found;
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options)
      : kernels_(options.kernels), engine_(std::move(options.engine)), recorder_(options.recorder) {
    const bool simd = kernels_ == KernelSet::simd;
    const double threads = engine_->threads();
    info_.id = !options.id.empty() ? options.id : simd ? "cpu:simd" : kScalarId;
    info_.name = processor_says({"model name"});
    if (info_.name.empty()) info_.name = "CPU";
    info_.vendor = "host";
    info_.type = DeviceType::cpu;
    info_.memory_pool = std::move(options.memory_pool);
    identify(info_, {});
    info_.memory_bytes = total_memory().value_or(0);
    info_.compute_units = engine_->threads();
    info_.clock_mhz = highest_clock_mhz();
    info_.features = features();
    if (simd) info_.details = simd_targets();
    if (const std::uint32_t nodes = MemoryNodes::of_this_machine().count(); nodes != 0)
      info_.details.push_back(fmt::format("{} memory nodes", nodes));
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

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override {
    auto buffer = allocate_host(bytes);
    if (buffer && use == BufferUse::state) prefer_huge_pages((*buffer)->host());
    return buffer;
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                            std::shared_ptr<const void> owner) override {
    return wrap_host(memory, std::move(owner));
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
      // The event is completed whatever happens, because others wait for it.
      event.complete(guarded([&] { return static_cast<CpuProgram&>(program).run(pool, submission, deadline); },
                             [] { return Status(std::unexpected(out_of_memory())); }));
    });
    return event;
  }

  void prefetch(const Program& next) override { engine_->fetch(static_cast<const CpuProgram&>(next).first_reads()); }

  [[nodiscard]] std::unique_ptr<Device> over(std::shared_ptr<Engine> engine) const {
    return std::make_unique<CpuDevice>(CpuDeviceOptions{.kernels = kernels_,
                                                        .engine = std::move(engine),
                                                        .recorder = recorder_,
                                                        .memory_pool = info_.memory_pool,
                                                        .id = info_.id});
  }

  bool advance(std::chrono::nanoseconds) override { return engine_->advance(); }
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

std::unique_ptr<Device> over(std::shared_ptr<Engine> engine, const Device& device) {
  const auto* cpu_device = dynamic_cast<const CpuDevice*>(&device);
  return cpu_device == nullptr ? nullptr : cpu_device->over(std::move(engine));
}

}  // namespace shunt::cpu

namespace shunt {

Result<BackendReport> open_cpu(const OpenOptions& options) {
  const std::uint32_t threads = options.threads != 0 ? options.threads : usable_cores();
  const auto engine = std::make_shared<cpu::Engine>(threads, options.pin_to_cpus);
  SHUNT_TRY(engine->status());
  BackendReport report{.api = "cpu"};
  for (const cpu::KernelSet kernels : {cpu::KernelSet::simd, cpu::KernelSet::scalar})
    report.devices.push_back(
        cpu::make_cpu_device({.kernels = kernels, .engine = engine, .recorder = options.recorder}));
  return report;
}

}  // namespace shunt
