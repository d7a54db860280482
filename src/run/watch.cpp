#include "shunt/watch.h"

#include <fmt/format.h>

namespace shunt {

std::string_view name_of(ProgressKind kind) {
  constexpr std::string_view kNames[] = {
#define SHUNT_PROGRESS_KIND(kind, name, unit) name,
      SHUNT_PROGRESS_KINDS(SHUNT_PROGRESS_KIND)
#undef SHUNT_PROGRESS_KIND
  };
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view unit_of(ProgressKind kind) {
  constexpr std::string_view kUnits[] = {
#define SHUNT_PROGRESS_KIND(kind, name, unit) unit,
      SHUNT_PROGRESS_KINDS(SHUNT_PROGRESS_KIND)
#undef SHUNT_PROGRESS_KIND
  };
  return kUnits[static_cast<std::size_t>(kind)];
}

Status Watch::check(std::string_view what) const {
  if (!is_interrupted()) return {};
  return fail(Code::interrupted, fmt::format("{} was interrupted", what));
}

void Watch::report(ProgressKind kind, std::uint64_t done, std::uint64_t total) const {
  if (on_progress && total != 0) on_progress({.kind = kind, .done = done, .total = total});
}

}  // namespace shunt
