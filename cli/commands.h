// The rows of commands.def as values.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "command.h"

namespace shunt::cli {

struct Command {
  Action (*attach)(CLI::App& app);
  std::string_view name;
  std::string_view summary;
  std::string_view example;

  // Adds the options and the example; answers what to do.
  [[nodiscard]] Action attach_to(CLI::App& app) const {
    app.footer(fmt::format("Example:\n  {}", example));
    return attach(app);
  }
};

inline constexpr Command kCommands[] = {
#define SHUNT_COMMAND(function, name, summary, example) {function, name, summary, example},
#include "commands.def"
};

}  // namespace shunt::cli
