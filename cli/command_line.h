// Declares and parses the options, flags and arguments of a command.
//
// CLI11 does the parsing. Only command_line.cpp includes its header, which takes longer to compile than any command.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "files.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's own name
class App;
class Option;
}  // namespace CLI

namespace shunt::cli {

// A mistake in how a command is called.
class WrongUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reports wrong usage that shows only after parsing, or in a value.
[[noreturn]] inline void refuse(const std::string& message) { throw WrongUsage(message); }

// Returns what is wrong with a value, or an empty text.
using Check = std::function<std::string(const std::string& value)>;

// A handle to one option, flag or argument. Valid as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  // Each returns this option.
  Option required() const;
  Option check(Check check) const;
  // Sets what --help calls the value, such as "FILE", and the heading under which it lists the option.
  Option value_name(const std::string& name) const;
  Option group(const std::string& heading) const;
  Option excludes(const Option& other) const;

  // Arguments are positional; options begin with a dash.
  [[nodiscard]] bool is_argument() const;
  [[nodiscard]] bool is_required() const;
  [[nodiscard]] bool is_help() const;
  [[nodiscard]] bool takes_value() const;
  [[nodiscard]] bool was_given() const;
  // "-n" and "--tokens", or the single name of an argument.
  [[nodiscard]] std::vector<std::string> names() const;
  // "N"; empty if the option takes no value.
  [[nodiscard]] std::string value_name() const;
  [[nodiscard]] std::string meaning() const;
  [[nodiscard]] std::string group() const;

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  // `name` is the command's, as in "shunt run".
  CommandLine(const std::string& name, const std::string& summary);
  ~CommandLine();

  // Declares an option or argument. `names` has the form "-n,--tokens", or "MODEL" for an argument. REQUIRES: `value`
  // outlives the last call of parse().
  Option option(const std::string& names, std::string& value, const std::string& meaning);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& meaning);
  // Takes several values: the option may be repeated, the argument may have several words.
  Option option(const std::string& names, std::vector<std::string>& values, const std::string& meaning);
  // `take` receives the value, or all values, after the check, and may refuse() them.
  Option option(const std::string& names, const std::function<void(const std::string&)>& take,
                const std::string& meaning);
  Option option(const std::string& names, const std::function<void(const std::vector<std::string>&)>& take,
                const std::string& meaning);
  Option flag(const std::string& names, bool& value, const std::string& meaning);
  // Declares a flag with an optional number, as in --audit and --audit=4. The default is `number`.
  Option flag(const std::string& name, std::int64_t number, const std::function<void(std::int64_t)>& take,
              const std::string& meaning);
  // Declares an option or argument that names a file to read, or to write (files.h).
  Option input(const std::string& names, std::string& path, const std::string& meaning);
  Option output(const std::string& names, std::string& path, const std::string& meaning);
  Files files;

  // Sets the declared values from the words, then checks the files. Returns false if help is asked for. Throws
  // WrongUsage.
  [[nodiscard]] bool parse(std::span<const std::string> words);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string summary() const;
  // All options, --help included, in the order of declaration.
  [[nodiscard]] std::vector<Option> options() const;
  // Finds an option by one of its names.
  [[nodiscard]] std::optional<Option> find(const std::string& name) const;
  // The headings of options, in order.
  [[nodiscard]] std::vector<std::string> groups() const;

 private:
  Option file(const std::string& names, std::string& path, const std::string& meaning);

  std::unique_ptr<CLI::App> parser_;
};

}  // namespace shunt::cli
