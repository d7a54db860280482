// Weights used in place come into memory ahead of use, in order, once, and no more of them than memory holds.
#include "run/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "devices/discovery/registry.h"
#include "devices/wrapped_device.h"
#include "run/graphs.h"
#include "run/opened_devices.h"
#include "run/weight_store.h"
#include "shunt/computation.h"
#include "trace/recorder.h"

namespace shunt {
namespace {

using test::SeparateDevices;

constexpr std::uint64_t kTensorBytes = (std::uint64_t{3} << 20U) + 12;
constexpr std::uint32_t kTensorElements = kTensorBytes / 4;

// Three tensors, which note what is fetched of them.
class NotedFetches final : public WeightSource {
 public:
  struct Stretch {
    std::size_t index;
    std::uint64_t begin;
    std::uint64_t end;
    auto operator<=>(const Stretch&) const = default;
  };

  NotedFetches() {
    for (const char* name : {"a", "b", "c"})
      infos_.push_back({.name = name, .dtype = DType::F32, .shape = {1, kTensorElements}, .bytes = kTensorBytes});
  }

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return infos_; }
  [[nodiscard]] Status read(std::size_t, std::uint64_t, std::span<std::byte>) override { return {}; }
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t) override { return bytes_; }
  void fetch(std::size_t index, std::uint64_t offset, std::uint64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    fetched_.push_back({index, offset, offset + bytes});
  }
  void release(std::size_t, std::uint64_t, std::uint64_t) override {}
  [[nodiscard]] Status health() const override { return {}; }

  // Returns what was fetched, in the order in which the fetches began.
  [[nodiscard]] std::vector<Stretch> fetched() {
    const std::scoped_lock lock(mutex_);
    return fetched_;
  }
  // Returns what was fetched, sorted, with neighbours joined.
  [[nodiscard]] std::vector<Stretch> stretches() {
    std::vector<Stretch> sorted = fetched();
    std::ranges::sort(sorted);
    std::vector<Stretch> joined;
    for (const Stretch& each : sorted)
      if (!joined.empty() && joined.back().index == each.index && joined.back().end == each.begin)
        joined.back().end = each.end;
      else
        joined.push_back(each);
    return joined;
  }

 private:
  std::vector<WeightInfo> infos_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kTensorBytes);
  std::mutex mutex_;
  std::vector<Stretch> fetched_;
};

using Stretches = std::vector<NotedFetches::Stretch>;

TEST(ReadAhead, FetchesEachByteOnce) {
  NotedFetches source;
  ReadAhead ahead(source);
  ahead.add(1, 0, kTensorBytes);
  ahead.add(0, 100, 1000);
  ahead.start();
  ahead.add(2, 0, kTensorBytes);
  ahead.start();
  ahead.wait();
  EXPECT_EQ(source.stretches(), (Stretches{{0, 100, 1100}, {1, 0, kTensorBytes}, {2, 0, kTensorBytes}}));
  EXPECT_GT(source.fetched().size(), 6U) << "in pieces, which threads share";
  EXPECT_EQ(ahead.left(), 0U);
  ahead.start();
  ahead.wait();
  EXPECT_EQ(source.stretches().size(), 3U);
}

TEST(ReadAhead, FetchesTheFirstThatFit) {
  NotedFetches source;
  ReadAhead ahead(source);
  ahead.add(2, 0, kTensorBytes);
  ahead.add(0, 0, kTensorBytes);
  ahead.add(1, 0, 10);
  ahead.start(kTensorBytes + kTensorBytes / 2);
  ahead.wait();
  const Stretches fetched = source.stretches();
  ASSERT_EQ(fetched.size(), 2U);
  EXPECT_EQ(fetched[0].index, 0U);
  EXPECT_EQ(fetched[0].begin, 0U);
  EXPECT_GT(fetched[0].end, kTensorBytes / 4);
  EXPECT_LE(fetched[0].end, kTensorBytes / 2);
  EXPECT_EQ(fetched[1], (NotedFetches::Stretch{2, 0, kTensorBytes}));
  ahead.start();
  ahead.wait();
  EXPECT_EQ(source.stretches(), fetched) << "the others are left to whoever reads them";
}

TEST(ReadAhead, EndsWithoutThePiecesThatHaveNotBegun) {
  // So many that their owner ends long before them, however busy the machine is.
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 39U;
  NotedFetches source;
  {
    ReadAhead ahead(source);
    ahead.add(0, 0, kBytes);
    ahead.start();
    EXPECT_GT(ahead.left(), 0U);
  }
  const Stretches fetched = source.stretches();
  EXPECT_TRUE(fetched.empty() || fetched.back().end < kBytes);
}

TEST(ReadAhead, EndsPiecesWhereTheBytesOfANodeEnd) {
  const MemoryNodes nodes = MemoryNodes::described("numa:3 core:1 pu:1");
  NotedFetches source;
  ReadAhead ahead(source, nodes);
  ahead.add(1, 4, kTensorBytes - 4, 3);
  ahead.start();
  ahead.wait();
  EXPECT_EQ(source.stretches(), (Stretches{{1, 4, kTensorBytes}}));
  const Stretches fetched = source.fetched();
  constexpr std::uint64_t kThreads = 3;
  for (std::uint64_t thread = 1; thread < kThreads; ++thread) {
    const std::uint64_t border = 4 + ((kTensorBytes - 4) * thread + kThreads - 1) / kThreads;
    EXPECT_EQ(std::ranges::count(fetched, border, &NotedFetches::Stretch::begin), 1) << border;
  }
}

TEST(ReadAhead, HasPiecesOfOneSizeForBytesThatAnyThreadMayRead) {
  const MemoryNodes nodes = MemoryNodes::described("numa:3 core:1 pu:1");
  NotedFetches source;
  ReadAhead ahead(source, nodes);
  ahead.add(0, 0, kTensorBytes);
  ahead.start();
  ahead.wait();
  EXPECT_EQ(source.stretches(), (Stretches{{0, 0, kTensorBytes}}));
  EXPECT_EQ(source.fetched().size(), 7U);
}

// A processor with so much memory left.
class LittleMemory final : public test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return available; }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                            std::shared_ptr<const void> owner) override {
    if (!imports) return fail(Code::unsupported, "has memory of its own");
    return inner().import_host(memory, std::move(owner));
  }
  std::optional<std::uint64_t> available;
  bool imports = true;
};

class StoreReadsAhead : public testing::Test {
 protected:
  [[nodiscard]] static TensorInfo tensor(const char* name) {
    TensorInfo info;
    info.name = name;
    info.operand = Operand::contiguous(DType::F32, {1, kTensorElements}, TensorKind::weight);
    return info;
  }
  void acquire(const char* name, WeightStore::Reads reads = WeightStore::Reads::all) {
    auto weight = store_->acquire(tensor(name), device_, Layout::rows, reads);
    ASSERT_TRUE(weight.has_value()) << weight.error().message;
    held_.push_back(std::move(weight->buffer));
  }
  // Returns when nothing is left to read.
  void wait() {
    while (store_->bytes_to_read() != 0) std::this_thread::yield();
  }

  SeparateDevices machine_{1, true};
  LittleMemory device_{*machine_.devices[0]};
  NotedFetches source_;
  std::optional<WeightStore> store_{&source_};
  std::vector<std::shared_ptr<Buffer>> held_;
};

TEST_F(StoreReadsAhead, WhatIsUsedInPlaceAndOnlyOnce) {
  acquire("b");
  acquire("a");
  EXPECT_TRUE(source_.fetched().empty()) << "all are known by finish()";
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches(), (Stretches{{0, 0, kTensorBytes}, {1, 0, kTensorBytes}}));
  acquire("b");
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches().size(), 2U);
}

TEST_F(StoreReadsAhead, NothingOfWhichProgramsReadSomeRows) {
  acquire("b", WeightStore::Reads::some_rows);
  acquire("a");
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches(), (Stretches{{0, 0, kTensorBytes}}));
}

TEST_F(StoreReadsAhead, WhatIsReadWholeLater) {
  acquire("b", WeightStore::Reads::some_rows);
  ASSERT_TRUE(store_->finish().has_value());
  acquire("b");
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches(), (Stretches{{1, 0, kTensorBytes}}));
}

TEST_F(StoreReadsAhead, NoMoreThanMemoryHolds) {
  device_.available = kTensorBytes;
  acquire("c");
  acquire("a");
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches(), (Stretches{{2, 0, kTensorBytes}}));
}

TEST_F(StoreReadsAhead, NothingThatIsCopied) {
  device_.imports = false;
  acquire("a");
  ASSERT_TRUE(store_->finish().has_value());
  EXPECT_EQ(store_->bytes_to_read(), 0U);
  EXPECT_TRUE(source_.fetched().empty());
}

TEST_F(StoreReadsAhead, NothingOfWhatIsAbandoned) {
  acquire("a");
  store_->abandon();
  acquire("b");
  ASSERT_TRUE(store_->finish().has_value());
  wait();
  EXPECT_EQ(source_.stretches(), (Stretches{{1, 0, kTensorBytes}}));
}

// Returns what is read ahead when a graph of weights a and b, one row each, runs.
template <class Make>
Stretches read_ahead_of(const Make& make) {
  NotedFetches source;
  const auto runtime = Runtime::create({.threads = 1, .devices = "cpu:scalar"});
  EXPECT_TRUE(runtime.has_value());
  GraphBuilder builder;
  const Shape shape{1, kTensorElements};
  const Tensor a = builder.weight("a", DType::F32, shape);
  const Tensor b = builder.weight("b", DType::F32, shape);
  const Tensor row = builder.gather(a, builder.input("ids", DType::I32, {1}));
  builder.output(make(builder, row, a, b));
  auto computation = Computation::create(*std::move(builder).finish(), **runtime, &source);
  EXPECT_TRUE(computation.has_value()) << computation.error().message;
  EXPECT_TRUE((*computation)->run().has_value());
  while (opened(**runtime).weights_of(&source)->bytes_to_read() != 0) std::this_thread::yield();
  return source.stretches();
}

TEST(ReadAhead, LeavesOutATableOfWhichRowsAreTaken) {
  const Stretches found =
      read_ahead_of([](GraphBuilder& builder, Tensor row, Tensor, Tensor b) { return builder.linear(row, b); });
  EXPECT_EQ(found, (Stretches{{1, 0, kTensorBytes}}));
}

TEST(ReadAhead, FetchesATableThatIsMultipliedToo) {
  const Stretches found = read_ahead_of([](GraphBuilder& builder, Tensor row, Tensor a, Tensor b) {
    return builder.add(builder.linear(row, a), builder.linear(row, b));
  });
  EXPECT_EQ(found, (Stretches{{0, 0, kTensorBytes}, {1, 0, kTensorBytes}}));
}

// One weight, whose bytes come into memory once the gate is open.
class Gated final : public WeightSource {
 public:
  explicit Gated(std::span<const std::byte> bytes) {
    EXPECT_TRUE(weights_.add("w0", DType::F32, {test::kWeightRows, test::kWeightRows}, bytes).has_value());
  }

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return weights_.weights(); }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return weights_.read(index, offset, out);
  }
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override { return weights_.mapped(index); }
  void fetch(std::size_t, std::uint64_t, std::uint64_t) override { is_open_.wait(false); }
  void release(std::size_t, std::uint64_t, std::uint64_t) override {}
  [[nodiscard]] Status health() const override { return {}; }

  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }

 private:
  MemoryWeights weights_;
  std::atomic<bool> is_open_{false};
};

// Notes the time that programs are given.
class NotesTimeouts final : public test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    last = submission.timeout;
    return inner().submit(program, submission);
  }
  decltype(Submission::timeout) last{};
};

TEST(ReadAhead, ADeviceMayWaitForADiskLongerThanForAProgram) {
  const std::vector<std::byte> bytes(test::kWeightBytes);
  Gated source(bytes);
  const auto engine = std::make_shared<cpu::Engine>(1, std::span<const std::uint32_t>());
  auto owned = std::make_unique<NotesTimeouts>(cpu::make_cpu_device({.engine = engine}));
  const NotesTimeouts& device = *owned;
  Registry registry;
  registry.backends.push_back({.api = "cpu"});
  registry.backends.back().devices.push_back(std::move(owned));
  const auto runtime = runtime_over(std::move(registry), std::make_unique<trace::Recorder>(0),
                                    {.calibrated = false, .timeout = std::chrono::minutes(1)});
  auto computation = Computation::create(test::chain_of_linears(1), *runtime, &source);
  ASSERT_TRUE(computation.has_value()) << computation.error().message;
  const Status first = (*computation)->run();
  const auto while_reading = device.last;
  source.open();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(while_reading, std::chrono::seconds(61)) << "a second more for less than 10 MB";
  // The piece counts until its thread has noted its end.
  Status next;
  do next = (*computation)->run();
  while (next && device.last != std::chrono::minutes(1));
  EXPECT_TRUE(next.has_value());
}

}  // namespace
}  // namespace shunt
