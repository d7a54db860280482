// Machines from files: what each key sets, the wording of errors, and how the devices are opened.
#include "devices/sim/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "run/opened_devices.h"
#include "shunt/runtime.h"

namespace shunt::sim {
namespace {

const std::filesystem::path kExamples = SHUNT_TEST_DATA "/../../examples/machines";

// A machine of a processor and one device with these keys.
std::string with(const std::string& keys) { return R"({"devices": [{"id": "cpu", "type": "cpu"}, {)" + keys + "}]}"; }

std::vector<std::string> ids_of(std::span<Device* const> devices) {
  std::vector<std::string> ids;
  for (const Device* device : devices) ids.push_back(device->info().id);
  return ids;
}

TEST(Machine, EveryExampleLoads) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    const auto machine = read_machine(entry.path().string());
    ASSERT_TRUE(machine.has_value()) << machine.error().message;
    EXPECT_FALSE(machine->name.empty()) << entry.path();
    const Registry registry = *open_devices({.machine = entry.path().c_str()});
    const std::vector<Device*> devices = registry.devices();
    ASSERT_EQ(devices.size(), machine->devices.size());
    for (std::size_t index = 0; index < devices.size(); ++index) {
      const DeviceInfo& info = devices[index]->info();
      EXPECT_FALSE(info.emulated) << info.id;
      EXPECT_EQ(info.is_host_cpu(), info.type == DeviceType::cpu) << info.id;
      EXPECT_EQ(*devices[index]->memory_available(), machine->devices[index].memory_bytes) << info.id;
    }
    ++count;
  }
  EXPECT_EQ(count, 9U);
}

TEST(Machine, EachKeyIsAFieldOfTheDevice) {
  const auto machine = machine_from_json(
      R"({"name": "a machine", "devices": [{"type": "cpu", "id": "p"}, {
        "id": "gpu:7", "name": "a GPU", "type": "discrete", "computes": false, "launch_us": 0, "op_us": 2.5,
        "flops_per_s": 6e13, "bytes_per_s": 3e12, "rates": {"linear": {"flops_per_s": 9e14}, "softmax": {}},
        "link": {"latency_us": 3, "bytes_per_s": 5e10, "peers": false}, "memory_bytes": "1.5 KiB",
        "memory_pool": "a pool", "memory_resource": "a memory", "compute_resource": "a chip", "features": ["fp16", "shared-memory"],
        "taken": [{"bytes": "1 KiB"}, {"at_us": 2.5, "bytes": 0}], "lacks": ["softmax", "add"], "watchdog_us": 12,
        "faults": {"allocation_fails": 1, "lost_at_op": 2, "hangs_at_op": 3, "error_at_op": 4, "nonfinite_at_op": 5,
                   "wrong_at_op": 6}}]})",
      "text");
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  EXPECT_EQ(machine->name, "a machine");
  EXPECT_EQ(machine->devices[0].memory_pool, "host");
  const Spec& gpu = machine->devices[1];
  EXPECT_EQ(gpu.id, "gpu:7");
  EXPECT_EQ(gpu.name, "a GPU");
  EXPECT_EQ(gpu.type, DeviceType::discrete);
  EXPECT_FALSE(gpu.emulated);
  EXPECT_FALSE(gpu.computes);
  EXPECT_EQ(gpu.launch_us, 0);
  EXPECT_EQ(gpu.op_us, 2.5);
  EXPECT_EQ(gpu.rate.flops_per_s, 6e13);
  EXPECT_EQ(gpu.rate.bytes_per_s, 3e12);
  EXPECT_EQ(gpu.rate_of_family.at("linear").flops_per_s, 9e14);
  EXPECT_EQ(gpu.rate_of_family.at("linear").bytes_per_s, 3e12) << "as the others";
  EXPECT_EQ(gpu.rate_of_family.at("softmax").flops_per_s, 6e13);
  EXPECT_EQ(gpu.link.latency_us, 3);
  EXPECT_EQ(gpu.link.bytes_per_s, 5e10);
  EXPECT_FALSE(gpu.link.peers);
  EXPECT_EQ(gpu.memory_bytes, 1536U);
  EXPECT_EQ(gpu.memory_pool, "a pool");
  EXPECT_EQ(gpu.memory_resource, "a memory");
  EXPECT_EQ(gpu.compute_resource, "a chip");
  EXPECT_EQ(gpu.features, (DeviceFeatures{DeviceFeature::fp16, DeviceFeature::shared_memory}));
  ASSERT_EQ(gpu.taken.size(), 2U);
  EXPECT_EQ(gpu.taken[0].at_us, 0);
  EXPECT_EQ(gpu.taken[0].bytes, 1024U);
  EXPECT_EQ(gpu.taken[1].at_us, 2.5);
  EXPECT_EQ(gpu.taken[1].bytes, 0U);
  EXPECT_EQ(gpu.lacks, (std::vector<Op>{Op::softmax, Op::add}));
  EXPECT_EQ(gpu.watchdog_us, 12);
  EXPECT_EQ(gpu.faults.allocation_fails, 1U);
  EXPECT_EQ(gpu.faults.lost_at_op, 2U);
  EXPECT_EQ(gpu.faults.hangs_at_op, 3U);
  EXPECT_EQ(gpu.faults.error_at_op, 4U);
  EXPECT_EQ(gpu.faults.nonfinite_at_op, 5U);
  EXPECT_EQ(gpu.faults.wrong_at_op, 6U);
}

TEST(Machine, WhatIsNotSaidIsAsInTheSpec) {
  const Spec usual;
  const Machine machine = *machine_from_json(with(R"("id": "x")"), "text");
  EXPECT_EQ(machine.devices[1].memory_bytes, usual.memory_bytes);
  EXPECT_EQ(machine.devices[1].rate.flops_per_s, usual.rate.flops_per_s);
  EXPECT_EQ(machine.devices[1].link.bytes_per_s, usual.link.bytes_per_s);
  EXPECT_EQ(machine.devices[1].type, DeviceType::other);
  EXPECT_EQ(machine.devices[1].memory_pool, "x");
  EXPECT_FALSE(machine.devices[1].faults.lost_at_op.has_value());
}

TEST(Machine, SizesAreNumbersOrTexts) {
  const auto bytes = [](const std::string& size) {
    return machine_from_json(with(R"("id": "x", "memory_bytes": )" + size), "text")->devices[1].memory_bytes;
  };
  EXPECT_EQ(bytes("1000"), 1000U);
  EXPECT_EQ(bytes("8e9"), 8'000'000'000U);
  EXPECT_EQ(bytes("\"24 GiB\""), std::uint64_t{24} << 30U);
  EXPECT_EQ(bytes("\"24GiB\""), std::uint64_t{24} << 30U);
  EXPECT_EQ(bytes("\"0.5 TiB\""), std::uint64_t{512} << 30U);
  EXPECT_EQ(bytes("\"7 B\""), 7U);
}

struct Wrong {
  std::string text;
  std::vector<std::string> said;
};

std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.text.substr(0, 80); }

class WrongMachine : public testing::TestWithParam<Wrong> {};

TEST_P(WrongMachine, IsRefusedWithWhatStandsThereAndWhatMay) {
  const auto machine = machine_from_json(GetParam().text, "m.json");
  ASSERT_FALSE(machine.has_value());
  EXPECT_EQ(machine.error().code, Code::invalid);
  EXPECT_TRUE(machine.error().message.starts_with("m.json: ")) << machine.error().message;
  for (const std::string& words : GetParam().said)
    EXPECT_TRUE(machine.error().message.contains(words)) << machine.error().message << "\nlacks: " << words;
}

std::string many_devices() {
  std::string list = R"({"id": "cpu", "type": "cpu"})";
  for (int number = 0; number < 64; ++number) list += R"(, {"id": "x)" + std::to_string(number) + "\"}";
  return R"({"devices": [)" + list + "]}";
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongMachine,
    testing::Values(
        Wrong{"", {"it is not valid JSON", "line 1, column 1"}},
        Wrong{"{\n\"devices\": [}", {"it is not valid JSON", "line 2"}},
        Wrong{"{\"name\": \"\xFF\"}", {"it is not valid JSON", "UTF-8"}},
        Wrong{std::string(100'000, '['), {"it is not valid JSON"}},
        Wrong{std::string(400'000, '[') + std::string(400'000, ']'), {"it is nested more than 64 deep"}},
        Wrong{"[]", {"it is a list", "an object"}}, Wrong{"3", {"it is 3; it must be an object"}},
        Wrong{"{}", {"\"devices\" has no device"}}, Wrong{R"({"devices": []})", {"\"devices\" has no device"}},
        Wrong{R"({"devices": {}})", {"\"devices\" is an object; it must be a list of objects"}},
        Wrong{R"({"devices": [], "device": 1})", {"the unknown key \"device\"", "choose from: name devices"}},
        Wrong{R"({"name": 3})", {"\"name\" is 3; it must be a text"}},
        Wrong{R"({"devices": [7]})", {"device 1 of the list: it is 7; it must be an object"}},
        Wrong{many_devices(), {"\"devices\" has 65 devices; at most 64"}},
        Wrong{R"({"devices": [{"id": "x"}]})", {"none of the type \"cpu\""}},
        Wrong{with(R"("id": "cpu")"), {"two devices with the id \"cpu\""}},
        Wrong{with(R"("id": "")"), {"device \"\", \"id\" is \"\"; it must be a name without commas and spaces"}},
        Wrong{with(R"("id": "a,b")"), {"device \"a,b\", \"id\" is \"a,b\""}},
        Wrong{with(R"("id": "a b")"), {"\"id\" is \"a b\""}}, Wrong{with(R"("id": "host")"), {"not \"host\""}},
        Wrong{with(R"("name": "x", "id": 4)"), {"device 2 of the list, \"id\" is 4; it must be a text"}},
        Wrong{with(R"("id": "x", "id": "y")"), {"the key \"id\" occurs twice"}},
        Wrong{with(R"("id": "x", "flop_per_s": 1)"),
              {"device \"x\"", "the unknown key \"flop_per_s\"", "choose from: id name type", "faults"}},
        Wrong{with(R"("id": "x", "type": "gpu")"),
              {"\"type\" has the unknown name \"gpu\"", "choose from: discrete integrated virtual cpu other"}},
        Wrong{with(R"("id": "x", "type": 1)"), {"\"type\" is 1; it must be a name"}},
        Wrong{with(R"("id": "x", "computes": 1)"), {"\"computes\" is 1; it must be true or false"}},
        Wrong{with(R"("id": "x", "launch_us": -1)"), {"\"launch_us\" is -1; it must be a number from 0 to 1e+09"}},
        Wrong{with(R"("id": "x", "watchdog_us": "1")"), {"\"watchdog_us\" is \"1\""}},
        Wrong{with(R"("id": "x", "flops_per_s": 0)"), {"\"flops_per_s\" is 0; it must be a number from 1000 to 1e+21"}},
        Wrong{with(R"("id": "x", "bytes_per_s": -1)"), {"\"bytes_per_s\" is -1"}},
        Wrong{with(R"("id": "x", "bytes_per_s": 1e300)"), {"\"bytes_per_s\" is 1e+300"}},
        Wrong{with(R"("id": "x", "bytes_per_s": 1e999)"), {"it is not valid JSON", "overflow"}},
        Wrong{with(R"("id": "x", "bytes_per_s": null)"), {"\"bytes_per_s\" is null"}},
        Wrong{with(R"("id": "x", "rates": [])"), {"\"rates\" is a list"}},
        Wrong{with(R"("id": "x", "rates": {"linearl": {}})"),
              {"\"rates\" has the unknown kernel family \"linearl\"", " linear "}},
        Wrong{with(R"("id": "x", "rates": {"linear": {"flops": 1}})"),
              {"\"rates.linear\" has the unknown key \"flops\"", "choose from: flops_per_s bytes_per_s"}},
        Wrong{with(R"("id": "x", "rates": {"linear": {"flops_per_s": 0}})"), {"\"rates.linear.flops_per_s\" is 0"}},
        Wrong{with(R"("id": "x", "link": {"latency": 1})"),
              {"\"link\" has the unknown key \"latency\"", "latency_us bytes_per_s"}},
        Wrong{with(R"("id": "x", "link": {"bytes_per_s": 0})"), {"\"link.bytes_per_s\" is 0"}},
        Wrong{with(R"("id": "x", "link": 5e9)"), {"\"link\" is 5000000000.0; it must be an object"}},
        Wrong{with(R"("id": "x", "memory_bytes": 0)"), {"\"memory_bytes\" is 0", "such as \"24 GiB\""}},
        Wrong{with(R"("id": "x", "memory_bytes": -4)"), {"\"memory_bytes\" is -4"}},
        Wrong{with(R"("id": "x", "memory_bytes": 1e30)"), {"\"memory_bytes\" is 1e+30"}},
        Wrong{with(R"("id": "x", "memory_bytes": "24 GB")"), {"\"memory_bytes\" is \"24 GB\""}},
        Wrong{with(R"("id": "x", "memory_bytes": "inf GiB")"), {"\"memory_bytes\" is \"inf GiB\""}},
        Wrong{with(R"("id": "x", "memory_bytes": "nan B")"), {"\"memory_bytes\" is \"nan B\""}},
        Wrong{with(R"("id": "x", "taken": {})"), {"\"taken\" is an object; it must be a list of objects"}},
        Wrong{with(R"("id": "x", "taken": [{}, {"byte": 1}])"),
              {"\"taken[1]\" has the unknown key \"byte\"", "choose from: at_us bytes"}},
        Wrong{with(R"("id": "x", "taken": [{"bytes": -1}])"), {"\"taken[0].bytes\" is -1"}},
        Wrong{with(R"("id": "x", "taken": [{"at_us": 2}, {"at_us": 1}])"),
              {"\"taken[1].at_us\" is 1, but the one before is later"}},
        Wrong{with(R"("id": "x", "features": "fp16")"), {"\"features\" is \"fp16\"; it must be a list of names"}},
        Wrong{with(R"("id": "x", "features": ["fp17"])"),
              {"\"features\" has the unknown name \"fp17\"", "choose from: fp16 fp64"}},
        Wrong{with(R"("id": "x", "lacks": ["add", "linearx"])"),
              {"\"lacks\" has the unknown name \"linearx\"", " linear "}},
        Wrong{with(R"("id": "x", "lacks": [[]])"), {"\"lacks\" is a list; it must be a name"}},
        Wrong{with(R"("id": "x", "faults": {"lost_at_op": -1})"), {"\"faults.lost_at_op\" is -1"}},
        Wrong{with(R"("id": "x", "faults": {"lost": 1})"),
              {"\"faults\" has the unknown key \"lost\"", "allocation_fails"}},
        Wrong{with(R"("id": "x", "type": "cpu", "memory_pool": "m")"), {"\"memory_pool\" is \"m\"", "\"host\""}},
        Wrong{with(R"("id": "x", "type": "cpu", "link": {})"), {"\"link\" is given", "leave it out"}},
        Wrong{with(R"("id": "x", "memory_pool": "host", "link": {})"), {"\"link\" is given", "leave it out"}},
        Wrong{with(R"("id": "x", "memory_pool": "host", "memory_bytes": 7)"),
              {"\"cpu\" and \"x\" in the memory pool \"host\"", "of 1073741824 bytes and 7 bytes"}},
        Wrong{with(R"("id": "x", "memory_resource": "host", "memory_bytes": 7)"),
              {"\"cpu\" and \"x\" in the memory \"host\"", "of 1073741824 and 7 bytes"}},
        Wrong{with(R"("id": "x", "memory_pool": "host", "computes": false)"),
              {"the same \"memory_bytes\" and \"computes\""}}));

TEST(Machine, AFileThatCannotBeReadIsAnErrorOfReading) {
  for (const char* file : {"/nowhere/machine.json", "/"}) {
    const auto machine = read_machine(file);
    ASSERT_FALSE(machine.has_value());
    EXPECT_EQ(machine.error().code, Code::io);
    EXPECT_TRUE(machine.error().message.starts_with(file)) << machine.error().message;
  }
  const auto endless = read_machine("/dev/zero");
  ASSERT_FALSE(endless.has_value());
  EXPECT_TRUE(endless.error().message.contains("/dev/zero: more than 1048576 bytes")) << endless.error().message;
}

TEST(Machine, ItsDevicesAreAllThereIs) {
  const std::string file = (kExamples / "two-unequal-gpus.json").string();
  const auto runtime = Runtime::create({.machine = file});
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  EXPECT_EQ(ids_of(opened(**runtime).handles()), (std::vector<std::string>{"cpu", "gpu:0", "gpu:1"}));
  for (const BackendReport& backend : opened(**runtime).registry().backends)
    EXPECT_EQ(backend.devices.empty(), backend.api != "sim") << backend.api;
  EXPECT_EQ(ids_of(opened(**Runtime::create({.devices = "gpu:1, cpu", .machine = file})).handles()),
            (std::vector<std::string>{"gpu:1", "cpu"}));
  const auto unknown = Runtime::create({.devices = "gpu:2", .machine = file});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "unknown device \"gpu:2\" (did you mean gpu:0?); choose from: cpu gpu:0 gpu:1");
  const auto absent = Runtime::create({.devices = "vulkan:0", .machine = file});
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().message, "device \"vulkan:0\" is absent: the machine is the one described in " + file);
  ASSERT_EQ(setenv("SHUNT_DEVICES", "gpu:0", 1), 0);
  EXPECT_EQ(ids_of(opened(**Runtime::create({.machine = file})).handles()), std::vector<std::string>{"gpu:0"});
  ASSERT_EQ(unsetenv("SHUNT_DEVICES"), 0);
}

TEST(Machine, ASelectorChoosesAmongItsDevices) {
  RuntimeOptions options{.machine = (kExamples / "two-unequal-gpus.json").string()};
  options.selector.emplace();
  options.selector->chain = {{"gpu:1"}};
  options.selector->most = 2;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  EXPECT_EQ(ids_of(opened(**runtime).handles()), (std::vector<std::string>{"gpu:1", "gpu:0"}));
  ASSERT_EQ((*runtime)->rejections().size(), 1U);
  EXPECT_EQ((*runtime)->rejections()[0].id, "cpu");
}

TEST(Machine, DevicesOfOnePoolTakeFromTheSameBytes) {
  const Machine machine = *machine_from_json(
      R"({"devices": [{"id": "cpu", "type": "cpu", "memory_bytes": 1000},
                      {"id": "gpu", "memory_pool": "host", "memory_bytes": 1000}, {"id": "other"}]})",
      "text");
  const auto devices = make_sim_devices(machine.devices, std::make_shared<VirtualClock>());
  const auto buffer = devices[1]->allocate(600, BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(devices[0]->memory_available(), 400U);
  EXPECT_EQ(devices[0]->allocate(401, BufferUse::values).error().code, Code::out_of_memory);
  EXPECT_EQ(devices[2]->memory_available(), Spec().memory_bytes);
}

TEST(Machine, OtherProgramsTakeMemoryOverTimeAndGiveItBack) {
  const Machine machine = *machine_from_json(
      R"({"devices": [{"type": "cpu"}, {"id": "a", "memory_resource": "a GPU", "memory_bytes": 1000,
                       "taken": [{"at_us": 10, "bytes": 300}, {"at_us": 20, "bytes": 5000}, {"at_us": 30, "bytes": 0}]},
                      {"id": "b", "memory_resource": "a GPU", "memory_bytes": 1000,
                       "taken": [{"at_us": 0, "bytes": 100}]}]})",
      "text");
  const auto clock = std::make_shared<VirtualClock>(std::chrono::hours(1));
  const auto devices = make_sim_devices(machine.devices, clock);
  auto buffer = devices[1]->allocate(400, BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  const auto at = [&](int us) {
    clock->at(std::chrono::hours(1) + std::chrono::microseconds(us), [] {});
    EXPECT_TRUE(clock->advance());
    EXPECT_EQ(devices[1]->memory_available(), devices[2]->memory_available());
    return *devices[1]->memory_available();
  };
  EXPECT_EQ(at(5), 500U);
  EXPECT_EQ(at(15), 200U);
  EXPECT_EQ(devices[2]->allocate(201, BufferUse::values).error().code, Code::out_of_memory);
  EXPECT_EQ(at(25), 0U) << "it takes whatever is free, but no more";
  *buffer = nullptr;
  EXPECT_EQ(*devices[1]->memory_available(), 0U);
  EXPECT_EQ(at(35), 900U);
  take_memory(*devices[2], 150);
  EXPECT_EQ(*devices[1]->memory_available(), 750U);
}

TEST(Machine, PoolsOfOneMemoryTakeFromTheSameBytes) {
  const Machine machine = *machine_from_json(
      R"({"devices": [{"type": "cpu"}, {"id": "a", "memory_resource": "a GPU", "memory_bytes": 1000},
                      {"id": "b", "memory_resource": "a GPU", "memory_bytes": 1000}]})",
      "text");
  const auto devices = make_sim_devices(machine.devices, std::make_shared<VirtualClock>());
  EXPECT_NE(devices[1]->info().memory_pool, devices[2]->info().memory_pool);
  EXPECT_EQ(devices[1]->info().memory_resource, devices[2]->info().memory_resource);
  const auto buffer = devices[1]->allocate(600, BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(devices[2]->memory_available(), 400U);
  EXPECT_EQ(devices[2]->allocate(401, BufferUse::values).error().code, Code::out_of_memory);
}

TEST(Machine, WhatIsInTheHostsMemoryNeedsNoTimeToGetThere) {
  const Machine machine = *machine_from_json(with(R"("id": "gpu")"), "text");
  const auto clock = std::make_shared<VirtualClock>();
  const auto devices = make_sim_devices(machine.devices, clock);
  const std::vector<std::byte> bytes(6000);
  for (const auto& device : devices) {
    const auto before = clock->now();
    const auto buffer = std::move(*device->allocate(bytes.size(), BufferUse::values));
    ASSERT_TRUE(device->write({buffer.get(), 0, bytes.size()}, bytes).wait().has_value());
    EXPECT_EQ(clock->now() - before, std::chrono::microseconds(device->info().is_host_cpu() ? 0 : 11))
        << device->info().id;
  }
}

}  // namespace
}  // namespace shunt::sim
