// Memory of state in the host's memory, which a device that uses copies of it accesses by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "devices/wrapped_device.h"
#include "plan/attention_over_caches.h"
#include "run/executable.h"
#include "run/graphs.h"
#include "shunt/weights.h"

namespace shunt {
namespace {

constexpr std::uint32_t kStepTokens = 4;
constexpr std::uint32_t kCachePages = 256;
constexpr std::uint64_t kStateBytes = kCachePages * test::kCachePageBytes;
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20U;
static_assert(kStateBytes == 2 * kPieceBytes);

// A GPU that notes which memory it may access.
class PinsMemory final : public test::WrappedDevice {
 public:
  struct Pin {
    std::span<const std::byte> memory;
    HostAccess access;
    std::shared_ptr<const void> owner;
  };
  explicit PinsMemory(std::unique_ptr<Device> inner) : WrappedDevice(std::move(inner)), info_(WrappedDevice::info()) {
    info_.type = DeviceType::discrete;
  }
  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] Result<std::shared_ptr<const void>> pin_host(std::span<const std::byte> memory, HostAccess access,
                                                             std::shared_ptr<const void> owner) override {
    pins.push_back({.memory = memory, .access = access, .owner = owner});
    return owner;
  }

  std::vector<Pin> pins;

 private:
  DeviceInfo info_;
};

class PinnedState : public testing::Test {
 protected:
  // All ops run on the GPU, and all state has its home in the host's memory.
  void SetUp() override {
    Search search{.preferred = 1, .margin = 1.0};
    for (TensorId tensor = 0; tensor < graph_.tensors().size(); ++tensor)
      search.homes.push_back(graph_.tensor(tensor).operand.kind == TensorKind::state ? 0 : kNone);
    auto plan = make_plan({.graph = &graph_, .devices = devices_, .where = std::move(search), .state_travels = true});
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    ASSERT_EQ(std::ranges::count(plan->steps, Copied::state, [](const Step& step) { return step.transfer.copied; }), 4);
    auto executable = Executable::create(
        graph_, std::move(*plan),
        {.devices = devices_, .weights = &weights_, .state = &state_, .arenas = &arenas_, .recorder = &recorder_});
    ASSERT_TRUE(executable.has_value()) << executable.error().message;
    executable_ = std::move(*executable);
  }

  // Writes tokens to the first pages while so many are in use.
  void run(std::uint64_t pages) {
    std::vector<float> x(std::size_t{kStepTokens} * test::kCacheHeads * test::kCacheColumns, 0.5F);
    std::vector<std::int32_t> positions(kStepTokens);
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<std::int32_t> sequences(kStepTokens, 0);
    std::vector<std::int32_t> order(kCachePages);
    std::iota(order.begin(), order.end(), 0);
    const auto write = [&](const char* name, const auto& numbers) {
      const Status status = executable_->write_input(*graph_.find(name), std::as_bytes(std::span(numbers)));
      ASSERT_TRUE(status.has_value()) << status.error().message;
    };
    write("x", x);
    write("positions", positions);
    write("sequences", sequences);
    write("pages", order);
    executable_->set_state_in_use({.read = {.begin = 0, .end = pages}, .written = {.begin = 0, .end = pages}});
    const Status status = executable_->run({.parameters = {.tokens = kStepTokens}});
    ASSERT_TRUE(status.has_value()) << status.error().message;
  }

  std::unique_ptr<Device> make_device(const char* id, std::string_view pool) {
    return cpu::make_cpu_device({.kernels = cpu::KernelSet::scalar,
                                 .engine = engine_,
                                 .recorder = &recorder_,
                                 .memory_pool = std::string(pool),
                                 .id = id});
  }

  const Graph graph_ = test::attention_over_caches(kStepTokens, kCachePages);
  std::shared_ptr<cpu::Engine> engine_ = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
  trace::Recorder recorder_;
  std::unique_ptr<Device> host_ = make_device("test:0", kHostPool);
  PinsMemory gpu_{make_device("test:1", "gpu")};
  std::vector<Device*> devices_ = {host_.get(), &gpu_};
  MemoryWeights no_weights_;
  WeightStore weights_{&no_weights_};
  StateStore state_;
  ArenaStore arenas_;
  std::unique_ptr<Executable> executable_;
};

TEST_F(PinnedState, GrowsInPiecesWithWhatIsInUse) {
  run(3);
  ASSERT_EQ(gpu_.pins.size(), 4U) << "keys and values, each on both ways";
  run(3);
  EXPECT_EQ(gpu_.pins.size(), 4U);
  for (const PinsMemory::Pin& pin : gpu_.pins) {
    EXPECT_EQ(pin.memory.size(), kPieceBytes);
    EXPECT_EQ(pin.access, HostAccess::reads_and_writes);
    EXPECT_TRUE(pin.owner == state_.find("keys") || pin.owner == state_.find("values"));
  }
  run(kCachePages / 2 + 1);
  ASSERT_EQ(gpu_.pins.size(), 8U);
  EXPECT_EQ(gpu_.pins.back().memory.size(), kStateBytes);
  run(kCachePages);
  EXPECT_EQ(gpu_.pins.size(), 8U);
}

}  // namespace
}  // namespace shunt
