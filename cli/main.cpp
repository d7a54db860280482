// The program shunt. Exit codes: 0 success, 1 an error while running, 2 wrong usage, 130 ended by Ctrl-C (143 by
// SIGTERM). If the reader of stdout closes it early, the program ends quietly with 0.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/system/whole_file.h"
#include "command.h"
#include "commands.h"
#include "files.h"
#include "habits.h"
#include "interrupt.h"
#include "output.h"
#include "usage.h"

namespace shunt::cli {
namespace {

constexpr int kDone = 0;
constexpr int kRunTimeError = 1;
constexpr int kWrongUsage = 2;

std::string usage(std::string_view group) {
  std::string text = fmt::format("Usage: shunt {}COMMAND ...\n\n", group);
  for (const Command& command : kCommands)
    if (command.name.starts_with(group)) text += fmt::format("  {:<12} {}\n", command.name, command.summary);
  text += "\nshunt COMMAND --help describes a command, with an example; shunt --version prints the version.\n";
  if (group.empty())
    text += "Data goes to stdout, messages go to stderr. Exit codes: 0 success, 1 error, 2 wrong usage, 130 Ctrl-C.\n";
  return text;
}

// Finds the command that the words begin with.
const Command* find_command(std::span<const std::string> words) {
  for (const Command& command : kCommands) {
    const std::size_t space = command.name.find(' ');
    if (command.name.substr(0, space) != words[0]) continue;
    if (space == std::string_view::npos) return &command;
    if (words.size() > 1 && command.name.substr(space + 1) == words[1]) return &command;
  }
  return nullptr;
}

// The names of the commands that begin with `group`.
std::vector<std::string_view> names_in(std::string_view group) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands)
    if (command.name.starts_with(group)) names.push_back(command.name);
  return names;
}

// Returns "bench " if the name of some command is "bench" and another word, else an empty text.
std::string group_of(std::string_view word) {
  const std::string group = fmt::format("{} ", word);
  return std::ranges::any_of(kCommands, [&](const Command& command) { return command.name.starts_with(group); })
             ? group
             : std::string();
}

int report(const Status& status) {
  if (reader_left()) return kDone;
  if (!status) complain(status.error().message);
  if (was_interrupted()) return interrupt_exit_code();
  return status ? kDone : kRunTimeError;
}

// `words` follow the name of the command.
int run_command(const Command& command, std::span<const std::string> words) {
  const std::string name = fmt::format("shunt {}", command.name);
  CommandLine line(name, std::string(command.summary));
  const Action action = command.attach(line);
  try {
    if (!line.parse(in_our_words(line, words))) return report(print(help_page(line, command.example)));
    return report(action());
  } catch (const WrongUsage& mistake) {
    complain(fmt::format("{}\nSee {} --help.", mistake.what(), name));
    return kWrongUsage;
  }
}

// Handles all that is not a command: help, the version, or a mistake.
int run_other(std::span<const std::string> words) {
  const std::string word = words.empty() ? "" : words[0];
  if (word == "--version") return report(print("shunt " SHUNT_VERSION "\n"));
  if (word == "--help" || word == "-h") return report(print(usage("")));
  const std::string group = word.empty() ? "" : group_of(word);
  const std::string second = words.size() > 1 ? words[1] : "";
  if (!group.empty() && (second == "--help" || second == "-h")) return report(print(usage(group)));
  if (word.empty() || (!group.empty() && second.empty())) {
    complain("a command is missing");
  } else {
    const std::string name = group + (group.empty() ? word : second);
    complain(fmt::format("no command is named {}{}", in_quotes(name), did_you_mean(name, names_in(group))));
    say(fmt::format("Commands: {}", fmt::join(names_in(group), ", ")));
    say(fmt::format("See shunt {}--help.", group));
    return kWrongUsage;
  }
  say("\n" + usage(group));
  return kWrongUsage;
}

int run_program(std::vector<std::string> words) {
  // "help bench model" means "bench model --help".
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const Command* command = words.empty() ? nullptr : find_command(words);
  if (command == nullptr) return run_other(words);
  return run_command(*command, std::span(words).subspan(command->name.contains(' ') ? 2 : 1));
}

// Prints a fixed message if there is no memory for this one.
int end_with(const char* words) noexcept {
  try {
    complain(words);
  } catch (...) {
    complain_without_memory();
  }
  return kRunTimeError;
}

// Memory may run out where nothing can be thrown: in the destructors of the JSON library, which allocate, and in
// callbacks from drivers.
[[noreturn]] void end_without_memory() noexcept {
  remove_unfinished_files();
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    complain_without_memory();
    _exit(kRunTimeError);
  } catch (...) {
    std::abort();
  }
  std::abort();
}

// Opens placeholders for closed standard files. Otherwise a driver's first file would get such a number, and our output
// would go there. A placeholder refuses reads or writes.
void occupy_closed_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(file, F_GETFD) == -1) static_cast<void>(open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace
}  // namespace shunt::cli

int main(int argc, char** argv) {
  shunt::cli::occupy_closed_standard_files();
  // Writing to a closed pipe is an error of the write; it must not end the process.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  shunt::cli::leave_no_files_at_signals();
  std::set_terminate(shunt::cli::end_without_memory);
  try {
    return shunt::cli::run_program({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    return shunt::cli::end_with("out of memory");
  } catch (const std::exception& error) {
    return shunt::cli::end_with(error.what());
  }
}
