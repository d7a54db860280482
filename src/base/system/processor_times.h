// The processors that this process may use, and how long they have worked, for everybody and for this process: Linux's
// /proc/stat (proc_stat(5)) and getrusage(2).
//
// The system counts in ticks, usually of 10 ms, so differences over less than 100 ms say little. Safe from many
// threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace shunt {

// Returns the processors that this process may use; empty if the system does not tell.
[[nodiscard]] std::vector<std::uint32_t> allowed_processors();

struct ProcessorTimes {
  double wall_s = 0;             // since any origin
  double all_s = 0;              // of all processes, summed over the processors
  double own_s = 0;              // of this process
  std::uint32_t processors = 0;  // those that this process may use
};

// Returns nothing if the system does not tell. `root` is the folder that contains proc/.
[[nodiscard]] std::optional<ProcessorTimes> processor_times(const std::filesystem::path& root = "/");

}  // namespace shunt
