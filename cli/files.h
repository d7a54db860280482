// The files that a command reads and writes, as its options declare them.
//
// It is wrong usage if an output is also an input or another output. This is checked between parsing and the work of
// each command. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shunt::cli {

class Files {
 public:
  // Called after the options are parsed. An empty path means that the option was not given.
  using Paths = std::function<std::vector<std::string>()>;

  // `name` is used in messages, such as "MODEL" or "--trace".
  void add_input(std::string name, Paths paths) { inputs_.push_back({std::move(name), std::move(paths)}); }
  void add_output(std::string name, Paths paths) { outputs_.push_back({std::move(name), std::move(paths)}); }
  // Refuses (command_line.h) if an output is the same file as an input or another output, also through links. A command
  // that learns of more files while it works adds them, and calls this again before it writes.
  void check() const;

 private:
  struct Declared {
    std::string name;
    Paths paths;
  };
  std::vector<Declared> inputs_;
  std::vector<Declared> outputs_;
};

}  // namespace shunt::cli
