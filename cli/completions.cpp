// shunt completions: prints completion scripts for bash, zsh and fish, generated from the descriptions of the commands.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "commands.h"
#include "files.h"
#include "options.h"
#include "output.h"
#include "usage.h"

namespace shunt::cli {
namespace {

struct Word {
  std::string name;  // "--tokens"
  std::string meaning;
};

std::vector<Word> options_of(const Command& command) {
  CommandLine line(fmt::format("shunt {}", command.name), std::string(command.summary));
  static_cast<void>(command.attach(line));
  std::vector<Word> words;
  for (const Option& option : line.options())
    if (!option.is_argument())
      for (const std::string& name : option.names()) words.push_back({name, option.meaning()});
  return words;
}

std::string_view first_word(std::string_view name) { return name.substr(0, name.find(' ')); }
std::string_view second_word(std::string_view name) {
  const std::size_t space = name.find(' ');
  return space == std::string_view::npos ? "" : name.substr(space + 1);
}

// The first words of commands, each once, in order.
std::vector<std::string_view> first_words() {
  std::vector<std::string_view> words;
  for (const Command& command : kCommands)
    if (std::ranges::find(words, first_word(command.name)) == words.end()) words.push_back(first_word(command.name));
  return words;
}

// The second words of the commands that begin with `first`.
std::string second_words(std::string_view first) {
  std::string words;
  for (const Command& command : kCommands)
    if (first_word(command.name) == first && !second_word(command.name).empty())
      words += fmt::format("{}{}", words.empty() ? "" : " ", second_word(command.name));
  return words;
}

std::string bash() {
  std::string cases;
  for (const Command& command : kCommands) {
    std::string options;
    for (const Word& word : options_of(command)) options += fmt::format("{}{}", options.empty() ? "" : " ", word.name);
    cases += fmt::format("    \"{}\") options=\"{}\" ;;\n", command.name, options);
  }
  std::string groups;
  for (const std::string_view first : first_words())
    if (const std::string second = second_words(first); !second.empty())
      groups += fmt::format("    {}) words=\"{}\" ;;\n", first, second);
  return fmt::format(R"(_shunt() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words="" options="" command=${{COMP_WORDS[1]}}
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "{} help --version" -- "$current")
    return
  fi
  case $command in
{}  esac
  if [[ -n $words && $COMP_CWORD -eq 2 ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  if [[ -n $words ]]; then command+=" ${{COMP_WORDS[2]}}"; fi
  case $command in
{}  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _shunt shunt
)",
                     fmt::join(first_words(), " "), groups, cases);
}

std::string zsh() { return "#compdef shunt\nautoload -U +X bashcompinit && bashcompinit\n" + bash(); }

std::string in_fish_quotes(std::string_view text) {
  std::string quoted = "\'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\'";
}

std::string fish() {
  std::string text;
  for (const Command& command : kCommands) {
    const std::string_view first = first_word(command.name);
    const std::string_view second = second_word(command.name);
    const std::string place =
        second.empty() ? "__fish_use_subcommand" : fmt::format("__fish_seen_subcommand_from {}", first);
    text += fmt::format("complete -c shunt -n '{}' -a {} -d {}\n", place, second.empty() ? first : second,
                        in_fish_quotes(command.summary));
    if (!second.empty()) text += fmt::format("complete -c shunt -n __fish_use_subcommand -a {}\n", first);
    const std::string_view last = second.empty() ? first : second;
    for (const Word& word : options_of(command))
      text += fmt::format("complete -c shunt -n '__fish_seen_subcommand_from {}' {} {} -d {}\n", last,
                          word.name.starts_with("--") ? "-l" : "-s", word.name.substr(word.name.find_first_not_of('-')),
                          in_fish_quotes(word.meaning));
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr Shell kShells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

struct CompletionsOptions {
  std::string shell;
  bool json = false;
};

Status execute(const CompletionsOptions& options) {
  for (const Shell& shell : kShells) {
    if (shell.name != options.shell) continue;
    return options.json ? print_json({{"shell", shell.name}, {"script", shell.script()}}) : print(shell.script());
  }
  refuse(fmt::format("no completions for \"{}\"; choose bash, zsh or fish", options.shell));
}

}  // namespace

Action completions(CommandLine& line) {
  auto options = std::make_shared<CompletionsOptions>();
  line.option("SHELL", options->shell, "bash, zsh or fish").required();
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
