// Memory of the host that the driver has pinned, so that the device copies from it, or to it, by itself.
//
// Owned by one device; one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "devices/cuda/context.h"

namespace shunt::cuda {

class PinnedRanges {
 public:
  explicit PinnedRanges(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  PinnedRanges(const PinnedRanges&) = delete;
  PinnedRanges& operator=(const PinnedRanges&) = delete;

  // Pins the pages of so much memory until the result has ended, but for those that others have pinned, whose pins the
  // result holds. Errors: those of the driver.
  [[nodiscard]] Result<std::shared_ptr<const void>> pin(std::span<const std::byte> memory, HostAccess access,
                                                        std::shared_ptr<const void> owner);
  // Returns how much of the memory, from its beginning, is in one pinned range, or in none: the driver takes no span
  // that is pinned in part.
  [[nodiscard]] std::span<const std::byte> first_alike(std::span<const std::byte> memory) const;
  // Returns whether all of it is pinned for the device to write there.
  [[nodiscard]] bool may_write(std::span<const std::byte> memory) const;

 private:
  class Range;
  // Returns the range that holds the byte, or null.
  [[nodiscard]] std::shared_ptr<Range> range_of(const std::byte* at) const;

  std::shared_ptr<Context> context_;
  std::map<const std::byte*, std::weak_ptr<Range>> ranges_;  // by their first byte
};

}  // namespace shunt::cuda
