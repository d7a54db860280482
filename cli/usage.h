// How a command is used, in words: its help page, and what is wrong with a call. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace shunt::cli {

// Usage, arguments, options by group, and the footer. An option's name for its value is its type_name, without what
// checks add to it; its default is part of its description.
[[nodiscard]] std::string help_page(const CLI::App& app);

// "-n, --tokens"
[[nodiscard]] std::string names_of(const CLI::Option& option);
// " N", the name of an option's value; empty where it takes none.
[[nodiscard]] std::string value_of(const CLI::Option& option);

// The mistake that the parser found, with options named as they may have been typed.
[[nodiscard]] std::string describe_mistake(const CLI::App& app, const CLI::ParseError& error);

}  // namespace shunt::cli
