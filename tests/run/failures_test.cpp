// Computations while devices fail.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "devices/sim/device.h"
#include "run/graphs.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

using Outputs = std::array<float, 16>;

class FailingComputation : public testing::Test {
 protected:
  // A runtime with a simulated device that has faults, and the scalar processor.
  std::unique_ptr<Runtime> open(const std::string& faults, bool strict = false) {
    auto runtime = Runtime::create({.threads = 1,
                                    .devices = "sim:0,cpu:scalar",
                                    .calibrated = false,
                                    .strict = strict,
                                    .faults = faults,
                                    .on_notice = [this](const std::string& text) { notices_.push_back(text); }});
    EXPECT_TRUE(runtime.has_value()) << runtime.error().message;
    return std::move(*runtime);
  }
  static Graph doubling() {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, Shape{16});
    builder.output(builder.add(x, x));
    return *std::move(builder).finish();
  }
  // A graph that writes x to its state at a position and outputs the whole state.
  static Graph keeping() {
    GraphBuilder builder;
    const Tensor kept = builder.state("kept", DType::F32, {1, 4, 1, 16});
    const Tensor x = builder.input("x", DType::F32, {1, 1, 16});
    const Tensor position = builder.input("position", DType::I32, Shape{1});
    const Tensor zero = builder.input("zero", DType::I32, Shape{1});
    const Tensor pages = builder.input("pages", DType::I32, {1, 1});
    builder.output(builder.copy(builder.cache_write(kept, x, position, zero, pages)));
    auto graph = std::move(builder).finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().message;
    return std::move(*graph);
  }
  static Status keep(Computation& computation, std::int32_t position) {
    const std::int32_t zero = 0;
    SHUNT_TRY(computation.write("position", std::as_bytes(std::span(&position, 1))));
    SHUNT_TRY(computation.write("zero", std::as_bytes(std::span(&zero, 1))));
    SHUNT_TRY(computation.write("pages", std::as_bytes(std::span(&zero, 1))));
    SHUNT_TRY(write(computation, static_cast<float>(position + 1)));
    return computation.run();
  }
  // Returns the first element of each position.
  static std::vector<float> kept_by(const Computation& computation) {
    std::vector<float> all(64);
    const Status read = computation.read(0, 0, std::as_writable_bytes(std::span(all)));
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    return {all[0], all[16], all[32], all[48]};
  }

  static Status write(Computation& computation, float value) {
    Outputs x;
    x.fill(value);
    return computation.write("x", std::as_bytes(std::span(x)));
  }
  static float read(const Computation& computation) {
    Outputs y{};
    const Status read = computation.read(0, 0, std::as_writable_bytes(std::span(y)));
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    EXPECT_EQ(y.front(), y.back());
    return y.front();
  }

  std::vector<std::string> notices_;
};

TEST_F(FailingComputation, IsRightWhereverTheDeviceFails) {
  for (const char* fault : {"", "oom after 0 allocations", "lost at program 0", "error at program 0",
                            "lost at transfer 0", "error at transfer 1", "lost at transfer 2", "lost at op 0",
                            "hang at op 1", "error at op 1", "lost at op 2", "error at transfer 3"}) {
    SCOPED_TRACE(fault);
    notices_.clear();
    const auto runtime = open(*fault == 0 ? "" : std::string("sim:0 ") + fault);
    auto computation = Computation::create(doubling(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (const float value : {1.0F, 2.0F, 3.0F}) {
      ASSERT_TRUE(write(**computation, value).has_value());
      ASSERT_TRUE((*computation)->run().has_value());
      EXPECT_EQ(read(**computation), 2 * value);
    }
    EXPECT_EQ(notices_.size(), *fault == 0 ? 0U : 1U);
    const bool elsewhere = (*computation)->explain().find(" on sim:0: ") == std::string::npos;
    EXPECT_EQ(elsewhere, *fault != 0);
  }
}

TEST_F(FailingComputation, IsAnErrorWhereNothingMayRunElsewhere) {
  const auto runtime = open("sim:0 lost at op 1", true);
  auto computation = Computation::create(doubling(), *runtime, nullptr);
  ASSERT_TRUE(computation.has_value());
  ASSERT_TRUE(write(**computation, 1).has_value());
  ASSERT_TRUE((*computation)->run().has_value());
  const Status lost = (*computation)->run();
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
  EXPECT_EQ(lost.error().device, "sim:0");
}

TEST_F(FailingComputation, KeepsStateThatItsOwnerMakesAgain) {
  for (const char* fault : {"lost at op 2", "lost at op 3", "lost at op 4", "lost at op 5", "lost at op 6",
                            "lost at op 7", "nonfinite at op 3", "nonfinite at op 4", "nonfinite at op 7"}) {
    SCOPED_TRACE(fault);
    const auto runtime = open(std::string("sim:0 ") + fault);
    auto computation = Computation::create(keeping(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    std::int32_t done = 0;
    int rebuilt = 0;
    (*computation)->on_lost_state([&]() -> Status {
      ++rebuilt;
      for (std::int32_t position = 0; position < done; ++position) SHUNT_TRY(keep(**computation, position));
      return {};
    });
    for (; done < 4; ++done) ASSERT_TRUE(keep(**computation, done).has_value());
    EXPECT_EQ(rebuilt, 1);
    EXPECT_EQ(kept_by(**computation), (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST_F(FailingComputation, IsRightWhereADeviceMakesNumbersThatAreNotFinite) {
  for (const char* fault : {"nonfinite at op 0", "nonfinite at op 1", "nonfinite at op 2"}) {
    SCOPED_TRACE(fault);
    notices_.clear();
    const auto runtime = open(std::string("sim:0 ") + fault);
    auto computation = Computation::create(doubling(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (const float value : {1.0F, 2.0F, 3.0F}) {
      ASSERT_TRUE(write(**computation, value).has_value());
      ASSERT_TRUE((*computation)->run().has_value());
      EXPECT_EQ(read(**computation), 2 * value);
    }
    ASSERT_EQ(notices_.size(), 1U);
    EXPECT_NE(notices_[0].find("sim:0 failed"), std::string::npos) << notices_[0];
    EXPECT_NE(notices_[0].find("output 0 are not finite"), std::string::npos) << notices_[0];
  }
}

TEST_F(FailingComputation, GivesNumbersThatAreNotFiniteWhereTheGraphWantsThem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const bool strict : {false, true}) {
    notices_.clear();
    const auto runtime = open("", strict);
    auto computation = Computation::create(doubling(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (const float value : {kInfinity, 3.0F, kInfinity}) {
      ASSERT_TRUE(write(**computation, value).has_value());
      ASSERT_TRUE((*computation)->run().has_value());
      EXPECT_EQ(read(**computation), 2 * value);
    }
    // Each device was tried once without the other.
    EXPECT_EQ(notices_.size(), strict ? 0U : 2U);
    for (const std::string& notice : notices_)
      EXPECT_NE(notice.find("output 0 are not finite"), std::string::npos) << notice;
    EXPECT_NE((*computation)->explain().find(" on sim:0: "), std::string::npos) << (*computation)->explain();
  }
}

TEST_F(FailingComputation, BlamesNobodyForRowsThatWereNotComputed) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 4}, Extent::tokens);
  builder.output(builder.add(x, x));
  const auto runtime = open("");
  auto computation = Computation::create(*std::move(builder).finish(), *runtime, nullptr);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  Outputs y{};
  const auto read_all = [&] { return (*computation)->read(0, 0, std::as_writable_bytes(std::span(y))); };
  ASSERT_TRUE(write(**computation, std::numeric_limits<float>::quiet_NaN()).has_value());
  ASSERT_TRUE(read_all().has_value());
  ASSERT_TRUE((*computation)->run({.tokens = 4}).has_value());
  ASSERT_TRUE(write(**computation, 1).has_value());
  ASSERT_TRUE((*computation)->run({.tokens = 2}).has_value());
  ASSERT_TRUE(read_all().has_value());
  EXPECT_EQ(y[7], 2);
  EXPECT_TRUE(std::isnan(y[8]));
  EXPECT_TRUE(notices_.empty()) << notices_.front();
}

TEST_F(FailingComputation, HasNoStateToLoseBeforeARunHasWrittenIt) {
  for (const char* fault : {"lost at op 0", "lost at op 1", "error at op 1", "hang at op 0"}) {
    SCOPED_TRACE(fault);
    const auto runtime = open(std::string("sim:0 ") + fault);
    auto computation = Computation::create(keeping(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (std::int32_t position = 0; position < 3; ++position) {
      const Status kept = keep(**computation, position);
      ASSERT_TRUE(kept.has_value()) << kept.error().message;
    }
    EXPECT_EQ(kept_by(**computation), (std::vector<float>{1, 2, 3, 0}));
  }
}

TEST_F(FailingComputation, LosesNoStateThatIsOnlyRead) {
  for (const char* fault : {"lost at op 1", "lost at transfer 0", "lost at transfer 1", "error at transfer 3"}) {
    SCOPED_TRACE(fault);
    notices_.clear();
    GraphBuilder builder;
    const Tensor kept = builder.state("kept", DType::F32, {1, 1, 1, 16});
    builder.output(builder.add(kept, builder.input("x", DType::F32, {1, 1, 1, 16})));
    auto graph = std::move(builder).finish();
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    const auto runtime = open(std::string("sim:0 ") + fault);
    auto computation = Computation::create(*std::move(graph), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    for (const float value : {1.0F, 2.0F, 3.0F}) {
      ASSERT_TRUE(write(**computation, value).has_value());
      const Status run = (*computation)->run();
      ASSERT_TRUE(run.has_value()) << run.error().message;
      EXPECT_EQ(read(**computation), value);
    }
    EXPECT_EQ(notices_.size(), 1U);
  }
}

// Another program takes whatever memory becomes free.
TEST_F(FailingComputation, GivesUpMemoryOnlyIfItsStateCanBeMadeAgain) {
  for (const bool remakes : {true, false}) {
    SCOPED_TRACE(remakes);
    notices_.clear();
    const auto runtime = open("");
    Device& device = *opened(*runtime).handles()[0];
    auto computation = Computation::create(keeping(), *runtime, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    std::int32_t done = 0;
    if (remakes)
      (*computation)->on_lost_state([&]() -> Status {
        for (std::int32_t position = 0; position < done; ++position) SHUNT_TRY(keep(**computation, position));
        return {};
      });
    for (; done < 4; ++done) {
      if (done == 1) sim::take_memory(device, device.info().memory_bytes);
      ASSERT_TRUE(keep(**computation, done).has_value());
    }
    EXPECT_EQ(kept_by(**computation), (std::vector<float>{1, 2, 3, 4}));
    const bool moved = (*computation)->explain().find(" on sim:0: ") == std::string::npos;
    EXPECT_EQ(moved, remakes) << (*computation)->explain();
    EXPECT_EQ(notices_.empty(), !remakes);
  }
}

TEST_F(FailingComputation, LosesStateThatNobodyMakesAgain) {
  const auto runtime = open("sim:0 lost at op 3");
  auto computation = Computation::create(keeping(), *runtime, nullptr);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  ASSERT_TRUE(keep(**computation, 0).has_value());
  const Status lost = keep(**computation, 1);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
  EXPECT_NE(lost.error().message.find("on_lost_state"), std::string::npos) << lost.error().message;
  EXPECT_TRUE((*computation)->explain().empty());
  Outputs values{};
  EXPECT_EQ((*computation)->read(0, 0, std::as_writable_bytes(std::span(values))).error().code, Code::invalid);
}

}  // namespace
}  // namespace shunt
