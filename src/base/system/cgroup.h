// What the control groups of this process leave it of the machine, as Linux tells in files (cgroup 2:
// https://docs.kernel.org/admin-guide/cgroup-v2.html; cgroup 1: .../cgroup-v1/memory.html,
// .../scheduler/sched-bwc.html).
//
// A limit of a group binds all groups in it, so the tightest of the process's group and its parents counts.
// `root` is the folder in which proc/ and sys/ lie. Safe from many threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace shunt {

// Bytes that may still be taken; nothing where no group limits them.
[[nodiscard]] std::optional<std::uint64_t> cgroup_available_memory(const std::filesystem::path& root = "/");
// Cores whose time may be used, a part of one counted as a whole; nothing where no group limits it.
[[nodiscard]] std::optional<std::uint32_t> cgroup_cores(const std::filesystem::path& root = "/");

}  // namespace shunt
