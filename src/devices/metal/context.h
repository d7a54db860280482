// One Metal GPU: its queue and its memory.
//
// Buffers and programs share it. Abandoned submissions need nothing kept alive for them: a command buffer retains what
// was bound to it until it has ended. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "devices/device.h"
#include "devices/metal/objective_c.h"
#include "devices/shaders/dispatch.h"

namespace shunt::metal {

class Context {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(std::shared_ptr<const ObjectiveC> runtime, Owned device);

  [[nodiscard]] const ObjectiveC& runtime() const { return *runtime_; }
  [[nodiscard]] const Messages& call() const { return runtime_->call(); }
  [[nodiscard]] Id device() const { return device_.get(); }
  [[nodiscard]] Id queue() const { return queue_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const DispatchLimits& limits() const { return limits_; }

 private:
  Context(std::shared_ptr<const ObjectiveC> runtime, Owned device)
      : runtime_(std::move(runtime)), device_(std::move(device)) {}

  std::shared_ptr<const ObjectiveC> runtime_;  // outlives the references below
  Owned device_;
  Owned queue_;
  std::string name_;
  DispatchLimits limits_;
};

// Memory shared by the GPU and the host, zeroed.
class MetalBuffer final : public Buffer {
 public:
  // Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<MetalBuffer>> create(std::shared_ptr<const Context> context,
                                                                   std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const override { return host_.size(); }
  [[nodiscard]] std::span<std::byte> host() override { return host_; }
  [[nodiscard]] Id handle() const { return buffer_.get(); }

 private:
  MetalBuffer(std::shared_ptr<const Context> context, Owned buffer, std::span<std::byte> host)
      : context_(std::move(context)), buffer_(std::move(buffer)), host_(host) {}

  std::shared_ptr<const Context> context_;
  Owned buffer_;
  std::span<std::byte> host_;
};

}  // namespace shunt::metal
