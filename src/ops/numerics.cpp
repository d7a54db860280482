#include "shunt/numerics.h"

#include <fmt/format.h>

#include <vector>

#include "base/nearest.h"

namespace shunt {
namespace {

struct Row {
  std::string_view name;
  std::string_view meaning;
};

constexpr Row kNumerics[] = {
#define SHUNT_ROW(numerics, name, meaning) {name, meaning},
    SHUNT_NUMERICS(SHUNT_ROW)
#undef SHUNT_ROW
};

}  // namespace

std::string_view name_of(Numerics numerics) { return kNumerics[static_cast<std::size_t>(numerics)].name; }

Result<Numerics> numerics_from_name(std::string_view name) {
  std::string known;
  std::vector<std::string_view> names;
  for (std::size_t index = 0; index < std::size(kNumerics); ++index) {
    if (kNumerics[index].name == name) return static_cast<Numerics>(index);
    known += fmt::format(" {}", kNumerics[index].name);
    names.push_back(kNumerics[index].name);
  }
  return fail(Code::invalid,
              fmt::format("unknown numerics \"{}\"{}; choose from:{}", name, did_you_mean(name, names), known));
}

std::string describe_numerics() {
  std::string text;
  for (const Row& row : kNumerics) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", row.name, row.meaning);
  return text;
}

}  // namespace shunt
