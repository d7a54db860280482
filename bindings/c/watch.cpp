#include "watch.h"

#include <atomic>
#include <memory>

#include "report.h"

// NOLINTBEGIN(readability-identifier-naming): a name of shunt.h
struct shunt_interrupt {
  std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
};
// NOLINTEND(readability-identifier-naming)

// A signal handler may set the flag.
static_assert(std::atomic<bool>::is_always_lock_free);

namespace shunt::c {

Watch watch_of(shunt_on_progress on_progress, void* user, const shunt_interrupt* interrupt) {
  Watch watch;
  // The function is copied to every place that reads the flag, so it also keeps the flag alive.
  const std::shared_ptr<const std::atomic<bool>> flag = interrupt == nullptr ? nullptr : interrupt->flag;
  watch.interrupted = flag.get();
  if (on_progress != nullptr || flag != nullptr)
    watch.on_progress = [on_progress, user, flag](const Progress& progress) {
      if (on_progress == nullptr) return;
      // NOLINTBEGIN(bugprone-suspicious-stringview-data-usage): the texts are literals, so that a 0 follows
      const shunt_progress its_progress{.kind = static_cast<shunt_progress_kind>(progress.kind),
                                        .name = name_of(progress.kind).data(),
                                        .unit = unit_of(progress.kind).data(),
                                        .done = progress.done,
                                        .total = progress.total,
                                        .fraction = progress.fraction()};
      // NOLINTEND(bugprone-suspicious-stringview-data-usage)
      on_progress(user, &its_progress);
    };
  return watch;
}

}  // namespace shunt::c

shunt_interrupt* shunt_interrupt_new(void) try { return std::make_unique<shunt_interrupt>().release(); }
SHUNT_C_END(nullptr)
void shunt_interrupt_free(shunt_interrupt* interrupt) { const std::unique_ptr<shunt_interrupt> ended(interrupt); }
void shunt_interrupt_set(shunt_interrupt* interrupt) {
  if (interrupt != nullptr) interrupt->flag->store(true);
}
void shunt_interrupt_clear(shunt_interrupt* interrupt) {
  if (interrupt != nullptr) interrupt->flag->store(false);
}
int shunt_interrupt_is_set(const shunt_interrupt* interrupt) {
  return interrupt != nullptr && interrupt->flag->load() ? 1 : 0;
}
