// Weights on their way from the host to a device, piece by piece: the caller fills one while earlier ones travel.
//
// A piece is memory that take() lends until send(); any threads may fill it. Several may be lent at a time, and are
// sent in the order in which they were taken. The calls are calls to the device, so one at a time, and others to it may
// come between. It ends before the device, and may end before finish() after an error.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "devices/device.h"

namespace shunt {

// The most bytes of one piece, unless its unit is larger.
inline constexpr std::uint64_t kUploadPieceBytes = std::uint64_t{8} << 20U;

// Returns the bytes of the next piece of `bytes`: as many units as fit, at least one. REQUIRES: whole units.
[[nodiscard]] constexpr std::uint64_t piece_bytes(std::uint64_t bytes, std::uint64_t unit) {
  const std::uint64_t most = std::max(kUploadPieceBytes / unit * unit, unit);
  return std::min(bytes, most);
}

class Upload {
 public:
  virtual ~Upload() = default;

  // Tells how many bytes of weights will be allocated and sent, so that the device can prepare for all of them.
  virtual void expect(std::uint64_t) {}
  // Lends memory for the next piece of `bytes`, of piece_bytes(bytes, unit), or none while so much is lent that some
  // must be sent first. Waits until the device has taken what was there before. Errors: out_of_memory; those of earlier
  // pieces. REQUIRES: bytes is a multiple of unit, and not 0.
  [[nodiscard]] virtual Result<std::span<std::byte>> take(std::uint64_t bytes, std::uint64_t unit) = 0;
  // Sends the first piece that is lent. It has rows of the file, in whole strips if they are to be laid out as such.
  // Programs submitted later find it there. REQUIRES: to.bytes are those of the piece.
  [[nodiscard]] virtual Status send(const Binding& to, const MatrixRows& rows) = 0;
  // Waits until all pieces that were sent have arrived, and frees the memory of all.
  [[nodiscard]] virtual Status finish() = 0;
};

// An upload by Device::write(), from two pieces in plain memory. Rows are laid out by the caller's thread.
[[nodiscard]] std::unique_ptr<Upload> upload_by_writing(Device& device);

}  // namespace shunt
