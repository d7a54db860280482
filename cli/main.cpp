// shunt: the program. Exit codes: 0 done, 1 an error while running, 2 wrong usage, 130 ended by Ctrl-C.
#include <csignal>

#include "command.h"
#include "interrupt.h"

namespace shunt::cli {

#define SHUNT_COMMAND(function, name, summary, example) Action function(CLI::App& command);
#include "commands.def"

namespace {

constexpr int kOk = 0;
constexpr int kRunTimeError = 1;
constexpr int kUsage = 2;
constexpr int kInterrupted = 130;

int run_program(int argc, char** argv) {
  CLI::App app("Runs language models and tensor graphs on whatever processors this machine has.", "shunt");
  app.set_version_flag("--version", "shunt " SHUNT_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
#define SHUNT_COMMAND(function, name, summary, example)                   \
  {                                                                       \
    CLI::App* command = app.add_subcommand(name, summary);                \
    command->footer("Example:\n  " example);                              \
    actions.emplace_back(command, function(*command));                    \
  }
#include "commands.def"
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  for (const auto& [command, action] : actions) {
    if (!command->parsed()) continue;
    if (const Status status = action(); !status) {
      say(fmt::format("shunt: {}", status.error().message));
      return kRunTimeError;
    }
  }
  return was_interrupted() ? kInterrupted : kOk;
}

}  // namespace
}  // namespace shunt::cli

int main(int argc, char** argv) {
  // A closed pipe is an error of the write, not the end of the process.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  try {
    return shunt::cli::run_program(argc, argv);
  } catch (const std::exception& error) {
    shunt::cli::say(std::string("shunt: ") + error.what());
    return 1;
  }
}
