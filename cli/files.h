// Which files a command reads and which it writes, as its options declare them.
//
// An output that is one of the inputs, or another output, is wrong usage: each command is checked for that between
// parsing and its work, so that no command has a check of its own. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shunt::cli {

class Files {
 public:
  // Called once the options are parsed. Empty paths stand for options that were not given.
  using Paths = std::function<std::vector<std::string>()>;

  // `name` is how messages call it, such as "MODEL" or "--trace".
  void add_input(std::string name, Paths paths) { inputs_.push_back({std::move(name), std::move(paths)}); }
  void add_output(std::string name, Paths paths) { outputs_.push_back({std::move(name), std::move(paths)}); }
  // Refuses (command.h) where two of them are one file, be it through links. A command that learns of more files while
  // it works adds them and calls this again before it writes.
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
