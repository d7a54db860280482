// Options that the bench commands of single ops share. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "run/op_cases.h"

namespace shunt::cli {

struct BenchShape {
  std::string name = "168m";
  std::uint32_t prompt = 512;  // rows of a prompt
};

// --shape, --prompt
void add_shape(CLI::App& app, BenchShape& shape);
[[nodiscard]] OpSizes sizes_of(const BenchShape& shape);

// --repetitions
void add_repetitions(CLI::App& app, std::uint32_t& repetitions);

}  // namespace shunt::cli
