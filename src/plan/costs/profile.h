// What was measured of the devices of a machine: how long launches, copies and ops of many shapes took.
//
// Plain values, kept as one JSON file per machine that people can read. What a device was when it was measured is kept
// with the numbers: for another driver or number of threads they say nothing, and times of ops nothing of other
// kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ops/op.h"
#include "shunt/devices.h"
#include "shunt/status.h"

namespace shunt {

// The op and the dtypes of its operands: "linear F32 Q8_0 -> F32". Times of one kind are compared with each other.
[[nodiscard]] std::string kind_of(const OpCall& call);

// One shape of an op.
struct MeasuredOp {
  Cost cost;          // by its cost rule
  double us = 0;      // the median of a use, the start of its program not counted
  double spread = 0;  // relative: of the median, from how far the repetitions lie apart
};

// Copies between a device's memory and the host's in one direction: latency + bytes / bandwidth.
struct LinkRates {
  double us = 0;
  double bytes_per_s = 0;  // 0: there are no such copies, or nothing is known
  double spread = 0;       // relative
  [[nodiscard]] double copy_us(std::uint64_t bytes) const {
    return us + (bytes_per_s == 0 ? 0 : static_cast<double>(bytes) / bytes_per_s * 1e6);
  }
};

struct DeviceProfile {
  // What makes it valid.
  std::string id;
  std::string name;
  std::string driver;
  std::uint32_t threads = 0;                                // of the CPU
  std::map<std::string, std::string, std::less<>> kernels;  // hashes of those measured, by family (ops/kernel_hash.h)

  bool is_brief = false;  // measured in a hurry, before work that could not wait; `shunt calibrate` begins anew
  double checked_s = 0;   // when it was measured or last confirmed, as unix_seconds(); 0: runs have contradicted it
  double launch_us = 0;   // of a program, without its ops
  double wake_us = 0;     // how much more after a pause, in which threads and clocks have gone to rest
  double op_us = 0;       // of a tiny op among others
  // What whole steps of a model took, relative to the sum of their ops: steps of few tokens, and of more.
  double few_tokens_ratio = 1;
  double many_tokens_ratio = 1;
  LinkRates to_device;
  LinkRates from_device;
  LinkRates both_ways;  // of as many bytes in each direction at once, until both have arrived
  std::map<std::string, std::vector<MeasuredOp>, std::less<>> ops;  // by kind
  std::map<std::string, std::string, std::less<>> refused;          // ops that are not to be timed: why
};

// Seconds since 1970, by the system's clock.
[[nodiscard]] double unix_seconds();
// What a device is now, with nothing measured.
[[nodiscard]] DeviceProfile unmeasured(const DeviceInfo& device);
[[nodiscard]] bool is_valid_for(const DeviceProfile& profile, const DeviceInfo& device);

struct Profile {
  std::vector<DeviceProfile> devices;
  // What holds for the device as it is now, or null.
  [[nodiscard]] const DeviceProfile* find(const DeviceInfo& device) const;
  // In place of what there is of a device of that id.
  void set(DeviceProfile profile);
};

[[nodiscard]] std::string to_json(const Profile& profile);
// Without the ops whose kernels are others in this build. Errors: invalid, with what is wrong.
[[nodiscard]] Result<Profile> profile_from_json(std::string_view text);

// The file of this machine, in the cache folder. Errors: io.
[[nodiscard]] Result<std::filesystem::path> profile_path();
// Empty where there is no file. One that cannot be understood is renamed, and `warning` says so. Errors: io.
[[nodiscard]] Result<Profile> load_profile(const std::filesystem::path& path, std::string& warning);
[[nodiscard]] Status save_profile(const Profile& profile, const std::filesystem::path& path);
// Adds what was found of a device to the file as it is now, other processes kept out meanwhile. `before` is what the
// measuring began with, null for nothing: what others have kept since stays, and what `found` has dropped goes. A brief
// measurement does not replace a full one. Errors: io.
[[nodiscard]] Status add_to_profile(const std::filesystem::path& path, const DeviceProfile& found,
                                    const DeviceProfile* before);

}  // namespace shunt
