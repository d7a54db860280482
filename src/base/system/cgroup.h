// Reads how much of the machine this process's control groups leave it, from Linux's files (cgroup 2:
// https://docs.kernel.org/admin-guide/cgroup-v2.html; cgroup 1: .../cgroup-v1/memory.html,
// .../scheduler/sched-bwc.html).
//
// A group's limit binds all groups in it, so the tightest limit of the process's group and its parents counts. `root`
// is the folder that contains proc/ and sys/. Safe from many threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace shunt {

// Returns the bytes that may still be taken; nullopt if no group limits them.
[[nodiscard]] std::optional<std::uint64_t> cgroup_available_memory(const std::filesystem::path& root = "/");
// Returns the cores whose time may be used, rounded up; nullopt if no group limits it.
[[nodiscard]] std::optional<std::uint32_t> cgroup_cores(const std::filesystem::path& root = "/");

}  // namespace shunt
