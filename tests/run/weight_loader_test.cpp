// Weights arrive whole, whatever their size, and a copy that fails ends all that were on their way.
#include "run/weight_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "devices/wrapped_device.h"
#include "ops/strips.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::SeparateDevices;

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes((count + 7) / 8 * 8);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  bytes.resize(count);
  return bytes;
}

// One tensor of bytes, which notes what is read and released.
class NotedSource final : public WeightSource {
 public:
  explicit NotedSource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return {}; }
  [[nodiscard]] Status read(std::size_t, std::uint64_t offset, std::span<std::byte> out) override {
    if (offset + out.size() > ends_at) return fail(Code::io, "the file ends early");
    std::ranges::copy(std::span(bytes_).subspan(offset, out.size()), out.begin());
    read_bytes += out.size();
    ++reads;
    return {};
  }
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t) override { return {}; }
  void release(std::size_t, std::uint64_t, std::uint64_t bytes) override { released += bytes; }
  [[nodiscard]] Status health() const override { return {}; }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  std::uint64_t ends_at = ~std::uint64_t{0};
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<int> reads{0};
  std::atomic<std::uint64_t> released = 0;  // by any thread

 private:
  std::vector<std::byte> bytes_;
};

// Its writes end when it is advanced, and can be told to fail.
class WritesLater final : public test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    pending_.push_back({Event(this), to, from});
    most_pending = std::max(most_pending, pending_.size());
    return pending_.back().event;
  }
  bool advance(std::chrono::nanoseconds) override {
    for (Write& each : std::exchange(pending_, {})) {
      const bool fails = written++ == fails_at;
      each.event.complete(fails ? Status(fail(Code::device_lost, "lost while writing"))
                                : inner().write(each.to, each.from).wait());
    }
    return false;
  }
  [[nodiscard]] bool is_idle() const { return pending_.empty(); }

  std::size_t written = 0;
  std::size_t fails_at = ~std::size_t{0};
  std::size_t most_pending = 0;

 private:
  struct Write {
    Event event;
    Binding to;
    std::span<const std::byte> from;
  };
  std::vector<Write> pending_;
};

class Loading : public testing::Test {
 protected:
  void make(std::size_t bytes) {
    source_.emplace(random_bytes(bytes));
    loader_.emplace(&*source_);
    auto made = device_.allocate(bytes, BufferUse::weights);
    ASSERT_TRUE(made.has_value());
    buffer_ = std::move(*made);
  }
  [[nodiscard]] Status copy(std::uint64_t bytes) {
    return loader_->copy("w", {.bytes = bytes, .row_bytes = 1}, device_, {.buffer = buffer_.get(), .bytes = bytes});
  }

  SeparateDevices machine_{1};
  WritesLater device_{*machine_.devices[0]};
  std::optional<NotedSource> source_;
  std::optional<WeightLoader> loader_;
  std::unique_ptr<Buffer> buffer_;
};

TEST_F(Loading, ArrivesWholeAtAnySize) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4097}, kUploadPieceBytes, 2 * kUploadPieceBytes + 12345}) {
    SCOPED_TRACE(bytes);
    make(bytes);
    ASSERT_TRUE(copy(bytes).has_value());
    ASSERT_TRUE(loader_->finish().has_value());
    EXPECT_TRUE(std::ranges::equal(buffer_->host().first(bytes), source_->bytes()));
    EXPECT_EQ(source_->read_bytes, bytes);
    EXPECT_EQ(source_->released, bytes);
    EXPECT_EQ(loader_->loaded().bytes, bytes);
  }
}

TEST_F(Loading, ReadsOnePieceWhileAnotherTravels) {
  make(4 * kUploadPieceBytes);
  ASSERT_TRUE(copy(4 * kUploadPieceBytes).has_value());
  EXPECT_EQ(device_.most_pending, 2U) << "and no more: its memory is bounded";
  EXPECT_FALSE(device_.is_idle()) << "the last pieces are still on their way";
  ASSERT_TRUE(loader_->finish().has_value());
  EXPECT_TRUE(device_.is_idle());
}

TEST_F(Loading, LaysOutWholeStrips) {
  constexpr std::uint32_t kRows = 32;
  const std::uint32_t columns = strip_chunk(DType::Q6_K).columns * 3;
  const std::uint64_t bytes = bytes_of(DType::Q6_K, {kRows, columns}).value();
  make(bytes);
  const WeightPart part{.bytes = bytes, .rows = {DType::Q6_K, columns}, .row_bytes = bytes / kRows};
  ASSERT_TRUE(loader_->copy("w", part, device_, {.buffer = buffer_.get(), .bytes = bytes, .layout = Layout::strips}));
  ASSERT_TRUE(loader_->finish().has_value());
  std::vector<std::byte> expected(bytes);
  rows_to_strips(DType::Q6_K, columns, source_->bytes(), expected);
  EXPECT_TRUE(std::ranges::equal(buffer_->host().first(bytes), expected));
}

TEST_F(Loading, AFileThatEndsEarlyLeavesNothingOnItsWay) {
  make(3 * kUploadPieceBytes);
  source_->ends_at = 2 * kUploadPieceBytes + 5;
  Status status = copy(3 * kUploadPieceBytes);
  if (status) status = loader_->finish();  // where the last piece is waited for
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::io);
  EXPECT_EQ(status.error().message, "weight \"w\" on test:0: the file ends early");
  EXPECT_EQ(status.error().device, "");
  EXPECT_TRUE(device_.is_idle()) << "the buffer may be freed now";
  EXPECT_EQ(source_->released, 2 * kUploadPieceBytes);
}

TEST_F(Loading, ALateErrorOfAPieceIsThatOfItsDevice) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}}) {
    SCOPED_TRACE(at);
    make(5 * kUploadPieceBytes);
    device_.written = 0;
    device_.fails_at = at;
    Status status = copy(5 * kUploadPieceBytes);
    EXPECT_EQ(status.has_value(), at == 4) << "the last piece fails when it is waited for";
    if (status) status = loader_->finish();
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::device_lost);
    EXPECT_EQ(status.error().device, "test:0");
    EXPECT_TRUE(loader_->finish().has_value()) << "nothing is left to wait for";
  }
}

}  // namespace
}  // namespace shunt
