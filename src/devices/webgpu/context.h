// One Dawn device: its instance, adapter and queue, its errors, and the work still awaited.
//
// Errors arrive late, in callbacks: an Outcome collects those of one piece of work. Callbacks run inside wait(), on the
// caller's thread, so each context has its own instance. Buffers and programs share the context. One thread at a time.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "devices/webgpu/api.h"

namespace shunt::webgpu {

// A piece of work and how it ended. The context shares ownership until its last callback came.
struct Outcome {
  std::uint32_t awaited = 0;  // callbacks
  Future last;                // of the last callback
  Status status;              // the first error
  [[nodiscard]] bool done() const { return awaited == 0; }
};

struct AdapterChoice {
  PowerPreference power = PowerPreference::none;
  bool fallback = false;  // an adapter that computes on the CPU
};

struct AdapterDescription {
  std::string name;
  std::string vendor;
  std::string driver;
  AdapterType type = AdapterType::unknown;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint64_t memory_bytes = 0;  // 0: unknown
};

class Context {
 public:
  // Errors: unsupported if there is no such adapter, or it grants no device.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(const Functions& functions, const AdapterChoice& choice);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const Functions& call() const { return functions_; }
  [[nodiscard]] DeviceHandle handle() const { return device_; }
  [[nodiscard]] QueueHandle queue() const { return queue_; }
  [[nodiscard]] const AdapterDescription& adapter() const { return adapter_description_; }
  [[nodiscard]] std::uint64_t largest_buffer_bytes() const { return limits_.max_buffer_bytes; }
  [[nodiscard]] std::uint64_t largest_binding_bytes() const;

  // Errors of all work between the two go to the outcome.
  void open_scopes() const;
  [[nodiscard]] std::shared_ptr<Outcome> close_scopes();
  // Makes the outcome also await the end of all submitted work.
  void await_work(const std::shared_ptr<Outcome>& outcome) const;
  // Makes the outcome also await that the host can read the first bytes of a buffer.
  void await_map(const std::shared_ptr<Outcome>& outcome, BufferHandle buffer, std::uint64_t bytes) const;

  // Runs due callbacks for at most `patience`, until the outcome is done.
  void wait(const Outcome& outcome, std::chrono::nanoseconds patience);
  // Waits as long as it takes; returns conclude().
  [[nodiscard]] Status settle(const Outcome& outcome);
  // Returns how the work ended: device_lost if the device is lost, else the outcome's own error, else a stray error.
  // REQUIRES: outcome.done().
  [[nodiscard]] Status conclude(const Outcome& outcome);
  // Returns an error outside all scopes, such as that of a write; each is returned once.
  [[nodiscard]] Status take_stray_error();
  [[nodiscard]] const Status& lost() const { return lost_; }

  // Destroys the device as a driver crash would: later work fails with device_lost.
  void destroy() const { functions_.DeviceDestroy(device_); }

 private:
  explicit Context(const Functions& functions) : functions_(functions) {}
  [[nodiscard]] Status request_adapter(const AdapterChoice& choice);
  [[nodiscard]] Status request_device();
  void describe_adapter();
  void wait_for(Future future, std::uint64_t timeout_ns) const;

  Functions functions_;
  InstanceHandle instance_ = nullptr;
  AdapterHandle adapter_ = nullptr;
  DeviceHandle device_ = nullptr;
  QueueHandle queue_ = nullptr;
  Limits limits_;
  AdapterDescription adapter_description_;
  Status lost_;
  Status stray_;
  std::vector<std::shared_ptr<Outcome>> outcomes_;
};

}  // namespace shunt::webgpu
