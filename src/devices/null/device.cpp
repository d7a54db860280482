// The skeleton of a backend: a device with memory that computes nothing. docs/adding-a-device.md begins with a copy of
// this folder. It is compiled, so that it fits the contract, but has no row in backends.def.
//
// A real backend implements the same calls. As it grows, its parts have the same names as elsewhere:
//   device.cpp   this file: Device, and open_null()
//   api.h/.cpp   the functions of the API, opened at run time: building needs no header and no library of it
//   memory.h     Buffer            program.h    Program: what prepare() records, captures or compiles
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "devices/backend.h"

namespace shunt::null {
namespace {

// For memory that only the device can address, host() would be empty.
class NullBuffer final : public Buffer {
 public:
  explicit NullBuffer(std::uint64_t bytes) : memory_(bytes) {}
  [[nodiscard]] std::uint64_t bytes() const override { return memory_.size(); }
  [[nodiscard]] std::span<std::byte> host() override { return memory_; }

 private:
  std::vector<std::byte> memory_;
};

class NullDevice final : public Device {
 public:
  NullDevice() {
    // A real backend asks its API for all of this and knows no device by name.
    info_.id = "null:0";
    info_.name = "nothing";
    info_.vendor = "nobody";
    info_.emulated = true;  // used only if named, never counted as a GPU
    info_.compute_resource = info_.id;
    info_.memory_resource = info_.id;
    info_.memory_pool = info_.id;
    info_.memory_bytes = kMemoryBytes;
    info_.prior = {.launch_us = 1, .op_us = 1, .flops_per_s = 1e9, .bytes_per_s = 1e9};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return std::nullopt; }

  // An empty reason means yes, with the scratch bytes that a program of these ops needs.
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    if (run.empty()) return {};
    return {.reason = fmt::format("{}: {} has no kernels", name_of(run.front().op), info_.id)};
  }

  // Zeroed, as state must be.
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    if (bytes > kMemoryBytes)
      return fail(Code::out_of_memory, fmt::format("{} bytes of {} wanted, it has {}", bytes, info_.id, kMemoryBytes));
    return std::make_unique<NullBuffer>(bytes);
  }

  // These are done when they return. A device with a queue returns Event(this) and completes it later: from a thread or
  // callback of its own, or from advance().
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    std::ranges::copy(from, at(to));
    return Event(Status{});
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    std::copy_n(at(from), to.size(), to.begin());
    return Event(Status{});
  }

  // Called only for ops that supports() accepted.
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return fail(Code::unsupported, fmt::format("program \"{}\": {} has no kernels", request.name, info_.id));
  }
  [[nodiscard]] Event submit(Program&, const Submission&) override {
    return Event(fail(Code::internal, fmt::format("{} prepared no program", info_.id)));
  }

  bool advance(std::chrono::nanoseconds) override { return false; }
  [[nodiscard]] Health health() const override { return {}; }

 private:
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30U;

  static std::span<std::byte>::iterator at(const Binding& binding) {
    return binding.buffer->host().begin() + static_cast<std::ptrdiff_t>(binding.offset);
  }

  DeviceInfo info_;
};

}  // namespace
}  // namespace shunt::null

namespace shunt {

// A row SHUNT_BACKEND(null) would declare this.
Result<BackendReport> open_null(const OpenOptions& options);

// Errors are for options that cannot be fulfilled. An absent API, or one without devices, is no error: the report tells
// at which stage it stopped, and what would help.
Result<BackendReport> open_null(const OpenOptions&) {
  BackendReport report{.api = "null"};
  report.devices.push_back(std::make_unique<null::NullDevice>());
  return report;
}

}  // namespace shunt
