#include "devices/cuda/transfer.h"

#include <algorithm>
#include <cstring>

namespace shunt::cuda {
namespace {

constexpr std::uint64_t kHalfBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kReadBytes = std::uint64_t{4} << 20U;

}  // namespace

Status Transfer::turn(const Settle& settle) {
  if (halves_[half_] != nullptr) {
    SHUNT_TRY(halves_[half_]->mark());
    marked_[half_] = true;
  }
  half_ = 1 - half_;
  used_bytes_ = 0;
  if (marked_[half_]) return settle(*halves_[half_]);
  return {};
}

Status Transfer::write(Address to, std::span<const std::byte> from, const Settle& settle) {
  if (context_->copies_inline() && from.size() <= Context::kInlineBytes) {
    // The caller's memory may be pinned.
    std::array<std::byte, Context::kInlineBytes> copy;
    std::memcpy(copy.data(), from.data(), from.size());
    return check(context_->call().copy_to_device(to, copy.data(), from.size(), context_->stream()),
                 "copying to the device");
  }
  while (!from.empty()) {
    if (used_bytes_ == kHalfBytes) SHUNT_TRY(turn(settle));
    if (halves_[half_] == nullptr) {
      SHUNT_TRY_ASSIGN(halves_[half_], Pinned::create(context_, kHalfBytes));
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(from.size(), kHalfBytes - used_bytes_);
    std::byte* const place = halves_[half_]->memory().data() + used_bytes_;
    std::memcpy(place, from.data(), bytes);
    SHUNT_TRY(check(context_->call().copy_to_device(to, place, bytes, context_->stream()), "copying to the device"));
    used_bytes_ += bytes;
    to += bytes;
    from = from.subspan(bytes);
  }
  return {};
}

Result<Arrival> Transfer::read(Address from, std::span<std::byte> to, const Settle& settle) {
  while (true) {
    SHUNT_TRY_ASSIGN(std::unique_ptr<Pinned> pinned, take_for_read());
    Arrival arrival{.pinned = std::move(pinned), .to = to.first(std::min<std::uint64_t>(to.size(), kReadBytes))};
    SHUNT_TRY(check(
        context_->call().copy_to_host(arrival.pinned->memory().data(), from, arrival.to.size(), context_->stream()),
        "copying from the device"));
    SHUNT_TRY(arrival.pinned->mark());
    if (arrival.to.size() == to.size()) return arrival;
    SHUNT_TRY(settle(*arrival.pinned));
    from += arrival.to.size();
    to = to.subspan(arrival.to.size());
    finish(std::move(arrival));
  }
}

void Transfer::finish(Arrival arrival) {
  std::memcpy(arrival.to.data(), arrival.pinned->memory().data(), arrival.to.size());
  for_reads_.push_back(std::move(arrival.pinned));
}

Result<std::unique_ptr<Pinned>> Transfer::take_for_read() {
  if (for_reads_.empty()) return Pinned::create(context_, kReadBytes);
  std::unique_ptr<Pinned> pinned = std::move(for_reads_.back());
  for_reads_.pop_back();
  return pinned;
}

}  // namespace shunt::cuda
