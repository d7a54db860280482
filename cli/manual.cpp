// shunt manual: the manual page, made from the commands' own descriptions.
#include <fmt/format.h>

#include "commands.h"
#include "files.h"
#include "options.h"
#include "output.h"
#include "usage.h"

namespace shunt::cli {
namespace {

// Text as roff takes it: no escapes, no hyphens where dashes are meant, no line that begins with a request.
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

std::string paragraph_of(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : names_of(option) + value_of(option);
  return fmt::format(".TP\n.B {}\n{}\n", as_roff(name), as_roff(option.get_description()));
}

std::string section_of(const Command& command) {
  CommandLine app(std::string(command.summary), fmt::format("shunt {}", command.name));
  static_cast<void>(command.attach_to(app));
  std::string text = fmt::format(".SS shunt {}\n{}.\n", as_roff(command.name), as_roff(command.summary));
  for (const CLI::Option* option : app.get_options(nullptr))
    if (option != app.get_help_ptr()) text += paragraph_of(*option);
  return text + fmt::format(".PP\n.EX\n{}\n.EE\n", as_roff(command.example));
}

std::string page() {
  std::string text =
      ".TH SHUNT 1 \"\" \"shunt " SHUNT_VERSION
      "\"\n.SH NAME\nshunt \\- run tensor graphs and language models on whatever processors a machine has\n"
      ".SH SYNOPSIS\n.B shunt\nCOMMAND ...\n.SH COMMANDS\n";
  for (const Command& command : kCommands) text += section_of(command);
  return text +
         ".SH EXIT STATUS\n0 done, 1 an error while running, 2 wrong usage, 130 ended by Ctrl\\-C.\n"
         "Data goes to standard output, words for people to standard error.\n";
}

Json in_json(const Command& command) {
  CommandLine app(std::string(command.summary), fmt::format("shunt {}", command.name));
  static_cast<void>(command.attach_to(app));
  Json options = Json::array();
  for (const CLI::Option* option : app.get_options(nullptr)) {
    if (option == app.get_help_ptr()) continue;
    options.push_back({{"names", option->get_positional() ? option->get_name(true) : names_of(*option)},
                       {"value", option->get_positional() ? "" : value_of(*option)},
                       {"meaning", option->get_description()}});
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

Action manual(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  add_json(app, *json);
  return [json] { return execute(*json); };
}

}  // namespace shunt::cli
