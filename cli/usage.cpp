#include "usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace shunt::cli {
namespace {

constexpr std::size_t kNameWidth = 18;

// The name, and the meaning beside it, wrapped to 100 columns.
std::string line_of(const std::string& name, std::string_view meaning) {
  constexpr std::size_t kMostColumns = 100;
  std::string lines = fmt::format("  {:<{}}  ", name, kNameWidth);
  std::size_t room = kMostColumns - std::min(kMostColumns, lines.size());
  while (meaning.size() > room) {
    const std::size_t space = meaning.rfind(' ', room);
    if (space == std::string_view::npos) break;
    lines += fmt::format("{}\n{:{}}", meaning.substr(0, space), "", kNameWidth + 4);
    meaning.remove_prefix(space + 1);
    room = kMostColumns - kNameWidth - 4;
  }
  return fmt::format("{}{}\n", lines, meaning);
}

}  // namespace

std::string names_and_value(const Option& option) {
  const std::string value = option.value_name();
  return fmt::format("{}{}{}", fmt::join(option.names(), ", "), option.is_argument() || value.empty() ? "" : " ",
                     option.is_argument() ? "" : value);
}

std::string help_page(const CommandLine& line, std::string_view example) {
  std::string usage = fmt::format("{}\n\nUsage: {}", line.summary(), line.name());
  std::string arguments;
  for (const Option& option : line.options()) {
    if (!option.is_argument()) continue;
    const std::string name = names_and_value(option);
    usage += fmt::format(fmt::runtime(option.is_required() ? " {}" : " [{}]"), name);
    arguments += line_of(name, option.meaning());
  }
  std::string page = usage + " [OPTIONS]\n";
  if (!arguments.empty()) page += "\n" + arguments;
  for (const std::string& group : line.groups()) {
    page += fmt::format("\n{}:\n", group);
    for (const Option& option : line.options())
      if (!option.is_argument() && option.group() == group && !option.is_help())
        page += line_of(names_and_value(option), option.meaning());
  }
  return fmt::format("{}\nExample:\n  {}\n", page, example);
}

}  // namespace shunt::cli
