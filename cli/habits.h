// Options as users of llama.cpp's programs know them (habits.def), in words of ours. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <vector>

namespace shunt::cli {

// The words of a call of the command `app`, with each habit in words that it has. Says what is not needed. Throws
// CLI::ParseError, as refuse() does, where something cannot be had.
[[nodiscard]] std::vector<std::string> in_our_words(const CLI::App& app, std::span<const std::string> words);

}  // namespace shunt::cli
