// A device that passes every call on to another one. Tests override what they change or watch.
#pragma once

#include <memory>
#include <utility>

#include "devices/device.h"

namespace shunt::test {

class WrappedDevice : public Device {
 public:
  // `inner` must outlive it.
  explicit WrappedDevice(Device& inner) : inner_(inner) {}
  explicit WrappedDevice(std::unique_ptr<Device> inner) : owned_(std::move(inner)), inner_(*owned_) {}

  [[nodiscard]] const DeviceInfo& info() const override { return inner_.info(); }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return inner_.memory_available(); }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override { return inner_.supports(run); }
  [[nodiscard]] Layout layout_for(const OpCall& call, std::size_t input) const override {
    return inner_.layout_for(call, input);
  }
  [[nodiscard]] std::vector<KernelCandidate> kernels_for(const OpCall& call, Layout weights) const override {
    return inner_.kernels_for(call, weights);
  }
  void choose_kernels(KernelChoices choices) override { inner_.choose_kernels(std::move(choices)); }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override {
    return inner_.allocate(bytes, use);
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                            std::shared_ptr<const void> owner) override {
    return inner_.import_host(memory, std::move(owner));
  }
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return inner_.write(to, from);
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override { return inner_.read(from, to); }
  [[nodiscard]] Event copy_from_peer(Device& peer, const Binding& from, const Binding& to) override {
    return inner_.copy_from_peer(peer, from, to);
  }
  [[nodiscard]] Result<std::shared_ptr<const void>> pin_host(std::span<const std::byte> memory, HostAccess access,
                                                             std::shared_ptr<const void> owner) override {
    return inner_.pin_host(memory, access, std::move(owner));
  }
  [[nodiscard]] bool runs_in_order() const override { return inner_.runs_in_order(); }
  void prefetch(const Program& next) override { inner_.prefetch(next); }
  [[nodiscard]] Event copy_weight(Device& peer, const Binding& from, const Binding& to,
                                  const MatrixRows& rows) override {
    return inner_.copy_weight(peer, from, to, rows);
  }
  [[nodiscard]] std::uint64_t weight_copy_bytes() const override { return inner_.weight_copy_bytes(); }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return inner_.prepare(request);
  }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    return inner_.submit(program, submission);
  }
  bool advance(std::chrono::nanoseconds patience) override { return inner_.advance(patience); }
  [[nodiscard]] Health health() const override { return inner_.health(); }

 protected:
  [[nodiscard]] Device& inner() const { return inner_; }

 private:
  std::unique_ptr<Device> owned_;  // null: the caller owns it
  Device& inner_;
};

}  // namespace shunt::test
