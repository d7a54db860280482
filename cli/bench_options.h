// Options shared by the bench commands for single ops. One thread.
#pragma once

#include <string>

#include "command_line.h"
#include "ops/bench_case.h"

namespace shunt::cli {

struct BenchShape {
  std::string name = "168m";
  std::uint32_t prompt = 512;  // rows of a prompt
};

// --shape, --prompt
void add_shape(CommandLine& line, BenchShape& shape);
[[nodiscard]] OpSizes sizes_of(const BenchShape& shape);

// --repetitions
void add_repetitions(CommandLine& line, std::uint32_t& repetitions);

}  // namespace shunt::cli
