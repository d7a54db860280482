#include "usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/nearest.h"

namespace shunt::cli {
namespace {

constexpr std::size_t kNameWidth = 18;

// The name, and the meaning beside it in lines that a terminal of 100 columns shows whole.
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

// The option whose name, as the parser gives it, begins `text`.
const CLI::Option* find_option_at(const CLI::App& app, std::string_view text) {
  for (const CLI::Option* option : app.get_options(nullptr)) {
    const std::string name = option->get_name();
    if (!text.starts_with(name)) continue;
    const std::string_view rest = text.substr(name.size());
    if (rest.empty() || rest.find_first_of(" :,") == 0) return option;
  }
  return nullptr;
}

// The parser knows an option by one name; people may have typed the other.
std::string with_all_names(const CLI::App& app, const std::string& message) {
  const CLI::Option* option = find_option_at(app, message);
  if (option == nullptr || option->get_positional()) return message;
  return names_of(*option) + message.substr(option->get_name().size());
}

// Words that nothing takes, in their order. After "--" every word is an argument.
std::string describe_extra(const CLI::App& app, std::vector<std::string> words) {
  const auto dashes = std::ranges::find(words, "--");
  const auto option =
      std::find_if(words.begin(), dashes, [](const std::string& word) { return word.starts_with('-'); });
  if (option != dashes) {
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options(nullptr))
      for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
    return fmt::format("no option is named {}{}; put -- before text that begins with a dash", name,
                       did_you_mean(name, names));
  }
  if (dashes != words.end()) words.erase(dashes);
  return fmt::format("\"{}\" is one argument too many; put text of several words in quotes", words.front());
}

// Too few or too many values of an option.
std::string describe_mismatch(const CLI::App& app, const std::string& message) {
  const CLI::Option* option = find_option_at(app, message);
  if (option == nullptr) return message;
  if (option->count() > 1) return fmt::format("{} is given {} times", names_of(*option), option->count());
  return fmt::format("{} needs a value:{}", names_of(*option), value_of(*option));
}

}  // namespace

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += fmt::format("{}-{}", names.empty() ? "" : ", ", name);
  for (const std::string& name : option.get_lnames()) names += fmt::format("{}--{}", names.empty() ? "" : ", ", name);
  return names;
}

// Checks add a colon and their own words to a type's name.
std::string value_of(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  const std::string type = option.get_type_name();
  return " " + type.substr(0, type.find(':'));
}

std::string help_page(const CLI::App& app) {
  std::string usage = fmt::format("{}\n\nUsage: {}", app.get_description(), app.get_name());
  std::string arguments;
  for (const CLI::Option* option : app.get_options(nullptr)) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    usage += fmt::format(fmt::runtime(option->get_required() ? " {}" : " [{}]"), name);
    arguments += line_of(name, option->get_description());
  }
  std::string page = usage + " [OPTIONS]\n";
  if (!arguments.empty()) page += "\n" + arguments;
  for (const std::string& group : app.get_groups()) {
    page += fmt::format("\n{}:\n", group);
    for (const CLI::Option* option : app.get_options(nullptr))
      if (option->nonpositional() && option->get_group() == group && option != app.get_help_ptr())
        page += line_of(names_of(*option) + value_of(*option), option->get_description());
  }
  return fmt::format("{}\n{}\n", page, app.get_footer());
}

std::string describe_mistake(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return describe_extra(app, app.remaining());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return describe_mismatch(app, error.what());
  return with_all_names(app, error.what());
}

}  // namespace shunt::cli
