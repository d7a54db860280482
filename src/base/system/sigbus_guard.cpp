#include "base/system/sigbus_guard.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace shunt {
namespace {

constexpr std::size_t kSlots = 1024;
constexpr std::size_t kNoSlot = kSlots;
constexpr std::uintptr_t kFree = 0;
constexpr std::uintptr_t kClaimed = 1;  // being filled; no page begins here

struct Slot {
  std::atomic<std::uintptr_t> begin{kFree};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> broken{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The handler's data; constant-initialised, since a signal can arrive before any constructor runs.
struct Registry {
  std::array<Slot, kSlots> slots{};
  std::uintptr_t page_bytes = 0;
  struct sigaction previous = {};
};
constinit Registry registry;

bool replace_page(std::uintptr_t address) {
  for (Slot& slot : registry.slots) {
    const std::uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin <= kClaimed || address < begin || address >= slot.end.load(std::memory_order_relaxed)) continue;
    const std::uintptr_t page = address & ~(registry.page_bytes - 1);
    slot.broken.store(true, std::memory_order_release);
    // mmap is a single system call here and takes no lock of the C library.
    return mmap(reinterpret_cast<void*>(page), registry.page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                -1, 0) != MAP_FAILED;
  }
  return false;
}

void call_previous(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous = registry.previous;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
    // A fault cannot be ignored: it would recur forever.
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
    raise(signal);
  }
}

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool handled = info->si_code == BUS_ADRERR && replace_page(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (!handled) call_previous(signal, info, context);
  errno = saved;
}

bool install() {
  registry.page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(SIGBUS, &action, &registry.previous) == 0;
}

}  // namespace

Result<SigbusGuard> SigbusGuard::watch(std::span<const std::byte> mapping) {
  static const bool installed = install();
  if (!installed) return fail(Code::internal, "cannot install a handler for SIGBUS");
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = registry.slots[i];
    std::uintptr_t expected = kFree;
    if (!slot.begin.compare_exchange_strong(expected, kClaimed)) continue;
    const std::uintptr_t pages = (mapping.size() + registry.page_bytes - 1) / registry.page_bytes;
    slot.broken.store(false, std::memory_order_relaxed);
    slot.end.store(begin + pages * registry.page_bytes, std::memory_order_relaxed);
    slot.begin.store(begin, std::memory_order_release);
    return SigbusGuard(i);
  }
  return fail(Code::out_of_memory, fmt::format("{} files are mapped already; close some", kSlots));
}

SigbusGuard::SigbusGuard(SigbusGuard&& other) noexcept : slot_(std::exchange(other.slot_, kNoSlot)) {}

SigbusGuard::~SigbusGuard() {
  if (slot_ != kNoSlot) registry.slots[slot_].begin.store(kFree, std::memory_order_release);
}

bool SigbusGuard::broken() const {
  return slot_ != kNoSlot && registry.slots[slot_].broken.load(std::memory_order_acquire);
}

}  // namespace shunt
