// The measurements of a machine's devices: how long launches, copies and ops of many shapes took.
//
// Plain values, kept as one human-readable JSON file per machine. A profile also says what the device was when it was
// measured. Its numbers do not hold for another driver or number of threads, and times of ops do not hold for other
// kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ops/arithmetic.h"
#include "ops/kernel_choice.h"
#include "ops/op.h"
#include "shunt/devices.h"
#include "shunt/status.h"

namespace shunt {

// One shape of an op.
struct MeasuredOp {
  Cost cost;          // by the op's cost rule
  double us = 0;      // median of one use, without the start of its program
  double spread = 0;  // relative to the median, by how much the repetitions differ
};

// Copies between device and host memory in one direction: latency + bytes / bandwidth.
struct LinkRates {
  double us = 0;
  double bytes_per_s = 0;  // 0: no such copies, or unknown
  double spread = 0;       // relative
  [[nodiscard]] double copy_us(std::uint64_t bytes) const {
    return us + (bytes_per_s == 0 ? 0 : static_cast<double>(bytes) / bytes_per_s * 1e6);
  }
};

struct DeviceProfile {
  // The device, driver and kernels that the profile is valid for.
  std::string id;
  std::string name;
  std::string driver;
  std::uint32_t threads = 0;                                // of the CPU
  std::map<std::string, std::string, std::less<>> kernels;  // hashes of those measured, by family (ops/kernel_hash.h)

  bool is_brief = false;  // measured briefly, before work that could not wait; `shunt calibrate` starts over
  double checked_s = 0;   // when it was measured or last confirmed, as unix_seconds(); 0: runs contradicted it
  double launch_us = 0;   // of a program, without its ops
  double wake_us = 0;     // extra launch time after a pause, when threads and clocks have gone to rest
  double op_us = 0;       // of a tiny op among others
  // Measured times of whole model steps, relative to the sum of their ops: steps of few tokens, and of more.
  double few_tokens_ratio = 1;
  double many_tokens_ratio = 1;
  LinkRates to_device;
  LinkRates from_device;
  LinkRates from_peers;  // to the device, directly from another; no rate: as to_device
  LinkRates weights;     // to the device, of weights in pinned memory; no rate: as to_device
  // The shares of their rates at which the processor reads memory while weights travel, and at which these do.
  double reads_beside_weights = 1;
  double weights_beside_reads = 1;
  LinkRates both_ways;  // of equal bytes in both directions at once, until both have arrived
  std::map<std::string, std::vector<MeasuredOp>, std::less<>> ops;  // by kind
  KernelChoices choices;  // the fastest kernels of ops that have several; `ops` are times of these
  std::map<std::string, std::string, std::less<>> refused;  // why an op is not to be timed, by op
  std::vector<std::string> confirmed;  // fingerprints of outliers that were measured twice (plan/costs/outliers.h)
};

// Seconds since 1970, by the system's clock.
[[nodiscard]] double unix_seconds();
// Returns the family of an op by its name, or of a kind, which begins with it; empty: there is no such op.
[[nodiscard]] std::string_view family_of(std::string_view kind);
// Describes a device as it is now, with nothing measured.
[[nodiscard]] DeviceProfile unmeasured(const DeviceInfo& device);
[[nodiscard]] bool is_valid_for(const DeviceProfile& profile, const DeviceInfo& device);

struct Profile {
  std::vector<DeviceProfile> devices;
  // Returns what is valid for the device as it is now, or null.
  [[nodiscard]] const DeviceProfile* find(const DeviceInfo& device) const;
  // Replaces the profile of the device with that id, or adds it.
  void set(DeviceProfile profile);
};

[[nodiscard]] std::string to_json(const Profile& profile);
// Leaves out ops whose kernels differ in this build. Errors: invalid, with what is wrong.
[[nodiscard]] Result<Profile> profile_from_json(std::string_view text);

// Returns the path of this machine's file, in the cache folder. Errors: io.
[[nodiscard]] Result<std::filesystem::path> profile_path();
// Returns an empty profile if there is no file. A file that cannot be understood is renamed, and `warning` says so.
// Errors: io.
[[nodiscard]] Result<Profile> load_profile(const std::filesystem::path& path, std::string& warning);
[[nodiscard]] Status save_profile(const Profile& profile, const std::filesystem::path& path);
// Merges what was found of a device into the file as it is now, locked against other processes. `before` is the profile
// that the measurement began with, or null. What others saved since then stays; what `found` has dropped goes. A brief
// measurement does not replace a full one. Errors: io.
[[nodiscard]] Status add_to_profile(const std::filesystem::path& path, const DeviceProfile& found,
                                    const DeviceProfile* before);

}  // namespace shunt
