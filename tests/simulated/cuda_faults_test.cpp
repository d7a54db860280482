// Failures of the simulated CUDA device surface as the right code at the right event, without leaks.
#include <chrono>
#include <numeric>

#include "simulated/doubling.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

class SimulatedFaults : public Doubling {
 protected:
  void SetUp() override { open(Simulation::open("cuda")); }
  void TearDown() override {
    close();
    EXPECT_EQ(Simulation::control().live_objects(), before_);
  }

  Simulation simulation_;
  std::uint64_t before_ = Simulation::control().live_objects();
};

TEST_F(SimulatedFaults, OneGraphServesEveryStep) {
  const std::uint64_t graphs = Simulation::control().graphs();
  const std::uint64_t launches = Simulation::control().launches();
  for (const std::uint32_t tokens : {7U, 30U}) {
    Event event = device().submit(*program_, {.parameters = {.tokens = tokens}});
    ASSERT_TRUE(event.wait().has_value());
    EXPECT_EQ(sum_of_result(), 2.0F * static_cast<float>(tokens));
  }
  EXPECT_EQ(Simulation::control().graphs(), graphs);
  EXPECT_EQ(Simulation::control().launches(), launches + 2);
}

TEST_F(SimulatedFaults, AnOpAloneIsTimedByTheDevice) {
  EXPECT_FALSE(program_->op_ns().has_value());
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(device().submit(*program_, {.parameters = {.tokens = kElements}, .op = 0}).wait().has_value());
    EXPECT_NEAR(static_cast<double>(program_->op_ns().value_or(0)), 1000, 1) << "one kernel";
  }
  EXPECT_EQ(sum_of_result(), 2.0F * kElements);
}

TEST_F(SimulatedFaults, AnEventIsPendingUntilTheDeviceIsAsked) {
  Event event = submit();
  EXPECT_FALSE(event.poll());
  EXPECT_TRUE(event.wait().has_value());
  EXPECT_FALSE(device().advance()) << "nothing is left to do";
}

TEST_F(SimulatedFaults, ManyBytesTakeSeveralTurnsThroughPinnedMemory) {
  constexpr std::size_t kMany = 5'000'001;  // floats; five pieces and a remainder
  auto buffer = device().allocate(kMany * sizeof(float), BufferUse::weights);
  ASSERT_TRUE(buffer.has_value());
  std::vector<float> sent(kMany);
  std::iota(sent.begin(), sent.end(), 0.0F);
  const Binding all{buffer->get(), 0, kMany * sizeof(float)};
  ASSERT_TRUE(device().write(all, std::as_bytes(std::span(sent))).wait().has_value());
  std::vector<float> came(kMany);
  Event read = device().read(all, std::as_writable_bytes(std::span(came)));
  std::ranges::fill(sent, -1.0F);  // the caller may reuse it once write() has returned
  ASSERT_TRUE(read.wait().has_value());
  std::iota(sent.begin(), sent.end(), 0.0F);
  EXPECT_EQ(came, sent);
}

TEST_F(SimulatedFaults, OutOfMemoryLeavesTheDeviceAsItWas) {
  Simulation::control().set_fault(Fault::out_of_memory);
  const auto buffer = device().allocate(1 << 20, BufferUse::values);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  EXPECT_NE(buffer.error().message.find("1048576 bytes"), std::string::npos) << buffer.error().message;
  EXPECT_EQ(prepare().error().code, Code::out_of_memory);
  Simulation::control().set_fault(Fault::none);
  EXPECT_TRUE(device().health().status.has_value());
  EXPECT_TRUE(submit().wait().has_value());
  EXPECT_LE(device().memory_available().value_or(device().info().memory_bytes) + 2 * kBytes,
            device().info().memory_bytes);
}

TEST_F(SimulatedFaults, ALateErrorEndsTheEventOfItsProgramAndAllAfterIt) {
  Simulation::control().set_fault(Fault::illegal_address);
  Event event = submit();
  EXPECT_FALSE(event.poll()) << "the driver does not know yet";
  std::vector<float> values(kElements);
  Event read = device().read({y_.get(), 0, kBytes}, std::as_writable_bytes(std::span(values)));
  const Status lost = event.wait();
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
  EXPECT_NE(lost.error().message.find("program \"sums\" on cuda:0"), std::string::npos) << lost.error().message;
  EXPECT_EQ(read.wait().error().code, Code::device_lost);
  EXPECT_EQ(device().health().status.error().code, Code::device_lost);
  EXPECT_EQ(device().health().epoch, 1U);
  EXPECT_EQ(submit().wait().error().code, Code::device_lost);
  EXPECT_EQ(device().allocate(16, BufferUse::values).error().code, Code::device_lost);
  close();
  EXPECT_EQ(Simulation::control().live_objects(), before_);
  open(Simulation::open("cuda"));
  EXPECT_TRUE(submit().wait().has_value()) << "a new context works again";
}

TEST_F(SimulatedFaults, WhatNeverEndsIsTimedOutAndItsMemoryIsKept) {
  Simulation::control().set_fault(Fault::never_done);
  const std::uint64_t held = Simulation::control().live_objects();
  Event event = submit(std::chrono::nanoseconds(0));
  const Status late = event.wait();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::timed_out);
  EXPECT_EQ(device().health().status.error().code, Code::timed_out);
  EXPECT_EQ(submit().wait().error().code, Code::timed_out);
  std::vector<std::byte> bytes(kBytes);
  EXPECT_EQ(device().read({y_.get(), 0, kBytes}, bytes).wait().error().code, Code::timed_out);
  EXPECT_EQ(device().write({x_.get(), 0, kBytes}, bytes).wait().error().code, Code::timed_out);
  program_.reset();
  y_.reset();
  EXPECT_EQ(Simulation::control().live_objects(), held) << "the kernel may still write there";
  Simulation::control().set_fault(Fault::none);
}

TEST_F(SimulatedFaults, AWriteBehindWhatNeverEndsIsTimedOutToo) {
  Simulation::control().set_fault(Fault::never_done);
  Event event = submit(std::chrono::nanoseconds(0));
  const std::uint64_t many = std::uint64_t{32} << 20U;
  auto buffer = device().allocate(many, BufferUse::weights);
  ASSERT_TRUE(buffer.has_value());
  const std::vector<std::byte> bytes(many);
  EXPECT_EQ(device().write({buffer->get(), 0, many}, bytes).wait().error().code, Code::timed_out);
  EXPECT_EQ(event.wait().error().code, Code::timed_out);
  Simulation::control().set_fault(Fault::none);
}

TEST_F(SimulatedFaults, AKernelThatDoesNotLoadIsNamed) {
  program_.reset();
  Simulation::control().set_fault(Fault::bad_image);
  Operand wide = Operand::contiguous(DType::F32, {4, 4});
  Operand ids = Operand::contiguous(DType::I32, {4});
  const std::vector<const Operand*> rows = {&wide, &ids};
  auto ids_buffer = allocate();
  const ProgramOp op{.call = {.op = Op::gather, .attributes = &attributes_, .inputs = rows, .output = &wide},
                     .inputs = {{x_.get(), 0, 64}, {ids_buffer.get(), 0, 16}},
                     .output = {y_.get(), 0, 64},
                     .name = "rows"};
  const auto program = device().prepare({.name = "rows", .ops = std::span(&op, 1)});
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, Code::internal);
  EXPECT_NE(program.error().message.find("kernel gather"), std::string::npos) << program.error().message;
}

TEST(SimulatedAbsence, SaysAtWhichStageItStopped) {
  {
    const Simulation simulation("/nowhere/libnothing.so");
    for (const char* api : {"cuda", "hip"}) {
      const BackendReport report = Simulation::open(api);
      EXPECT_TRUE(report.devices.empty());
      EXPECT_NE(report.absent_because.find("/nowhere/libnothing.so of SHUNT_"), std::string::npos)
          << report.absent_because;
    }
  }
  {
    const Simulation simulation("libm.so.6");
    EXPECT_NE(Simulation::open("cuda").absent_because.find("libm.so.6 lacks cu"), std::string::npos);
    EXPECT_NE(Simulation::open("hip").absent_because.find("libm.so.6 lacks hip"), std::string::npos);
  }
  const Simulation simulation;
  Simulation::control().set_fault(Fault::no_device);
  EXPECT_NE(Simulation::open("cuda").absent_because.find("cuInit: no device"), std::string::npos);
  EXPECT_NE(Simulation::open("hip").absent_because.find("hipInit: no device"), std::string::npos);
}

TEST(SimulatedAbsence, ATargetThatTheGpuCannotRunIsRefused) {
  const Simulation simulation;
  struct Case {
    const char* target;
    const char* words;
  };
  for (const Case& each : {Case{"abc", "SHUNT_CUDA_TARGET is \"abc\", which is no compute capability"},
                           Case{"8.0", "set it to a number such as 80, for 8.0, or unset it"}, Case{"9", "is \"9\""}}) {
    const Target target(each.target);
    const BackendReport report = Simulation::open("cuda");
    EXPECT_TRUE(report.devices.empty()) << each.target;
    EXPECT_EQ(report.stage, StartStage::lacks) << each.target;
    EXPECT_NE(report.absent_because.find(each.words), std::string::npos) << report.absent_because;
  }
  for (const char* const name : {"75", "90", "100"}) {
    const Target target(name);
    EXPECT_EQ(Simulation::open("cuda").devices.size(), 1U) << name;
  }
}

// Returns what a GPU of AMD's with that name is opened as.
BackendReport open_amd(const char* gfx) {
  const Simulation simulation(SHUNT_SIMULATED_AMD_DRIVER);
  const Variable name("SHUNT_SIMULATED_GFX", gfx);
  return Simulation::open("hip");
}

TEST(SimulatedAmd, ItsGpusAreToldApartByTheirGfxNumbers) {
  const BackendReport with = open_amd("gfx90a:sramecc+:xnack-");
  if (with.stage == StartStage::not_built) GTEST_SKIP() << "this build has no code objects";
  ASSERT_EQ(with.devices.size(), 1U) << with.absent_because;
  const DeviceInfo& info = with.devices[0]->info();
  EXPECT_EQ(info.details.front(), "gfx90a");
  EXPECT_TRUE(info.features.contains(DeviceFeature::cooperative_matrix));
  const BackendReport plain = open_amd("gfx1030");
  ASSERT_EQ(plain.devices.size(), 1U) << plain.absent_because;
  EXPECT_FALSE(plain.devices[0]->info().features.contains(DeviceFeature::cooperative_matrix));
}

TEST(SimulatedAmd, AGpuWithoutCodeObjectsIsRefused) {
  const BackendReport without = open_amd("gfx601");
  if (without.stage == StartStage::not_built) GTEST_SKIP() << "this build has no code objects";
  EXPECT_TRUE(without.devices.empty());
  EXPECT_EQ(without.stage, StartStage::lacks);
  EXPECT_NE(without.absent_because.find("not for gfx601; build one with -DSHUNT_HIP_ARCHITECTURES=gfx601"),
            std::string::npos)
      << without.absent_because;
  EXPECT_NE(open_amd("Vega").absent_because.find("the GPU is a \"Vega\", which has no gfx number"), std::string::npos);
}

TEST(SimulatedAbsence, SimulatedDevicesAreNeverTakenForGpus) {
  const Simulation simulation;
  const auto registry = open_devices({.devices = "cpu,cuda,hip", .threads = 1, .pin_to_cpus = {}, .known = {}});
  ASSERT_TRUE(registry.has_value());
  const auto chosen = select_devices(*registry, "");
  ASSERT_TRUE(chosen.has_value());
  for (const Device* device : *chosen) EXPECT_NE(device->info().vendor, "simulated");
  const auto named = select_devices(*registry, "cuda:0,hip:0");
  ASSERT_TRUE(named.has_value());
  for (const Device* device : *named) {
    EXPECT_EQ(device->info().type, DeviceType::cpu);
    EXPECT_EQ(device->info().compute_resource, "cpu");
    EXPECT_EQ(device->info().details.back(), "simulated");
  }
}

}  // namespace
}  // namespace shunt::simulated
