// Progress and interruption of long calls.
//
// A long call loads a model, copies its weights to a device, measures devices, reads a prompt, generates text or runs a
// computation. It reports its progress on the thread that made it. Between its steps it checks a flag, which any thread
// or a signal handler may set. Once the flag is set, the call ends with Code::interrupted; a generation ends with
// StopReason::interrupted and the text so far. The flag stays set until its owner clears it.
// Plain values. The flag must outlive everything that refers to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "shunt/status.h"
#include "shunt/tables.h"

namespace shunt {

enum class ProgressKind : std::uint8_t {
#define SHUNT_PROGRESS_KIND(kind, name, unit) kind,
  SHUNT_PROGRESS_KINDS(SHUNT_PROGRESS_KIND)
#undef SHUNT_PROGRESS_KIND
};
// "reading the model"
[[nodiscard]] std::string_view name_of(ProgressKind kind);
// "bytes"
[[nodiscard]] std::string_view unit_of(ProgressKind kind);

struct Progress {
  ProgressKind kind = ProgressKind::reading_model;
  std::uint64_t done = 0;   // in unit_of(kind)
  std::uint64_t total = 0;  // at least 1

  [[nodiscard]] double fraction() const { return static_cast<double>(done) / static_cast<double>(total); }
};

struct Watch {
  // Called on the thread that made the long call. It must not use that call's object.
  std::function<void(const Progress& progress)> on_progress = {};
  // Any thread or a signal handler may set it, to end the call after its current step. Null: no interruption.
  const std::atomic<bool>* interrupted = nullptr;

  [[nodiscard]] bool is_interrupted() const { return interrupted != nullptr && interrupted->load(); }
  // Errors: interrupted, once the flag is set: "`what` was interrupted".
  [[nodiscard]] Status check(std::string_view what) const;
  // Calls on_progress, unless `total` is 0.
  void report(ProgressKind kind, std::uint64_t done, std::uint64_t total) const;
};

}  // namespace shunt
