// Measuring devices: the measurement recovers the speeds of simulated devices on their virtual clock.
#include "run/measure/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>

#include "devices/sim/device.h"
#include "plan/planner.h"
#include "run/measure/link_bench.h"
#include "run/measure/steady.h"

namespace shunt {
namespace {

constexpr OpSizes kTiny{.embedding = 32,
                        .feed_forward = 64,
                        .heads = 4,
                        .kv_heads = 2,
                        .head_dim = 8,
                        .vocabulary = 64,
                        .page_tokens = 4,
                        .prompt = 8,
                        .context = 16};

std::vector<BenchCase> cases_with(std::uint32_t prompt, std::initializer_list<Op> wanted) {
  OpSizes sizes = kTiny;
  sizes.prompt = prompt;
  std::vector<BenchCase> cases;
  for (const Op op : wanted) std::ranges::move(*bench_cases(op, sizes), std::back_inserter(cases));
  return cases;
}

sim::Spec told() {
  sim::Spec spec{.id = "sim:0", .memory_bytes = std::uint64_t{256} << 20U};
  spec.launch_us = 20;
  spec.op_us = 3;
  spec.rate = {.flops_per_s = 1e9, .bytes_per_s = 2e9};
  spec.rate_of_family["linear"] = {.flops_per_s = 5e8, .bytes_per_s = 1e9};
  spec.link = {.latency_us = 15, .bytes_per_s = 4e9};
  return spec;
}

DeviceProfile calibrated(Device& device, std::span<const BenchCase> cases) {
  auto profile = calibrate(device, cases, unmeasured(device.info()), {});
  EXPECT_TRUE(profile.has_value()) << profile.error().message;
  return std::move(*profile);
}

TEST(Calibration, FindsWhatASimulatedDeviceIsTold) {
  const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
  const std::vector<BenchCase> cases = cases_with(8, {Op::add, Op::silu, Op::linear, Op::attention, Op::gather});
  const DeviceProfile profile = calibrated(*device, cases);
  EXPECT_NEAR(profile.launch_us, 20, 0.01);
  EXPECT_NEAR(profile.op_us, 3, 0.01);
  for (const LinkRates& link : {profile.to_device, profile.from_device, profile.both_ways}) {
    EXPECT_NEAR(link.us, 15, 0.5);
    EXPECT_NEAR(link.bytes_per_s, 4e9, 4e7);
  }
  EXPECT_TRUE(profile.refused.empty());
  const DeviceCost cost(device->info(), &profile);
  EXPECT_TRUE(cost.is_measured());
  EXPECT_FALSE(cost.one_way_at_a_time());
  for (const BenchCase& use : cases) {
    const BenchOperands operands(use);
    const Prediction measured = cost.compute(operands.call());
    const Prediction believed = DeviceCost(device->info(), nullptr).compute(operands.call());  // the simulated rates
    EXPECT_NEAR(measured.us, believed.us, 0.05 * believed.us) << kind_on(*device, operands.call());
    EXPECT_LE(measured.uncertainty_us, 0.05 * measured.us);
  }
}

TEST(Calibration, PredictsShapesBetweenThoseThatItMeasured) {
  const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
  std::vector<BenchCase> cases = cases_with(4, {Op::add, Op::linear});
  std::ranges::move(cases_with(64, {Op::add, Op::linear}), std::back_inserter(cases));
  const DeviceProfile profile = calibrated(*device, cases);
  const auto checked = check_predictions(*device, cases_with(16, {Op::add, Op::linear}), profile, {});
  ASSERT_TRUE(checked.has_value());
  ASSERT_FALSE(checked->empty());
  std::size_t unseen = 0;
  for (const CheckedOp& op : *checked) {
    EXPECT_NEAR(op.error(), 0, op.is_seen ? 0.05 : 0.1) << op.kind << " " << op.cost.flops;
    unseen += op.is_seen ? 0U : 1U;
    EXPECT_TRUE(op.is_seen || op.predicted.uncertainty_us > 0.05 * op.us) << "it is not known so well";
  }
  EXPECT_GT(unseen, 0U);
}

TEST(Calibration, OfOtherShapesKeepsWhatWasMeasuredBefore) {
  const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
  const DeviceProfile first = calibrated(*device, cases_with(4, {Op::add}));
  const auto second = calibrate(*device, cases_with(32, {Op::add}), first, {});
  ASSERT_TRUE(second.has_value());
  const std::vector<MeasuredOp>& points = second->ops.at("add F32 F32 -> F32");
  ASSERT_EQ(points.size(), 3U) << "1, 4 and 32 rows";
}

TEST(Calibration, DoesNotTimeWhatADeviceComputesWronglyAndPlansDoNotUseIt) {
  sim::Spec spec = told();
  spec.computes = false;  // its results are zeros
  const auto wrong = sim::make_sim_device(spec, std::make_shared<sim::VirtualClock>());
  const DeviceProfile profile = calibrated(*wrong, cases_with(4, {Op::add, Op::silu}));
  EXPECT_TRUE(profile.ops.empty());
  ASSERT_TRUE(profile.refused.contains("add"));

  sim::Spec slow = told();
  slow.id = "sim:1";
  slow.rate = {.flops_per_s = 1e6, .bytes_per_s = 1e6};
  const auto right = sim::make_sim_device(slow, std::make_shared<sim::VirtualClock>());
  GraphBuilder builder;
  builder.output(builder.silu(builder.input("x", DType::F32, {64})));
  const Graph graph = *std::move(builder).finish();
  Device* const devices[] = {wrong.get(), right.get()};
  const std::vector<DeviceCost> costs = {DeviceCost(wrong->info(), &profile), DeviceCost(right->info(), nullptr)};
  const auto plan = make_plan({.graph = &graph, .devices = devices, .costs = costs});
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->decisions[0].device, 1U);
  EXPECT_EQ(plan->decisions[0].candidates[0].reason, Reason::lacks_op);
  EXPECT_NE(plan->decisions[0].candidates[0].detail.find("it was wrong when it was measured"), std::string::npos);
}

TEST(Calibration, ChecksWhatItTimesEvenIfItDoesNotCheckAll) {
  std::vector<BenchCase> cases = cases_with(4, {Op::linear});
  std::erase_if(cases, [](const BenchCase& use) { return use.dtype != DType::Q8_0 && use.dtype != DType::F16; });
  sim::Spec spec = told();
  for (const bool is_right : {true, false}) {
    spec.computes = is_right;  // else its results are zeros
    const auto device = sim::make_sim_device(spec, std::make_shared<sim::VirtualClock>());
    std::size_t checks = 0;
    const auto count = [&](const std::string& what, std::size_t, std::size_t) {
      if (what == "whether linear is right") ++checks;
      return true;
    };
    const auto profile =
        calibrate(*device, cases, unmeasured(device->info()), {.checks_all = false, .progress = count});
    ASSERT_TRUE(profile.has_value());
    EXPECT_EQ(profile->ops.size(), is_right ? 2U : 0U);
    EXPECT_EQ(profile->refused.contains("linear"), !is_right);
    EXPECT_EQ(checks, is_right ? 2U : 1U) << "one for each type of weights";
  }
}

TEST(Calibration, VisitsNoShapeAgainAfterEnoughTime) {
  const std::vector<BenchCase> cases = cases_with(4, {Op::add});
  for (const double enough_seconds : {0.0, 1e9}) {
    const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
    std::size_t visits = 0;
    const auto count = [&](const std::string& what, std::size_t, std::size_t) {
      if (what == "add F32 F32 -> F32") ++visits;
      return true;
    };
    const auto profile =
        calibrate(*device, cases, unmeasured(device->info()), {.enough_seconds = enough_seconds, .progress = count});
    ASSERT_TRUE(profile.has_value());
    EXPECT_EQ(profile->ops.at("add F32 F32 -> F32").size(), cases.size());
    EXPECT_EQ(visits, cases.size() * (enough_seconds == 0 ? 1 : 3)) << "the last visit is of shapes that differ";
  }
}

// A device on a busy machine: each of the first `times` runs of programs whose name starts with `program` takes `us`
// longer. If `us` is negative, they appear to take a nanosecond.
struct Disturbance {
  std::string program;
  std::int64_t us = 0;
  std::size_t times = 0;
};

class DisturbedDevice : public Device {
 public:
  DisturbedDevice(const sim::Spec& spec, Disturbance disturbance)
      : real_(sim::make_sim_device(spec, std::make_shared<sim::VirtualClock>())),
        disturbance_(std::move(disturbance)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return real_->info(); }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return real_->memory_available(); }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override { return real_->supports(run); }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override {
    return real_->allocate(bytes, use);
  }
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return real_->write(to, from);
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override { return real_->read(from, to); }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    auto program = real_->prepare(request);
    if (program && request.name.starts_with(disturbance_.program)) disturbed_.insert(program->get());
    if (program && !request.name.starts_with(disturbance_.program)) disturbed_.erase(program->get());
    return program;
  }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    const bool is_disturbed = disturbed_.contains(&program) && disturbance_.times > 0;
    if (is_disturbed) --disturbance_.times;
    if (is_disturbed && disturbance_.us < 0)
      stands_at_ns_ = now_ns() + 1;
    else if (const std::uint64_t stood_at_ns = std::exchange(stands_at_ns_, 0); stood_at_ns != 0)
      late_ns_ += static_cast<std::int64_t>(stood_at_ns - now_ns());
    if (is_disturbed && disturbance_.us > 0) late_ns_ += disturbance_.us * 1000;
    return real_->submit(program, submission);
  }
  bool advance(std::chrono::nanoseconds patience) override { return real_->advance(patience); }
  [[nodiscard]] std::uint64_t now_ns() const override {
    return stands_at_ns_ != 0 ? stands_at_ns_ : real_->now_ns() + static_cast<std::uint64_t>(late_ns_);
  }
  [[nodiscard]] Health health() const override { return real_->health(); }

 private:
  std::unique_ptr<Device> real_;
  Disturbance disturbance_;
  std::set<const Program*> disturbed_;
  std::int64_t late_ns_ = 0;
  std::uint64_t stands_at_ns_ = 0;  // 0: the clock runs
};

// Rounds what its numerics allow, by its word.
class RoundingDevice : public DisturbedDevice {
 public:
  RoundingDevice() : DisturbedDevice(told(), {}) {}
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    Support support = DisturbedDevice::supports(run);
    for (const OpCall& call : run)
      if (allows(call, Arithmetic::halves)) support.arithmetic = Arithmetic::halves;
    return support;
  }
};

TEST(Calibration, MeasuresEachArithmeticOnItsOwn) {
  RoundingDevice device;
  std::vector<BenchCase> cases = cases_with(8, {Op::linear});
  std::erase_if(cases, [](const BenchCase& use) { return use.dtype != DType::Q8_0; });
  for (BenchCase& use : cases) use.numerics = Numerics::automatic;
  const DeviceProfile automatic = calibrated(device, cases);
  EXPECT_TRUE(automatic.ops.contains("linear F32 Q8_0 -> F32 in halves"));
  EXPECT_EQ(automatic.ops.size(), 1U);

  GraphBuilder builder;
  builder.output(builder.linear(builder.input("x", DType::F32, {8, 32}), builder.weight("w", DType::Q8_0, {64, 32})));
  Graph graph = *std::move(builder).finish();
  Device* const devices[] = {&device};
  const auto plan_with = [&](const DeviceProfile& profile, Numerics numerics) {
    graph.set_numerics(numerics);
    const std::vector<DeviceCost> costs = {DeviceCost(device.info(), &profile)};
    return *make_plan({.graph = &graph, .devices = devices, .costs = costs});
  };
  EXPECT_TRUE(plan_with(automatic, Numerics::automatic).decisions[0].candidates[0].measured);
  EXPECT_EQ(doubt_in_words(plan_with(automatic, Numerics::automatic), graph), "");
  const Plan guessed = plan_with(automatic, Numerics::exact);
  EXPECT_FALSE(guessed.decisions[0].candidates[0].measured);
  EXPECT_NE(doubt_in_words(guessed, graph).find("--numerics exact"), std::string::npos);
  EXPECT_NE(to_text(guessed, graph, true).find("not measured"), std::string::npos);

  for (BenchCase& use : cases) use.numerics = Numerics::exact;
  const auto both = calibrate(device, cases, automatic, {});
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->ops.size(), 2U);
  EXPECT_TRUE(plan_with(*both, Numerics::exact).decisions[0].candidates[0].measured);
  EXPECT_TRUE(plan_with(*both, Numerics::automatic).decisions[0].candidates[0].measured);
}

void expect_no_record_beats(const DeviceProfile& profile, const sim::Spec& spec) {
  std::size_t count = 0;
  for (const auto& [kind, points] : profile.ops)
    for (const MeasuredOp& point : points) {
      const double bytes = point.cost.bytes_read + point.cost.bytes_written;
      EXPECT_GT(point.us, 0.9 * bytes / spec.rate.bytes_per_s * 1e6) << kind;
      ++count;
    }
  EXPECT_GT(count, 0U);
}

// Launches took 20 ms while being measured and 20 us afterwards, so programs of ops appeared to take less than "their
// launch".
TEST(Calibration, OfADisturbedLaunchIsMeasuredAgain) {
  sim::Spec spec = told();
  spec.rate_of_family.clear();
  // 60 covers all initial measurements, with repetitions and after pauses.
  for (const std::size_t times : {60U, 100'000U}) {
    DisturbedDevice device(spec, {.program = "copies of", .us = 20'000, .times = times});
    const std::vector<BenchCase> cases = cases_with(8, {Op::add, Op::silu});
    const DeviceProfile profile = calibrated(device, cases);
    if (times > 1000) {
      EXPECT_TRUE(profile.ops.empty()) << "nothing can be told from such launches";
      continue;
    }
    expect_no_record_beats(profile, spec);
    EXPECT_NEAR(profile.launch_us, spec.launch_us, 1);
    for (const BenchCase& use : cases) {
      const BenchOperands operands(use);
      const double us = DeviceCost(device.info(), nullptr).compute(operands.call()).us;
      EXPECT_NEAR(DeviceCost(device.info(), &profile).compute(operands.call()).us, us, 0.1 * us);
    }
  }
}

TEST(Calibration, OfAClockThatJumpsKeepsNoTimeThatNoProcessorReaches) {
  sim::Spec spec = told();
  spec.rate_of_family.clear();
  spec.launch_us = 0;  // so that a nanosecond is clearly more
  spec.type = DeviceType::cpu;
  spec.emulated = false;
  spec.memory_pool = kHostPool;
  DisturbedDevice device(spec, {.program = "bench silu", .us = -1, .times = 100'000});
  const DeviceProfile profile = calibrated(device, cases_with(8, {Op::add, Op::silu}));
  expect_no_record_beats(profile, spec);
  EXPECT_FALSE(profile.ops.contains("silu F32 -> F32"));
}

TEST(MeasureSteadily, TellsWhetherSomethingDisturbedIt) {
  int number = 0;
  const auto noisy = [&]() -> Result<double> { return 10 + ++number * 37 % 90; };
  const auto steady = measure_steadily(noisy, {.now_s = [] { return 0.0; }});
  ASSERT_TRUE(steady.has_value());
  EXPECT_FALSE(steady->is_known);
  // The time is known as soon as the machine is quiet again.
  number = 0;
  const auto calmed = [&]() -> Result<double> { return ++number <= 25 ? 10 + number * 37 % 90 : 10; };
  const auto calm = measure_calmly(calmed, {.now_s = [] { return 0.0; }}, 3);
  ASSERT_TRUE(calm.has_value());
  EXPECT_TRUE(calm->is_known);
  EXPECT_EQ(calm->median, 10);
}

TEST(Without, IsNothingWhereTheRestIsBelowTheUncertaintyOfBoth) {
  const auto rest = without({.median = 100, .spread = 0.01}, {.median = 20, .spread = 0.05});
  ASSERT_TRUE(rest.has_value());
  EXPECT_DOUBLE_EQ(rest->median, 80);
  EXPECT_NEAR(rest->spread, std::hypot(1, 1) / 80, 1e-9);
  EXPECT_FALSE(without({.median = 100, .spread = 0.01}, {.median = 99.5, .spread = 0.01}).has_value());
  EXPECT_FALSE(without({.median = 100, .spread = 0}, {.median = 100, .spread = 0}).has_value());
  EXPECT_FALSE(without({.median = 100, .spread = 0}, {.median = 4900, .spread = 0}).has_value());
}

TEST(Calibration, EndsWhenItIsToldTo) {
  const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
  std::size_t asked = 0;
  const auto ended = calibrate(*device, cases_with(4, {Op::add}), unmeasured(device->info()),
                               {.progress = [&](const std::string&, std::size_t, std::size_t) { return ++asked < 3; }});
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().message, "interrupted");
  EXPECT_EQ(asked, 3U);
}

// A linear, which should dominate the time, and two small ops.
Graph weighty_graph(std::uint32_t tokens) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {tokens, 256}, Extent::tokens);
  const Tensor y = builder.linear(x, builder.weight("w", DType::Q8_0, {512, 256}));
  builder.output(builder.silu(builder.add(y, y)));
  return *std::move(builder).finish();
}

// A device ten times as slow as its prior.
sim::Spec boaster() {
  sim::Spec spec = told();
  spec.rate_of_family.clear();
  spec.believed = sim::Rate{.flops_per_s = 10 * spec.rate.flops_per_s, .bytes_per_s = 10 * spec.rate.bytes_per_s};
  return spec;
}

struct Brief {
  DeviceProfile profile;
  double seconds = 0;
};

Brief measured_within(Device& device, double seconds) {
  const Graph one = weighty_graph(1);
  const Graph prompt = weighty_graph(16);
  const Workload work[] = {{&one, 1000}, {&prompt, 10}};
  const std::uint64_t begin_ns = device.now_ns();
  auto profile = calibrate_briefly(device, work, seconds, {});
  EXPECT_TRUE(profile.has_value()) << profile.error().message;
  return {std::move(*profile), static_cast<double>(device.now_ns() - begin_ns) / 1e9};
}

TEST(BriefCalibration, EndsInTimeAndTakesTheHeaviestKindsFirst) {
  const std::string heaviest = "linear F32 Q8_0 -> F32";
  std::size_t kinds = 0;
  for (const double seconds : {0.01, 0.3, 2.0}) {
    const auto device = sim::make_sim_device(boaster(), std::make_shared<sim::VirtualClock>());
    const Brief brief = measured_within(*device, seconds);
    EXPECT_TRUE(brief.profile.is_brief);
    EXPECT_LE(brief.seconds, seconds);
    EXPECT_GE(brief.profile.ops.size(), kinds) << "in more time";
    EXPECT_EQ(brief.profile.ops.contains(heaviest), !brief.profile.ops.empty());
    kinds = brief.profile.ops.size();
  }
  EXPECT_EQ(kinds, 3U);
}

TEST(BriefCalibration, PredictsWhatItReachedAndKeepsWhatIsBelievedOfTheRest) {
  const auto device = sim::make_sim_device(boaster(), std::make_shared<sim::VirtualClock>());
  sim::Spec honest = boaster();
  honest.believed.reset();
  const auto truth = sim::make_sim_device(honest, std::make_shared<sim::VirtualClock>());
  const DeviceCost believed(device->info(), nullptr);
  const DeviceProfile profile = measured_within(*device, 2).profile;
  const DeviceCost measured(device->info(), &profile);
  for (const std::uint32_t tokens : {1U, 16U})
    for (const BenchCase& use : cases_of(weighty_graph(tokens), *device)) {
      const BenchOperands operands(use);
      const double us = DeviceCost(truth->info(), nullptr).compute(operands.call()).us;
      EXPECT_NEAR(measured.compute(operands.call()).us, us, 0.1 * us) << kind_on(*device, operands.call());
      EXPECT_LT(believed.compute(operands.call()).us, us);
    }
  const DeviceProfile unreached = measured_within(*device, 0.001).profile;
  const DeviceCost still_believed(device->info(), &unreached);
  EXPECT_TRUE(unreached.ops.empty());
  const BenchCase use = cases_with(8, {Op::silu})[0];
  const BenchOperands operands(use);
  EXPECT_NEAR(still_believed.compute(operands.call()).us, believed.compute(operands.call()).us, 0.01);
}

TEST(BriefCalibration, DoesNotTimeWhatADeviceComputesWrongly) {
  sim::Spec spec = boaster();
  spec.computes = false;  // its results are zeros
  const auto wrong = sim::make_sim_device(spec, std::make_shared<sim::VirtualClock>());
  const DeviceProfile profile = measured_within(*wrong, 2).profile;
  EXPECT_TRUE(profile.ops.empty());
  EXPECT_TRUE(profile.refused.contains("linear"));
}

TEST(Calibration, CasesOfAGraphAreWhatItsDeviceWouldCompute) {
  GraphBuilder builder;
  const Tensor table = builder.weight("table", DType::F32, {10, 16});
  const Tensor rows = builder.gather(table, builder.input("rows", DType::I32, {4}, Extent::tokens));
  builder.output(builder.rms_norm_mul(rows, builder.weight("w", DType::F32, {16})));
  const Graph graph = *std::move(builder).finish();
  const auto device = sim::make_sim_device(told(), std::make_shared<sim::VirtualClock>());
  const std::vector<BenchCase> cases = cases_of(graph, *device);
  std::set<std::string> kinds;
  for (const BenchCase& use : cases) kinds.insert(kind_on(*device, BenchOperands(use).call()));
  EXPECT_EQ(kinds, (std::set<std::string>{"gather F32 I32 -> F32", "rms_norm_mul F32 F32 -> F32", "rms_norm F32 -> F32",
                                          "mul F32 F32 -> F32"}));
  EXPECT_EQ(calibrated(*device, cases).ops.size(), 4U);
}

TEST(MeasureSteadily, OutliersDoNotMoveIt) {
  int number = 0;
  const auto noisy = [&]() -> Result<double> { return ++number % 4 == 0 ? 1000.0 : 10 + 0.01 * (number % 3); };
  const auto steady = measure_steadily(noisy, {.now_s = [] { return 0.0; }});
  ASSERT_TRUE(steady.has_value());
  EXPECT_NEAR(steady->median, 10.01, 0.02);
  EXPECT_LE(steady->count, 25U);
}

TEST(MeasureSteadily, ForgetsWhatWasBeforeConditionsChanged) {
  int number = 0;
  const auto throttled = [&]() -> Result<double> {
    ++number;
    return (number <= 6 ? 10 : 20) * (1 + 0.04 * (number % 3));  // too noisy to settle at once
  };
  const auto steady = measure_steadily(throttled, {.relative = 0.001, .now_s = [] { return 0.0; }});
  ASSERT_TRUE(steady.has_value());
  EXPECT_NEAR(steady->median, 20.8, 0.9);
}

TEST(MeasureSteadily, EndsInTimeAndPassesErrorsOn) {
  double now = 0;
  const auto slow = [&]() -> Result<double> {
    now += 3;
    return 3.0;
  };
  const auto steady = measure_steadily(slow, {.now_s = [&] { return now; }});
  ASSERT_TRUE(steady.has_value());
  EXPECT_EQ(steady->count, 1U);
  const auto failed = measure_steadily([]() -> Result<double> { return fail(Code::device_lost, "gone"); },
                                       {.now_s = [] { return 0.0; }});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Code::device_lost);
}

TEST(FitLink, FindsLatencyAndBandwidth) {
  const auto link_of = [](double us, double bytes_per_s, double noise) {
    std::vector<CopyTime> times;
    for (const std::uint64_t bytes : {1U << 12U, 1U << 16U, 1U << 20U, 1U << 26U}) {
      times.push_back({bytes, (us + static_cast<double>(bytes) / bytes_per_s * 1e6) * (1 + noise)});
      noise = -noise;
    }
    return fit_link(times);
  };
  EXPECT_NEAR(link_of(12, 25e9, 0).us, 12, 1e-6);
  EXPECT_NEAR(link_of(12, 25e9, 0).bytes_per_s, 25e9, 1);
  EXPECT_LT(link_of(12, 25e9, 0).spread, 1e-6);
  EXPECT_NEAR(link_of(12, 25e9, 0.1).bytes_per_s, 25e9, 4e9);
  EXPECT_GT(link_of(12, 25e9, 0.1).spread, 0.05);
  EXPECT_GE(link_of(0, 25e9, 0.1).us, 0);
}

}  // namespace
}  // namespace shunt
