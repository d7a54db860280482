// The record of whether a device still answers: written by its one worker, readable from any thread. Also makes errors
// that name the device.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "devices/device.h"

namespace shunt {

class HealthRecord {
 public:
  // `id` is the device's, and must outlive this.
  explicit HealthRecord(const std::string& id) : id_(id) {}

  [[nodiscard]] Health get() const {
    const std::scoped_lock lock(mutex_);
    return health_;
  }

  // Makes an error about `what` on this device.
  [[nodiscard]] std::unexpected<Error> at(std::string_view what, Error error) const {
    return fail_at(fmt::format("{} on {}", what, id_), std::move(error));
  }

  // Returns the status. The first device_lost or timed_out is kept: earlier handles are invalid from then on.
  Status note(Status status) {
    const bool is_end = !status && (status.error().code == Code::device_lost || status.error().code == Code::timed_out);
    return is_end ? lose(std::move(status)) : status;
  }

  // Does the same for an error of any code. REQUIRES: !status.
  Status lose(Status status) {
    const std::scoped_lock lock(mutex_);
    if (health_.status) health_ = {.status = status, .epoch = health_.epoch + 1};
    return status;
  }

  // Returns the outcome of work(), a Status or a Result, or the error if the device was lost. `what` prefixes errors.
  template <class Work>
  auto attempt(std::string_view what, const Work& work) -> decltype(work()) {
    SHUNT_TRY(get().status);
    auto outcome = work();
    if (!outcome) return std::unexpected(note(at(what, std::move(outcome).error())).error());
    return outcome;
  }

  // Does the same for Device::allocate(); `work` returns a backend's buffer.
  template <class Work>
  Result<std::unique_ptr<Buffer>> attempt_buffer(std::uint64_t bytes, const Work& work) {
    return attempt(fmt::format("{} bytes", bytes), [&]() -> Result<std::unique_ptr<Buffer>> { return work(); });
  }

  // Does the same for Device::prepare().
  template <class Work>
  Result<std::unique_ptr<Program>> attempt_program(const ProgramRequest& request, const Work& work) {
    return attempt(fmt::format("program \"{}\"", request.name),
                   [&]() -> Result<std::unique_ptr<Program>> { return work(); });
  }

 private:
  const std::string& id_;
  mutable std::mutex mutex_;
  Health health_;
};

}  // namespace shunt
