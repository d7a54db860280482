#include "command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/nearest.h"

namespace shunt::cli {
namespace {

// "--output" for "-o,--output".
std::string longest_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

// Finds the option whose name, as CLI11 spells it, begins `text`.
CLI::Option* find_option_at(CLI::App& parser, std::string_view text) {
  for (CLI::Option* option : parser.get_options({})) {
    const std::string name = option->get_name();
    if (!text.starts_with(name)) continue;
    const std::string_view rest = text.substr(name.size());
    if (rest.empty() || rest.find_first_of(" :,") == 0) return option;
  }
  return nullptr;
}

std::string names_of(const Option& option) { return fmt::format("{}", fmt::join(option.names(), ", ")); }

// CLI11 reports one name of an option, and the user may have typed the other: shows both.
std::string with_all_names(CLI::App& parser, const std::string& message) {
  CLI::Option* const option = find_option_at(parser, message);
  if (option == nullptr || option->get_positional()) return message;
  return names_of(Option(option)) + message.substr(option->get_name().size());
}

// Describes the first word that nothing takes. After "--" every word is an argument.
std::string describe_extra(CLI::App& parser) {
  std::vector<std::string> words = parser.remaining();
  const auto dashes = std::ranges::find(words, "--");
  const auto option =
      std::find_if(words.begin(), dashes, [](const std::string& word) { return word.starts_with('-'); });
  if (option != dashes) {
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> names;
    for (const CLI::Option* known : parser.get_options({}))
      for (const std::string& long_name : known->get_lnames()) names.push_back("--" + long_name);
    return fmt::format("no option is named {}{}; put -- before text that begins with a dash", name,
                       did_you_mean(name, names));
  }
  if (dashes != words.end()) words.erase(dashes);
  return fmt::format("unexpected argument \"{}\"; put a text of several words in quotes", words.front());
}

// Describes too few or too many values of an option.
std::string describe_mismatch(CLI::App& parser, const std::string& message) {
  CLI::Option* const found = find_option_at(parser, message);
  if (found == nullptr) return message;
  const Option option(found);
  if (found->count() > 1) return fmt::format("{} is given {} times; give it once", names_of(option), found->count());
  return fmt::format("{} needs a value: {}", names_of(option), option.value_name());
}

}  // namespace

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::check(Check check) const {
  option_->check(std::move(check));
  return *this;
}

Option Option::value_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Option Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

bool Option::is_argument() const { return option_->get_positional(); }
bool Option::is_required() const { return option_->get_required(); }
bool Option::is_help() const { return option_->check_name("--help"); }
bool Option::takes_value() const { return option_->get_type_size() != 0 && option_->get_expected_min() > 0; }
bool Option::was_given() const { return option_->count() > 0; }

std::vector<std::string> Option::names() const {
  if (is_argument()) return {option_->get_name(true)};
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}

// Checks append a colon and their own text to the type's name.
std::string Option::value_name() const {
  if (option_->get_type_size() == 0) return {};
  const std::string type = option_->get_type_name();
  return type.substr(0, type.find(':'));
}

std::string Option::meaning() const { return option_->get_description(); }
std::string Option::group() const { return option_->get_group(); }

CommandLine::CommandLine(const std::string& name, const std::string& summary)
    : parser_(std::make_unique<CLI::App>(summary, name)) {}
CommandLine::~CommandLine() = default;

Option CommandLine::option(const std::string& names, std::string& value, const std::string& meaning) {
  return Option(parser_->add_option(names, value, meaning));
}

Option CommandLine::option(const std::string& names, std::optional<std::string>& value, const std::string& meaning) {
  return Option(parser_->add_option(names, value, meaning));
}

Option CommandLine::option(const std::string& names, std::vector<std::string>& values, const std::string& meaning) {
  return option(names, [&values](const std::vector<std::string>& given) { values = given; }, meaning);
}

Option CommandLine::option(const std::string& names, const std::function<void(const std::string&)>& take,
                           const std::string& meaning) {
  return Option(parser_->add_option_function<std::string>(names, take, meaning));
}

Option CommandLine::option(const std::string& names, const std::function<void(const std::vector<std::string>&)>& take,
                           const std::string& meaning) {
  CLI::Option* const option = parser_->add_option_function<std::vector<std::string>>(names, take, meaning);
  if (!option->get_positional()) option->allow_extra_args(false);
  return Option(option);
}

Option CommandLine::flag(const std::string& names, bool& value, const std::string& meaning) {
  return Option(parser_->add_flag(names, value, meaning));
}

Option CommandLine::flag(const std::string& name, std::int64_t number, const std::function<void(std::int64_t)>& take,
                         const std::string& meaning) {
  return Option(parser_->add_flag_function(fmt::format("{}{{{}}}", name, number), take, meaning));
}

Option CommandLine::input(const std::string& names, std::string& path, const std::string& meaning) {
  files.add_input(longest_name(names), [&path] { return std::vector{path}; });
  return file(names, path, meaning);
}

Option CommandLine::output(const std::string& names, std::string& path, const std::string& meaning) {
  files.add_output(longest_name(names), [&path] { return std::vector{path}; });
  return file(names, path, meaning);
}

Option CommandLine::file(const std::string& names, std::string& path, const std::string& meaning) {
  Option made = option(names, path, meaning);
  if (!made.is_argument()) made.value_name("FILE");
  return made;
}

bool CommandLine::parse(std::span<const std::string> words) {
  try {
    parser_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success&) {
    return false;
  } catch (const CLI::ExtrasError&) {
    refuse(describe_extra(*parser_));
  } catch (const CLI::ArgumentMismatch& error) {
    refuse(describe_mismatch(*parser_, error.what()));
  } catch (const CLI::ParseError& error) {
    refuse(with_all_names(*parser_, error.what()));
  }
  files.check();
  return true;
}

std::string CommandLine::name() const { return parser_->get_name(); }
std::string CommandLine::summary() const { return parser_->get_description(); }

std::vector<Option> CommandLine::options() const {
  std::vector<Option> options;
  for (CLI::Option* option : parser_->get_options({})) options.emplace_back(option);
  return options;
}

std::optional<Option> CommandLine::find(const std::string& name) const {
  CLI::Option* const option = parser_->get_option_no_throw(name);
  return option == nullptr ? std::nullopt : std::optional(Option(option));
}

std::vector<std::string> CommandLine::groups() const { return parser_->get_groups(); }

}  // namespace shunt::cli
