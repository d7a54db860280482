#include "devices/cuda/pinned_ranges.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace shunt::cuda {
namespace {

// Widens a span to whole pages.
std::span<const std::byte> pages_of(std::span<const std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto before = reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  return {memory.data() - before, (before + memory.size() + page - 1) / page * page};
}

}  // namespace

// Pages that the driver has registered.
class PinnedRanges::Range {
 public:
  static Result<std::shared_ptr<Range>> create(std::shared_ptr<Context> context, std::span<const std::byte> pages,
                                               HostAccess access, std::shared_ptr<const void> owner) {
    // The driver only reads it, unless it may be written.
    void* const memory = const_cast<std::byte*>(pages.data());
    const unsigned flags = access == HostAccess::reads ? kReadOnlyMapping : 0;
    SHUNT_TRY(check(context->call().host_register(memory, pages.size(), flags), "pinning memory"));
    return std::make_shared<Range>(std::move(context), pages, access, std::move(owner));
  }
  Range(std::shared_ptr<Context> context, std::span<const std::byte> pages, HostAccess access,
        std::shared_ptr<const void> owner)
      : context_(std::move(context)), pages_(pages), access_(access), owner_(std::move(owner)) {}
  ~Range() {
    context_->end([memory = const_cast<std::byte*>(pages_.data()), owner = std::move(owner_)](
                      const DriverFunctions& call) { static_cast<void>(call.host_unregister(memory)); },
                  false);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  [[nodiscard]] const std::byte* end() const { return pages_.data() + pages_.size(); }
  [[nodiscard]] HostAccess access() const { return access_; }

 private:
  std::shared_ptr<Context> context_;
  std::span<const std::byte> pages_;
  HostAccess access_;
  std::shared_ptr<const void> owner_;
};

std::shared_ptr<PinnedRanges::Range> PinnedRanges::range_of(const std::byte* at) const {
  const auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin()) return nullptr;
  std::shared_ptr<Range> before = std::prev(next)->second.lock();
  return before != nullptr && at < before->end() ? before : nullptr;
}

Result<std::shared_ptr<const void>> PinnedRanges::pin(std::span<const std::byte> memory, HostAccess access,
                                                      std::shared_ptr<const void> owner) {
  std::erase_if(ranges_, [](const auto& range) { return range.second.expired(); });
  const std::span<const std::byte> pages = pages_of(memory);
  const std::byte* const end = pages.data() + pages.size();
  auto held = std::make_shared<std::vector<std::shared_ptr<Range>>>();
  // Neighbours share a page.
  for (const std::byte* at = pages.data(); at != end;) {
    if (std::shared_ptr<Range> known = range_of(at); known != nullptr) {
      at = std::min(end, known->end());
      held->push_back(std::move(known));
      continue;
    }
    const auto next = ranges_.upper_bound(at);
    const std::byte* const stop = next == ranges_.end() ? end : std::min(end, next->first);
    SHUNT_TRY_ASSIGN(auto range, Range::create(context_, {at, stop}, access, owner));
    ranges_[at] = range;
    held->push_back(std::move(range));
    at = stop;
  }
  return held;
}

std::span<const std::byte> PinnedRanges::first_alike(std::span<const std::byte> memory) const {
  const std::byte* stop = memory.data() + memory.size();
  if (const auto next = ranges_.upper_bound(memory.data()); next != ranges_.end()) stop = std::min(stop, next->first);
  if (const std::shared_ptr<Range> known = range_of(memory.data()); known != nullptr)
    stop = std::min(stop, known->end());
  return {memory.data(), stop};
}

bool PinnedRanges::may_write(std::span<const std::byte> memory) const {
  const std::byte* const end = memory.data() + memory.size();
  for (const std::byte* at = memory.data(); at < end;) {
    const std::shared_ptr<Range> known = range_of(at);
    if (known == nullptr || known->access() != HostAccess::reads_and_writes) return false;
    at = known->end();
  }
  return true;
}

}  // namespace shunt::cuda
