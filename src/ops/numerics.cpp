#include "shunt/numerics.h"

#include <fmt/format.h>

#include "base/nearest.h"

namespace shunt {
namespace {

constexpr std::string_view kNames[] = {
#define SHUNT_NAME(numerics, name, meaning) name,
    SHUNT_NUMERICS(SHUNT_NAME)
#undef SHUNT_NAME
};

}  // namespace

std::string_view name_of(Numerics numerics) { return kNames[static_cast<std::size_t>(numerics)]; }

Result<Numerics> numerics_from_name(std::string_view name) {
  SHUNT_TRY_ASSIGN(const std::size_t place, place_of_name("numerics", name, kNames));
  return static_cast<Numerics>(place);
}

std::string describe_numerics() {
  std::string text;
#define SHUNT_DESCRIBE(numerics, name, meaning) \
  text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, meaning);
  SHUNT_NUMERICS(SHUNT_DESCRIBE)
#undef SHUNT_DESCRIBE
  return text;
}

}  // namespace shunt
