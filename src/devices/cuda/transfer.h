// Bytes between the caller's memory and the device's, through pinned memory: copies to the device are over for the
// caller once they are in pinned memory, copies to the host when the stream has passed them.
//
// Owned by one device; one thread at a time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "devices/cuda/context.h"

namespace shunt::cuda {

// Waits until what `query` asks for is over, or says why the device will not get there.
using Settle = std::function<Status(const Pinned& pinned)>;

// Bytes on their way to the host.
struct Arrival {
  std::unique_ptr<Pinned> pinned;
  std::span<std::byte> to;
};

class Transfer {
 public:
  explicit Transfer(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  // The span is free when it returns; the stream does the rest in its order.
  [[nodiscard]] Status write(Address to, std::span<const std::byte> from, const Settle& settle);
  // What has to arrive for the last bytes to be there; all before them are when it returns.
  [[nodiscard]] Result<Arrival> read(Address from, std::span<std::byte> to, const Settle& settle);
  // Hands the bytes over and keeps the pinned memory for later reads. REQUIRES: they have arrived.
  void finish(Arrival arrival);

 private:
  // The half that is being filled is marked, and the other one taken once the stream has passed it.
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
