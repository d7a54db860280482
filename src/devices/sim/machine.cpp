#include "devices/sim/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <concepts>
#include <fstream>
#include <map>
#include <set>
#include <system_error>
#include <type_traits>

#include "base/parse_bytes.h"
#include "base/parse_json.h"
#include "devices/device.h"

namespace shunt::sim {
namespace {

constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20U;

// The range of a number, both ends included.
struct Range {
  double least = 0;
  double most = 0;
};
constexpr Range kPerSecond{1e3, 1e21};
constexpr Range kMicroseconds{0, 1e9};
constexpr Range kBytes{1, 1e18};
constexpr Range kBytesOrNone{0, 1e18};

// Rates not given for a family are those of the others.
struct FamilyRates {
  const Rate& others;
  std::map<std::string, Rate, std::less<>>& rates;
};

// THE list of keys in a file: calls visit(key, field) for each, with the range of numbers.
template <class Visit>
void visit_fields(Rate& rate, const Visit& visit) {
  visit("flops_per_s", rate.flops_per_s, kPerSecond);
  visit("bytes_per_s", rate.bytes_per_s, kPerSecond);
}

template <class Visit>
void visit_fields(Link& link, const Visit& visit) {
  visit("latency_us", link.latency_us, kMicroseconds);
  visit("bytes_per_s", link.bytes_per_s, kPerSecond);
  visit("peers", link.peers);
}

template <class Visit>
void visit_fields(Taken& taken, const Visit& visit) {
  visit("at_us", taken.at_us, kMicroseconds);
  visit("bytes", taken.bytes, kBytesOrNone);
}

template <class Visit>
void visit_fields(Faults& faults, const Visit& visit) {
  visit_faults(faults, [&](const char* key, std::string_view, std::string_view, auto& field) { visit(key, field); });
}

template <class Visit>
void visit_fields(Spec& spec, const Visit& visit) {
  visit("id", spec.id);
  visit("name", spec.name);
  visit("type", spec.type);
  visit("computes", spec.computes);
  visit("launch_us", spec.launch_us, kMicroseconds);
  visit("op_us", spec.op_us, kMicroseconds);
  visit_fields(spec.rate, visit);
  visit("rates", FamilyRates{spec.rate, spec.rate_of_family});
  visit("link", spec.link);
  visit("memory_bytes", spec.memory_bytes, kBytes);
  visit("largest_binding_bytes", spec.largest_binding_bytes, kBytes);
  visit("memory_pool", spec.memory_pool);
  visit("memory_resource", spec.memory_resource);
  visit("taken", spec.taken);
  visit("compute_resource", spec.compute_resource);
  visit("features", spec.features);
  visit("lacks", spec.lacks);
  visit("watchdog_us", spec.watchdog_us, kMicroseconds);
  visit("faults", spec.faults);
}

template <class Visit>
void visit_fields(Machine& machine, const Visit& visit) {
  visit("name", machine.name);
  visit("devices", machine.devices);
}

template <class T>
concept HasFields = requires(T& value) { visit_fields(value, [](const char*, auto&&, Range = {}) {}); };

std::string in_quotes(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns a value as messages show it.
std::string shown(const Json& json) {
  constexpr std::size_t kMostShown = 60;
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMostShown ? text : "a long text";
}

// Explains why a text is not JSON, or repeats a key; the parser alone does neither.
class Complaints final : public nlohmann::json_sax<Json> {
 public:
  std::string text;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    text = fmt::format("the key {} occurs twice in one object", in_quotes(key));
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr std::size_t kMostWords = 200;  // the message may quote everything it has read
    const std::string_view words = error.what();
    text =
        fmt::format("it is not valid JSON: {}", words.substr(std::min(words.find("] ") + 2, words.size()), kMostWords));
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  Result<Machine> read(std::string_view text) {
    Complaints complaints;
    if (!Json::sax_parse(text, &complaints)) return wrong("", complaints.text);
    const Json json = parse_json(text);
    if (json.is_discarded())
      return wrong("", fmt::format("it is nested more than {} deep, or longer than {} MiB", kMostJsonDepth,
                                   kMostJsonBytes >> 20U));
    Machine machine;
    SHUNT_TRY(read(json, "", machine));
    device_.clear();
    SHUNT_TRY(check(machine));
    return machine;
  }

 private:
  // Makes an error such as "FILE: device "gpu:0", "link.peers" is 3; ...".
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view key, std::string_view what) const {
    std::string where = device_;
    if (!key.empty()) where += fmt::format("{}\"{}\"", where.empty() ? "" : ", ", key);
    if (!where.empty()) where += key.empty() ? ": " : " ";
    return fail(Code::invalid, fmt::format("{}: {}{}", origin_, where, what));
  }
  [[nodiscard]] std::unexpected<Error> unlike(std::string_view key, const Json& found, std::string_view wanted) const {
    return wrong(key, fmt::format("{} {}; it must be {}", key.empty() ? "it is" : "is", shown(found), wanted));
  }
  // Makes the error for an unknown `what` of that name.
  template <class Names>
  [[nodiscard]] std::unexpected<Error> unknown(std::string_view key, std::string_view what, const std::string& found,
                                               const Names& names) const {
    return wrong(key, fmt::format("{} the unknown {} {}; choose from: {}", key.empty() ? "it has" : "has", what,
                                  in_quotes(found), fmt::join(names, " ")));
  }

  template <HasFields T>
  Status read(const Json& json, const std::string& key, T& value) {
    if (!json.is_object()) return unlike(key, json, "an object");
    std::vector<std::string_view> names;
    visit_fields(value, [&](const char* name, auto&&, Range = {}) { names.emplace_back(name); });
    for (const auto& item : json.items())
      if (std::ranges::find(names, item.key()) == names.end()) return unknown(key, "key", item.key(), names);
    Status status;
    visit_fields(value, [&](const char* name, auto&& field, Range range = {}) {
      const auto found = json.find(name);
      if (!status || found == json.end()) return;
      const std::string inner = key.empty() ? name : fmt::format("{}.{}", key, name);
      if constexpr (requires { read(*found, inner, field, range); })
        status = read(*found, inner, field, range);
      else
        status = read(*found, inner, field);
    });
    return status;
  }

  Status read(const Json& json, const std::string& key, double& value, Range range) {
    if (json.is_number()) value = json.get<double>();
    if (json.is_number() && value >= range.least && value <= range.most) return {};
    return unlike(key, json, fmt::format("a number from {:g} to {:g}", range.least, range.most));
  }
  Status read(const Json& json, const std::string& key, std::uint64_t& value, Range range) {
    std::optional<double> bytes;
    if (json.is_number()) bytes = json.get<double>();
    if (json.is_string()) bytes = parse_bytes(json.get_ref<const std::string&>());
    if (!bytes || !(*bytes >= range.least && *bytes <= range.most))
      return unlike(key, json,
                    fmt::format("a number from {:g} to {:g}, or a text such as \"24 GiB\" in this range", range.least,
                                range.most));
    value = json.is_number_unsigned() ? json.get<std::uint64_t>() : static_cast<std::uint64_t>(*bytes);
    return {};
  }
  Status read(const Json& json, const std::string& key, std::optional<std::uint64_t>& value) {
    if (!json.is_number_unsigned()) return unlike(key, json, "a whole number of at least 0");
    value = json.get<std::uint64_t>();
    return {};
  }
  Status read(const Json& json, const std::string& key, bool& value) {
    if (!json.is_boolean()) return unlike(key, json, "true or false");
    value = json.get<bool>();
    return {};
  }
  Status read(const Json& json, const std::string& key, std::string& value) {
    if (!json.is_string()) return unlike(key, json, "a text");
    value = json.get<std::string>();
    return {};
  }

  // Reads one of the names that name_of() returns for 0 to `count` - 1.
  template <class Enum>
  Status read_name(const Json& json, const std::string& key, std::size_t count, Enum& value) {
    if (!json.is_string()) return unlike(key, json, "a name");
    std::vector<std::string_view> names;
    for (std::size_t number = 0; number < count; ++number) names.push_back(name_of(static_cast<Enum>(number)));
    const auto name = std::ranges::find(names, json.get_ref<const std::string&>());
    if (name == names.end()) return unknown(key, "name", json.get<std::string>(), names);
    value = static_cast<Enum>(name - names.begin());
    return {};
  }
  Status read(const Json& json, const std::string& key, DeviceType& value) {
#define SHUNT_ONE_MORE(...) +1
    return read_name(json, key, 0 SHUNT_DEVICE_TYPES(SHUNT_ONE_MORE), value);
  }
  Status read(const Json& json, const std::string& key, DeviceFeatures& value) {
    return read_list(json, key, [&](const Json& each) -> Status {
      DeviceFeature feature{};
      SHUNT_TRY(read_name(each, key, 0 SHUNT_DEVICE_FEATURES(SHUNT_ONE_MORE), feature));
      value.insert(feature);
      return {};
    });
#undef SHUNT_ONE_MORE
  }
  Status read(const Json& json, const std::string& key, std::vector<Op>& value) {
    return read_list(json, key,
                     [&](const Json& each) { return read_name(each, key, ops().size(), value.emplace_back()); });
  }
  template <class Each>
  Status read_list(const Json& json, const std::string& key, const Each& each) {
    if (!json.is_array()) return unlike(key, json, "a list of names");
    for (const Json& entry : json) SHUNT_TRY(each(entry));
    return {};
  }

  Status read(const Json& json, const std::string& key, const FamilyRates& value) {
    if (!json.is_object()) return unlike(key, json, "an object with a family of kernels in each key");
    std::set<std::string_view> families;
    for (const OpInfo& op : ops())
      if (!op.family.empty()) families.insert(op.family);
    for (const auto& item : json.items()) {
      if (!families.contains(item.key())) return unknown(key, "kernel family", item.key(), families);
      Rate& rate = value.rates.try_emplace(item.key(), value.others).first->second;
      SHUNT_TRY(read(item.value(), fmt::format("{}.{}", key, item.key()), rate));
    }
    return {};
  }

  Status read(const Json& json, const std::string& key, std::vector<Taken>& value) {
    if (!json.is_array()) return unlike(key, json, "a list of objects");
    for (const Json& each : json) {
      const double last_us = value.empty() ? 0 : value.back().at_us;
      const std::string inner = fmt::format("{}[{}]", key, value.size());
      SHUNT_TRY(read(each, inner, value.emplace_back()));
      if (value.back().at_us < last_us)
        return wrong(
            inner + ".at_us",
            fmt::format("is {:g}, but the one before is later; list them in the order of time", value.back().at_us));
    }
    return {};
  }

  Status read(const Json& json, const std::string& key, std::vector<Spec>& value) {
    if (!json.is_array()) return unlike(key, json, "a list of objects");
    if (json.size() > kMostDevices)
      return wrong(key, fmt::format("has {} devices; at most {} are possible", json.size(), kMostDevices));
    for (const Json& each : json) {
      Spec& spec = value.emplace_back();
      spec.emulated = false;
      const auto id = each.is_object() ? each.find("id") : each.end();
      device_ = id != each.end() && id->is_string() ? fmt::format("device {}", in_quotes(id->get<std::string>()))
                                                    : fmt::format("device {} of the list", value.size());
      SHUNT_TRY(read(each, "", spec));
      SHUNT_TRY(complete(each, spec));
    }
    return {};
  }

  // Checks and fills what depends on several keys of a device.
  [[nodiscard]] Status complete(const Json& json, Spec& spec) const {
    const auto is_bad = [](char letter) { return static_cast<unsigned char>(letter) <= ' ' || letter == ','; };
    if (spec.id.empty() || std::ranges::any_of(spec.id, is_bad) || spec.id == kHostPool)
      return wrong("id", fmt::format("is {}; it must be a name without commas and spaces, and not \"{}\"",
                                     in_quotes(spec.id), kHostPool));
    const bool is_cpu = spec.type == DeviceType::cpu;
    if (spec.memory_pool.empty()) spec.memory_pool = is_cpu ? kHostPool : spec.id;
    if (spec.memory_resource.empty()) spec.memory_resource = spec.memory_pool;
    if (is_cpu && spec.memory_pool != kHostPool)
      return wrong("memory_pool",
                   fmt::format("is {}; for a cpu it must be \"{}\"", in_quotes(spec.memory_pool), kHostPool));
    if (spec.memory_pool == kHostPool && json.contains("link"))
      return wrong("link", "is given, but a device in the host's memory has no link; leave it out");
    return {};
  }

  // Checks what depends on several devices.
  [[nodiscard]] Status check(const Machine& machine) const {
    if (machine.devices.empty()) return wrong("devices", "has no device; a machine needs at least one");
    std::map<std::string, const Spec*> first_of_id;
    std::map<std::string, const Spec*> first_of_pool;
    std::map<std::string, const Spec*> first_of_memory;
    for (const Spec& spec : machine.devices) {
      if (!first_of_id.emplace(spec.id, &spec).second)
        return wrong("devices", fmt::format("has two devices with the id {}; give each its own", in_quotes(spec.id)));
      const Spec& first = *first_of_pool.emplace(spec.memory_pool, &spec).first->second;
      if (first.memory_bytes != spec.memory_bytes || first.computes != spec.computes)
        return wrong(
            "devices",
            fmt::format("has {} and {} in the memory pool {}, of {} bytes{} and {} bytes{}; devices of one pool "
                        "must have the same \"memory_bytes\" and \"computes\"",
                        in_quotes(first.id), in_quotes(spec.id), in_quotes(spec.memory_pool), first.memory_bytes,
                        first.computes ? "" : " that are not real", spec.memory_bytes,
                        spec.computes ? "" : " that are not real"));
      const Spec& other = *first_of_memory.emplace(spec.memory_resource, &spec).first->second;
      if (other.memory_bytes != spec.memory_bytes)
        return wrong("devices", fmt::format("has {} and {} in the memory {}, of {} and {} bytes; devices of one memory "
                                            "must have the same \"memory_bytes\"",
                                            in_quotes(other.id), in_quotes(spec.id), in_quotes(spec.memory_resource),
                                            other.memory_bytes, spec.memory_bytes));
    }
    if (std::ranges::find(machine.devices, DeviceType::cpu, &Spec::type) == machine.devices.end())
      return wrong("devices",
                   "has none of the type \"cpu\"; a machine needs a processor, which runs what nothing else can");
    return {};
  }

  std::string_view origin_;
  std::string device_;  // the one being read; empty: none
};

}  // namespace

Result<Machine> machine_from_json(std::string_view text, std::string_view origin) { return Reader(origin).read(text); }

Result<Machine> read_machine(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  // Reading succeeded if it filled the buffer or reached the end of the file.
  if (!stream && !stream.eof())
    return fail(Code::io, fmt::format("{}: the description of a machine cannot be read: {}", file,
                                      std::generic_category().message(errno)));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostFileBytes)
    return fail(Code::invalid,
                fmt::format("{}: more than {} bytes; no description of a machine is that long", file, kMostFileBytes));
  return machine_from_json(text, file);
}

}  // namespace shunt::sim
