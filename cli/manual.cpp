// shunt manual: prints the manual page, generated from the descriptions of the commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "files.h"
#include "options.h"
#include "output.h"
#include "usage.h"

namespace shunt::cli {
namespace {

// Escapes text for roff: backslashes, dashes that are not hyphens, and lines that would begin a request.
std::string as_roff(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\')
      result += "\\e";
    else if (letter == '-')
      result += "\\-";
    else if ((letter == '.' || letter == '\'') && (result.empty() || result.back() == '\n'))
      result += fmt::format("\\&{}", letter);
    else
      result += letter;
  }
  return result;
}

std::string paragraph_of(const Option& option) {
  return fmt::format(".TP\n.B {}\n{}\n", as_roff(names_and_value(option)), as_roff(option.meaning()));
}

std::string section_of(const Command& command) {
  CommandLine line(fmt::format("shunt {}", command.name), std::string(command.summary));
  static_cast<void>(command.attach(line));
  std::string text = fmt::format(".SS shunt {}\n{}.\n", as_roff(command.name), as_roff(command.summary));
  for (const Option& option : line.options())
    if (!option.is_help()) text += paragraph_of(option);
  return text + fmt::format(".PP\n.EX\n{}\n.EE\n", as_roff(command.example));
}

std::string page() {
  std::string text = ".TH SHUNT 1 \"\" \"shunt " SHUNT_VERSION
                     "\"\n.SH NAME\nshunt \\- run tensor graphs and language models on all processors of a machine\n"
                     ".SH SYNOPSIS\n.B shunt\nCOMMAND ...\n.SH COMMANDS\n";
  for (const Command& command : kCommands) text += section_of(command);
  return text +
         ".SH EXIT STATUS\n0 success, 1 an error while running, 2 wrong usage, 130 ended by Ctrl\\-C.\n"
         "Data goes to standard output, messages go to standard error.\n";
}

Json in_json(const Command& command) {
  CommandLine line(fmt::format("shunt {}", command.name), std::string(command.summary));
  static_cast<void>(command.attach(line));
  Json options = Json::array();
  for (const Option& option : line.options()) {
    if (option.is_help()) continue;
    options.push_back({{"names", fmt::format("{}", fmt::join(option.names(), ", "))},
                       {"value", option.is_argument() ? "" : option.value_name()},
                       {"meaning", option.meaning()}});
  }
  return {{"name", command.name}, {"summary", command.summary}, {"options", options}, {"example", command.example}};
}

Status execute(bool json) {
  if (!json) return print(page());
  Json commands = Json::array();
  for (const Command& command : kCommands) commands.push_back(in_json(command));
  return print_json({{"commands", commands}});
}

}  // namespace

Action manual(CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  add_json(line, *json);
  return [json] { return execute(*json); };
}

}  // namespace shunt::cli
