// Simulated devices: when things happen on their clock, and how each fault looks from outside.
#include "devices/sim/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "devices/discovery/registry.h"

namespace shunt::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(VirtualClock, LetsOneEventAfterTheOtherHappen) {
  VirtualClock clock(nanoseconds(100));
  std::string order;
  const auto note = [&](char letter) { return [&order, letter] { order += letter; }; };
  clock.at(nanoseconds(300), note('c'));
  clock.at(nanoseconds(200), note('a'));
  clock.at(nanoseconds(200), note('b'));
  clock.at(nanoseconds(0), note('-'));
  EXPECT_EQ(clock.now(), nanoseconds(100));
  EXPECT_TRUE(clock.advance());
  EXPECT_EQ(order, "-");
  EXPECT_EQ(clock.now(), nanoseconds(100)) << "what is past happens now";
  EXPECT_TRUE(clock.advance());
  EXPECT_EQ(clock.now(), nanoseconds(200));
  EXPECT_TRUE(clock.advance() && clock.advance());
  EXPECT_EQ(order, "-abc");
  EXPECT_FALSE(clock.advance());
  EXPECT_EQ(clock.now(), nanoseconds(300));
}

TEST(VirtualClock, AnEventMayPlanOthers) {
  VirtualClock clock;
  int happened = 0;
  clock.at(nanoseconds(5), [&] { clock.at(clock.now() + nanoseconds(5), [&] { ++happened; }); });
  EXPECT_TRUE(clock.advance() && clock.advance());
  EXPECT_EQ(happened, 1);
  EXPECT_EQ(clock.now(), nanoseconds(10));
}

// A program of three ops: y = x + x, y + y, y + y over four floats. An op takes 3 us, the launch 10 us.
constexpr std::uint64_t kBytes = 16;
const Spec kSlow{.launch_us = 10,
                 .op_us = 3,
                 .rate = {.flops_per_s = 1e30, .bytes_per_s = 1e30},
                 .link = {.latency_us = 2, .bytes_per_s = 4e6},
                 .memory_bytes = 1000,
                 .watchdog_us = 500};
constexpr auto kProgramTime = microseconds(10 + 3 * 3);
constexpr auto kTransferTime = microseconds(2 + 4);

struct Machine {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::unique_ptr<Device> device;
  Operand operand = Operand::contiguous(DType::F32, {4, 1});
  const Operand* inputs[2] = {&operand, &operand};
  Attributes attributes;
  std::unique_ptr<Buffer> buffer;
  std::unique_ptr<Program> program;

  explicit Machine(Spec spec) : device(make_sim_device(std::move(spec), clock)) { prepare(); }
  explicit Machine(const Faults& faults)
      : Machine([&] {
          Spec spec = kSlow;
          spec.faults = faults;
          return spec;
        }()) {}

  void prepare() {
    auto memory = device->allocate(2 * kBytes, BufferUse::values);
    if (!memory) return;
    buffer = std::move(*memory);
    std::vector<ProgramOp> ops;
    for (const char* name : {"first", "second", "third"}) {
      const Binding x{buffer.get(), ops.empty() ? 0 : kBytes, kBytes};
      ops.push_back({.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &operand},
                     .inputs = {x, x},
                     .output = {buffer.get(), kBytes, kBytes},
                     .name = name});
    }
    program = std::move(*device->prepare({.name = "sums", .ops = ops}));
  }

  [[nodiscard]] Event write(const std::vector<float>& values) const {
    return device->write({buffer.get(), 0, kBytes}, std::as_bytes(std::span(values)));
  }
  [[nodiscard]] Event read(std::vector<float>& values) const {
    values.assign(4, -1);
    return device->read({buffer.get(), kBytes, kBytes}, std::as_writable_bytes(std::span(values)));
  }
  [[nodiscard]] Event submit(const Submission& submission = {}) const { return device->submit(*program, submission); }

  // Expects the device to be lost for good, to say so in every call, and to hold no memory.
  void expect_lost(Code code) {
    EXPECT_EQ(device->health().status.error().code, code);
    EXPECT_EQ(device->health().epoch, 1U);
    std::vector<float> values(4);
    for (const Event& event : {submit(), write(values), read(values)}) {
      ASSERT_TRUE(event.poll());
      EXPECT_EQ(event.status().error().code, code);
    }
    EXPECT_EQ(device->allocate(1, BufferUse::values).error().code, code);
    EXPECT_EQ(device->prepare({}).error().code, code);
    EXPECT_EQ(device->health().epoch, 1U);
    while (clock->advance()) {
    }
    expect_nothing_kept();
  }
  void expect_nothing_kept() {
    program.reset();
    buffer.reset();
    EXPECT_EQ(device->memory_available(), device->info().memory_bytes);
  }
};

const std::vector<float> kOnes{1, 1, 1, 1};

TEST(SimDevice, ComputesAndTakesItsTime) {
  Machine machine(kSlow);
  Event written = machine.write(kOnes);
  EXPECT_FALSE(written.poll());
  EXPECT_TRUE(written.wait().has_value());
  EXPECT_EQ(machine.clock->now(), kTransferTime);
  EXPECT_TRUE(machine.submit().wait().has_value());
  EXPECT_EQ(machine.clock->now(), kTransferTime + kProgramTime);
  std::vector<float> values;
  EXPECT_TRUE(machine.read(values).wait().has_value());
  EXPECT_EQ(machine.clock->now(), 2 * kTransferTime + kProgramTime);
  EXPECT_EQ(values, std::vector<float>(4, 8));
  machine.expect_nothing_kept();
}

TEST(SimDevice, DoesNothingBeforeItsTimeHasCome) {
  Machine machine(kSlow);
  std::vector<float> values;
  const Event written = machine.write(kOnes);
  const Event read = machine.read(values);
  EXPECT_EQ(values, std::vector<float>(4, -1));
  EXPECT_FALSE(written.poll() || read.poll());
  EXPECT_TRUE(machine.device->advance());
  EXPECT_TRUE(written.poll());
  EXPECT_FALSE(read.poll()) << "one event at a time";
  EXPECT_TRUE(machine.device->advance());
  EXPECT_FALSE(machine.device->advance());
  EXPECT_TRUE(read.poll());
  EXPECT_EQ(machine.clock->now(), kTransferTime) << "each direction of the link has its own time";
}

TEST(SimDevice, ComputesOneThingAfterTheOtherBesideItsTransfers) {
  Machine machine(kSlow);
  Event written = machine.write(kOnes);
  Event first = machine.submit();
  Event second = machine.submit();
  Event again = machine.write(kOnes);
  EXPECT_TRUE(again.wait().has_value());
  EXPECT_EQ(machine.clock->now(), 2 * kTransferTime);
  EXPECT_TRUE(first.wait().has_value());
  EXPECT_EQ(machine.clock->now(), kProgramTime);
  EXPECT_TRUE(second.wait().has_value());
  EXPECT_EQ(machine.clock->now(), 2 * kProgramTime);
}

TEST(SimDevice, HasRatesOfItsOwnForAFamily) {
  const Machine model(kSlow);
  const double flops =
      info_of(Op::add)
          .rule
          ->cost({.op = Op::add, .attributes = &model.attributes, .inputs = model.inputs, .output = &model.operand})
          .flops;
  Spec spec = kSlow;
  spec.rate_of_family["linear"] = {.flops_per_s = 1, .bytes_per_s = 1};
  spec.rate_of_family["elementwise"] = {.flops_per_s = flops * 1e6, .bytes_per_s = 1e30};  // one microsecond per op
  Machine machine(spec);
  EXPECT_TRUE(machine.submit().wait().has_value());
  EXPECT_EQ(machine.clock->now(), kProgramTime + microseconds(3));
}

TEST(SimDevice, WithoutComputingTakesTheSameTimeAndNoMemory) {
  Spec spec = kSlow;
  spec.computes = false;
  spec.memory_bytes = std::uint64_t{1} << 50U;
  Machine machine(spec);
  const auto huge = machine.device->allocate(std::uint64_t{1} << 49U, BufferUse::weights);
  ASSERT_TRUE(huge.has_value());
  EXPECT_TRUE(machine.write(kOnes).wait().has_value());
  EXPECT_TRUE(machine.submit().wait().has_value());
  EXPECT_EQ(machine.clock->now(), kTransferTime + kProgramTime);
  std::vector<float> values;
  EXPECT_TRUE(machine.read(values).wait().has_value());
  EXPECT_EQ(values, std::vector<float>(4, 0));

  spec = kSlow;
  spec.id = "sim:1";
  const auto peer = make_sim_device(spec, machine.clock);
  const auto copy = std::move(*peer->allocate(kBytes, BufferUse::values));
  const Binding there{copy.get(), 0, kBytes};
  const Binding here{machine.buffer.get(), kBytes, kBytes};
  ASSERT_TRUE(peer->write(there, std::as_bytes(std::span(kOnes))).wait().has_value());
  EXPECT_TRUE(machine.device->copy_from_peer(*peer, there, here).wait().has_value());
  EXPECT_TRUE(peer->copy_from_peer(*machine.device, here, there).wait().has_value());
  ASSERT_TRUE(peer->read(there, std::as_writable_bytes(std::span(values))).wait().has_value());
  EXPECT_EQ(values, std::vector<float>(4, 0));
}

TEST(SimDevice, KeepsToItsBudget) {
  Machine machine(kSlow);
  EXPECT_EQ(machine.device->memory_available(), 904U);
  const auto refused = machine.device->allocate(905, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_EQ(refused.error().message, "905 bytes of sim:0 wanted, 904 bytes of 1000 bytes are free");
  EXPECT_TRUE(machine.device->allocate(904, BufferUse::values).has_value());
  EXPECT_TRUE(machine.device->allocate(904, BufferUse::values).has_value()) << "the first was given back";
  machine.expect_nothing_kept();
}

TEST(SimDevice, DeclinesWhatItIsToldToLack) {
  Spec spec = kSlow;
  spec.lacks = {Op::mul};
  const Machine machine(spec);
  const OpCall add{
      .op = Op::add, .attributes = &machine.attributes, .inputs = machine.inputs, .output = &machine.operand};
  OpCall mul = add;
  mul.op = Op::mul;
  EXPECT_TRUE(machine.device->supports(std::span(&add, 1)));
  EXPECT_EQ(machine.device->supports(std::span(&mul, 1)).reason, "mul: sim:0 lacks it by its description");
}

TEST(SimDevice, CopiesFromItsPeersAndFromNobodyElse) {
  Machine machine(kSlow);
  Spec spec = kSlow;
  spec.id = "sim:1";
  const auto peer = make_sim_device(spec, machine.clock);
  spec.link.peers = false;
  const auto unlinked = make_sim_device(spec, machine.clock);
  const auto elsewhere = make_sim_device(spec, std::make_shared<VirtualClock>());
  EXPECT_TRUE(machine.write(kOnes).wait().has_value());
  const Binding from{machine.buffer.get(), 0, kBytes};
  for (Device* device : {unlinked.get(), elsewhere.get()}) {
    const auto buffer = std::move(*device->allocate(kBytes, BufferUse::values));
    EXPECT_EQ(device->copy_from_peer(*machine.device, from, {buffer.get(), 0, kBytes}).wait().error().code,
              Code::unsupported);
  }
  const auto buffer = std::move(*peer->allocate(kBytes, BufferUse::values));
  const nanoseconds before = machine.clock->now();
  ASSERT_TRUE(peer->copy_from_peer(*machine.device, from, {buffer.get(), 0, kBytes}).wait().has_value());
  EXPECT_EQ(machine.clock->now() - before, kTransferTime);
  std::vector<float> values(4);
  ASSERT_TRUE(peer->read({buffer.get(), 0, kBytes}, std::as_writable_bytes(std::span(values))).wait().has_value());
  EXPECT_EQ(values, kOnes);
}

TEST(SimDevice, AreMadeWhereTheyAreNamed) {
  const auto count = [](std::string_view list) { return open_sim({.devices = list})->devices.size(); };
  EXPECT_EQ(count(""), 0U);
  EXPECT_EQ(count("cpu,vulkan:0"), 0U);
  EXPECT_EQ(count("sim"), 1U);
  EXPECT_EQ(count("cpu, sim:2 ,sim:0"), 3U);
  for (const char* wrong : {"sim:", "sim:x", "sim:1x", "sim:-1", "sim:64", "sim:99999999999999999999"})
    EXPECT_EQ(count(wrong), 0U) << wrong;
  EXPECT_EQ(open_sim({})->absent_because, "a device is simulated where it is named, as sim:0 or sim:1");
  const Registry registry = *open_devices({.devices = "sim:1,sim:0"});
  const auto chosen = select_devices(registry, "sim:1,sim:0");
  ASSERT_TRUE(chosen.has_value());
  ASSERT_EQ(chosen->size(), 2U);
  EXPECT_EQ((*chosen)[0]->info().id, "sim:1");
  EXPECT_TRUE((*chosen)[0]->info().emulated);
}

TEST(SimDevice, RecordsTheTimesOfItsClock) {
  trace::Recorder recorder;
  recorder.set_enabled(true);
  Machine machine(kSlow);
  machine.device = make_sim_device(kSlow, machine.clock, &recorder);
  machine.prepare();
  EXPECT_TRUE(machine.submit({.step = 7, .profile = true}).wait().has_value());
  const auto events = recorder.snapshot();
  ASSERT_EQ(events.size(), 4U);
  std::uint64_t begin = 10'000;
  for (std::size_t op = 0; op < 3; ++op) {
    EXPECT_EQ(events[op].start_ns, begin);
    EXPECT_EQ(events[op].duration_ns, 3000U);
    begin += 3000;
  }
  EXPECT_EQ(events[3].start_ns, 0U);
  EXPECT_EQ(events[3].duration_ns, 19'000U);
  EXPECT_EQ(events[3].step, 7U);
}

TEST(SimDevice, ServesAThreadPerDeviceOnOneClock) {
  const auto clock = std::make_shared<VirtualClock>();
  std::vector<std::unique_ptr<Device>> devices;
  for (const char* id : {"sim:0", "sim:1", "sim:2"}) {
    Spec spec = kSlow;
    spec.id = id;
    devices.push_back(make_sim_device(spec, clock));
  }
  std::vector<std::thread> users;
  for (const auto& device : devices)
    users.emplace_back([&clock, &device] {
      const auto buffer = std::move(*device->allocate(kBytes, BufferUse::values));
      for (int repeat = 0; repeat < 300; ++repeat) {
        const std::vector<float> values(4, static_cast<float>(repeat));
        std::vector<float> back(4);
        ASSERT_TRUE(device->write({buffer.get(), 0, kBytes}, std::as_bytes(std::span(values))).wait().has_value());
        ASSERT_TRUE(
            device->read({buffer.get(), 0, kBytes}, std::as_writable_bytes(std::span(back))).wait().has_value());
        ASSERT_EQ(back, values);
      }
      EXPECT_GE(clock->now(), 600 * kTransferTime);
    });
  for (std::thread& user : users) user.join();
  EXPECT_FALSE(clock->advance());
}

TEST(SimDevice, MayGoWithWorkUndone) {
  const auto clock = std::make_shared<VirtualClock>();
  const auto device = make_sim_device(kSlow, clock);
  const auto buffer = std::move(*device->allocate(kBytes, BufferUse::values));
  {
    Spec spec = kSlow;
    spec.id = "sim:1";
    const auto gone = make_sim_device(spec, clock);
    const auto its = std::move(*gone->allocate(kBytes, BufferUse::values));
    static_cast<void>(gone->write({its.get(), 0, kBytes}, std::as_bytes(std::span(kOnes))));
  }
  EXPECT_TRUE(device->write({buffer.get(), 0, kBytes}, std::as_bytes(std::span(kOnes))).wait().has_value());
}

TEST(SimFaults, AnAllocationFailsAndThoseAfterIt) {
  Machine machine(Faults{.allocation_fails = 2});
  EXPECT_TRUE(machine.device->allocate(1, BufferUse::values).has_value());
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto refused = machine.device->allocate(1, BufferUse::values);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::out_of_memory);
  }
  EXPECT_TRUE(machine.submit().wait().has_value()) << "what was there before goes on";
  EXPECT_TRUE(machine.device->health().status.has_value());
  EXPECT_EQ(machine.device->health().epoch, 0U);
  machine.expect_nothing_kept();
}

TEST(SimFaults, ALostDeviceEndsAllThatIsPending) {
  Machine machine(Faults{.lost_at_op = 4});  // the second op of the second submission
  Event first = machine.submit();
  Event lost = machine.submit();
  Event after = machine.submit();
  EXPECT_TRUE(first.wait().has_value());
  EXPECT_TRUE(machine.device->health().status.has_value());
  const Status status = lost.wait();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::device_lost);
  EXPECT_EQ(status.error().message, "sim:0 was lost in program \"sums\" at \"second\"");
  EXPECT_EQ(machine.clock->now(), kProgramTime + microseconds(10 + 3));
  ASSERT_TRUE(after.poll());
  EXPECT_EQ(after.status().error().code, Code::device_lost);
  machine.expect_lost(Code::device_lost);
}

TEST(SimFaults, AProgramThatNeverEndsTimesOutOnTheClock) {
  Machine machine(Faults{.hangs_at_op = 1});
  const Status status = machine.submit({.timeout = microseconds(50)}).wait();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::timed_out);
  EXPECT_EQ(status.error().message, "program \"sums\" on sim:0 did not end in the 50 us it was given");
  EXPECT_EQ(machine.clock->now(), microseconds(50));
  machine.expect_lost(Code::timed_out);
}

TEST(SimFaults, AProgramThatNeverEndsAndMayTakeForEverIsEndedByTheWatchdog) {
  for (const std::optional<nanoseconds> timeout : {std::optional<nanoseconds>(), std::optional(nanoseconds::max())}) {
    Machine machine(Faults{.hangs_at_op = 0});
    const Status status = machine.submit({.timeout = timeout}).wait();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::device_lost);
    EXPECT_NE(status.error().message.find("watchdog of sim:0"), std::string::npos) << status.error().message;
    EXPECT_EQ(machine.clock->now(), microseconds(500));
    machine.expect_lost(Code::device_lost);
  }
}

TEST(SimFaults, WhatComesAfterAProgramThatNeverEndsNeverBegins) {
  Machine machine(Faults{.hangs_at_op = 2});
  Event hangs = machine.submit();
  Event after = machine.submit();
  EXPECT_EQ(after.wait().error().code, Code::device_lost);
  EXPECT_EQ(machine.clock->now(), microseconds(500));
  ASSERT_TRUE(hangs.poll());
  machine.expect_lost(Code::device_lost);
}

TEST(SimFaults, AProgramThatTakesLongerThanItMayTimesOut) {
  Machine machine(kSlow);
  EXPECT_TRUE(machine.submit({.timeout = kProgramTime}).wait().has_value());
  EXPECT_EQ(machine.submit({.timeout = kProgramTime - nanoseconds(1)}).wait().error().code, Code::timed_out);
  EXPECT_EQ(machine.clock->now(), 2 * kProgramTime - nanoseconds(1));
  machine.expect_lost(Code::timed_out);
}

TEST(SimFaults, AnErrorMayComeLate) {
  Machine machine(Faults{.error_at_op = 1});
  Event event = machine.submit();
  EXPECT_FALSE(event.poll()) << "nothing is known of it yet";
  const Status status = event.wait();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::internal);
  EXPECT_NE(status.error().message.find("\"second\""), std::string::npos) << status.error().message;
  EXPECT_EQ(machine.clock->now(), kProgramTime);
  EXPECT_TRUE(machine.device->health().status.has_value());
  EXPECT_EQ(machine.device->health().epoch, 0U);
  EXPECT_TRUE(machine.submit().wait().has_value()) << "the device lives";
  machine.expect_nothing_kept();
}

TEST(SimFaults, AResultMayBeNoNumberAndNobodySaysSo) {
  Machine machine(Faults{.nonfinite_at_op = 3});
  std::vector<float> values;
  EXPECT_TRUE(machine.write(kOnes).wait().has_value());
  EXPECT_TRUE(machine.submit().wait().has_value());
  EXPECT_TRUE(machine.read(values).wait().has_value());
  EXPECT_EQ(values, std::vector<float>(4, 8));
  EXPECT_TRUE(machine.submit().wait().has_value());
  EXPECT_TRUE(machine.read(values).wait().has_value());
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
  EXPECT_TRUE(machine.device->health().status.has_value());
}

TEST(SimFaults, ResultsMayBeWrongFromAnOpOn) {
  Machine machine(Faults{.wrong_at_op = 3});
  std::vector<float> values;
  for (const float expected : {8.0F, -8.0F, -8.0F}) {
    EXPECT_TRUE(machine.write(kOnes).wait().has_value());
    EXPECT_TRUE(machine.submit().wait().has_value());
    EXPECT_TRUE(machine.read(values).wait().has_value());
    EXPECT_EQ(values, std::vector<float>(4, expected));
  }
}

}  // namespace
}  // namespace shunt::sim
