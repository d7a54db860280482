// Whether a device still answers, as its one worker finds out and any thread may ask; and errors that name the device.
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
  // `id` is the device's, and has to outlive it.
  explicit HealthRecord(const std::string& id) : id_(id) {}

  [[nodiscard]] Health get() const {
    const std::scoped_lock lock(mutex_);
    return health_;
  }

  // An error of `what` on the device.
  [[nodiscard]] std::unexpected<Error> at(std::string_view what, Error error) const {
    return fail_at(fmt::format("{} on {}", what, id_), std::move(error));
  }

  // Passes a status on. The first device_lost or timed_out stays: handles made before are invalid from then on.
  Status note(Status status) {
    const bool is_end = !status && (status.error().code == Code::device_lost || status.error().code == Code::timed_out);
    return is_end ? lose(std::move(status)) : status;
  }

  // The same for an error of any code. REQUIRES: !status.
  Status lose(Status status) {
    const std::scoped_lock lock(mutex_);
    if (health_.status) health_ = {.status = status, .epoch = health_.epoch + 1};
    return status;
  }

  // What work() answers, a Status or a Result, unless the device was lost. `what` it does stands before an error.
  template <class Work>
  auto attempt(std::string_view what, const Work& work) -> decltype(work()) {
    SHUNT_TRY(get().status);
    auto outcome = work();
    if (!outcome) return std::unexpected(note(at(what, std::move(outcome).error())).error());
    return outcome;
  }

  // The same for Device::allocate(); `work` answers the buffer of a backend.
  template <class Work>
  Result<std::unique_ptr<Buffer>> attempt_buffer(std::uint64_t bytes, const Work& work) {
    return attempt(fmt::format("{} bytes", bytes), [&]() -> Result<std::unique_ptr<Buffer>> { return work(); });
  }

  // And for Device::prepare().
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
