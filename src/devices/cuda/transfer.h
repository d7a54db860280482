// Moves bytes between the caller's memory and the device's through pinned memory, or with the command if they are few.
// A copy to the device is done for the caller once its bytes are in pinned memory; a copy to the host is done when the
// stream has passed it.
//
// Owned by one device; one thread at a time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "devices/cuda/context.h"

namespace shunt::cuda {

// Waits for the event that `pinned` queries, or returns why the device will not reach it.
using Settle = std::function<Status(const Pinned& pinned)>;

// Bytes on their way to the host.
struct Arrival {
  std::unique_ptr<Pinned> pinned;
  std::span<std::byte> to;
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // The span may be reused after this returns; the stream copies the rest in order.
  [[nodiscard]] Status write(Address to, std::span<const std::byte> from, const Settle& settle);
  // Returns the arrival to wait for before the last bytes are there; all earlier bytes have arrived on return.
  [[nodiscard]] Result<Arrival> read(Address from, std::span<std::byte> to, const Settle& settle);
  // Copies the bytes out and keeps the pinned memory for later reads. REQUIRES: they have arrived.
  void finish(Arrival arrival);

 private:
  // Marks the half being filled, and switches to the other one once the stream has passed it.
  [[nodiscard]] Status turn(const Settle& settle);
  [[nodiscard]] Result<std::unique_ptr<Pinned>> take_for_read();

  std::shared_ptr<Context> context_;
  std::array<std::unique_ptr<Pinned>, 2> halves_;
  std::array<bool, 2> marked_{};
  std::size_t half_ = 0;
  std::uint64_t used_bytes_ = 0;  // of the half
  std::vector<std::unique_ptr<Pinned>> for_reads_;
};

}  // namespace shunt::cuda
