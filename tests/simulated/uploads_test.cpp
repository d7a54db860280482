// Uploads to the simulated CUDA device: pieces arrive beside each other in bounded memory, and errors end them.
#include "devices/upload.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "run/weight_loader.h"
#include "shunt/weights.h"
#include "simulated/doubling.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::uint64_t kMostPieces = 7;  // whole ones; each has an event
constexpr std::uint64_t kMostLent = 4;
constexpr std::uint64_t kObjectsOfABlock = 2;  // pinned memory, and as much of the device

class SimulatedUploads : public Doubling {
 protected:
  void SetUp() override {
    open(Simulation::open("cuda"));
    auto made = device().allocate(kMany, BufferUse::weights);
    ASSERT_TRUE(made.has_value());
    weights_ = std::move(*made);
    begun_ = Simulation::control().live_objects();
    auto upload = device().upload();
    ASSERT_TRUE(upload.has_value());
    upload_ = std::move(*upload);
  }
  void TearDown() override {
    Simulation::control().set_fault(Fault::none);
    upload_.reset();
    weights_.reset();
    close();
    EXPECT_EQ(Simulation::control().live_objects(), before_);
  }

  // Sends the next piece of the weights, or of `bytes` of them, from offset `done` on. Returns its size.
  Result<std::uint64_t> send(std::uint64_t done, std::uint64_t bytes = kMany) {
    SHUNT_TRY_ASSIGN(const std::span<std::byte> piece, upload_->take(std::min(bytes, kMany - done), 1));
    for (std::uint64_t i = 0; i < piece.size(); ++i) piece[i] = content(done + i);
    SHUNT_TRY(upload_->send({.buffer = weights_.get(), .offset = done, .bytes = piece.size()}, {}));
    return piece.size();
  }
  static std::byte content(std::uint64_t at) { return static_cast<std::byte>(at ^ at >> 8U ^ at >> 16U); }
  static std::uint64_t objects() { return Simulation::control().live_objects(); }

  // Eight whole pieces and a remainder.
  static constexpr std::uint64_t kMany = 8 * kUploadPieceBytes + 4321;
  Simulation simulation_;
  std::uint64_t before_ = objects();
  std::uint64_t begun_ = 0;
  std::unique_ptr<Buffer> weights_;
  std::unique_ptr<Upload> upload_;
};

TEST_F(SimulatedUploads, ArriveWholeAndGiveTheirMemoryBack) {
  for (std::uint64_t done = 0; done < kMany;) {
    const auto sent = send(done);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    done += *sent;
    EXPECT_LE(objects(), begun_ + kObjectsOfABlock + kMostPieces);
  }
  ASSERT_TRUE(upload_->finish().has_value());
  EXPECT_EQ(objects(), begun_);
  std::vector<std::byte> came(kMany);
  ASSERT_TRUE(device().read({weights_.get(), 0, kMany}, came).wait().has_value());
  for (std::uint64_t at = 0; at < kMany; ++at) ASSERT_EQ(came[at], content(at)) << at;
}

TEST_F(SimulatedUploads, ReserveOnlyWhatThereIs) {
  upload_->expect(kMany);
  EXPECT_EQ(objects(), begun_ + 1) << "the memory of the device is free again, and that of the ring pinned";
  upload_->expect(std::uint64_t{1} << 50U);
  EXPECT_TRUE(device().health().status.has_value());
  EXPECT_TRUE(send(0).has_value());
}

TEST_F(SimulatedUploads, ArriveThroughTheDriversMemoryWhereNoneCanBeRegistered) {
  Simulation::control().set_fault(Fault::cannot_register);
  for (std::uint64_t done = 0; done < kMany;) {
    const auto sent = send(done);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    done += *sent;
  }
  ASSERT_TRUE(upload_->finish().has_value());
  EXPECT_EQ(objects(), begun_);
  std::vector<std::byte> came(kMany);
  ASSERT_TRUE(device().read({weights_.get(), 0, kMany}, came).wait().has_value());
  for (std::uint64_t at = 0; at < kMany; ++at) ASSERT_EQ(came[at], content(at)) << at;
}

TEST_F(SimulatedUploads, PiecesThatAreLentTogetherAreSentInThatOrder) {
  const auto first = upload_->take(100, 1);
  const auto second = upload_->take(50, 1);
  ASSERT_TRUE(first.has_value() && second.has_value());
  std::ranges::fill(*second, std::byte{2});
  std::ranges::fill(*first, std::byte{1});
  ASSERT_TRUE(upload_->send({.buffer = weights_.get(), .offset = 0, .bytes = 100}, {}).has_value());
  ASSERT_TRUE(upload_->send({.buffer = weights_.get(), .offset = 100, .bytes = 50}, {}).has_value());
  ASSERT_TRUE(upload_->finish().has_value());
  std::vector<std::byte> came(150);
  ASSERT_TRUE(device().read({weights_.get(), 0, 150}, came).wait().has_value());
  EXPECT_EQ(std::ranges::count(came, std::byte{1}), 100);
  EXPECT_EQ(std::ranges::count(std::span(came).subspan(100), std::byte{2}), 50);
}

TEST_F(SimulatedUploads, SeveralPiecesTravelAtATime) {
  Simulation::control().set_fault(Fault::never_done);
  for (std::uint64_t piece = 0; piece < kMostPieces; ++piece)
    ASSERT_TRUE(send(piece * kUploadPieceBytes).has_value()) << "none has arrived, and piece " << piece << " is filled";
  EXPECT_EQ(objects(), begun_ + kObjectsOfABlock + kMostPieces);
}

TEST_F(SimulatedUploads, AsManyBytesTravelInSmallPieces) {
  Simulation::control().set_fault(Fault::never_done);
  constexpr std::uint64_t kSmall = 100'000;
  constexpr std::uint64_t kPieces = (kMostPieces - 1) * kUploadPieceBytes / kSmall;
  for (std::uint64_t piece = 0; piece < kPieces; ++piece)
    ASSERT_TRUE(send(piece * kSmall, kSmall).has_value()) << "none has arrived, and piece " << piece << " is filled";
  EXPECT_EQ(objects(), begun_ + 2 * kObjectsOfABlock + kPieces) << "a little block comes first";
}

TEST_F(SimulatedUploads, PiecesOfAllSizesFollowEachOtherInTheRing) {
  std::uint64_t size = 1;
  for (std::uint64_t done = 0; done < kMany; size = size * 7 % 3'000'017) {
    const auto sent = send(done, size);
    ASSERT_TRUE(sent.has_value()) << sent.error().message;
    done += *sent;
  }
  ASSERT_TRUE(upload_->finish().has_value());
  std::vector<std::byte> came(kMany);
  ASSERT_TRUE(device().read({weights_.get(), 0, kMany}, came).wait().has_value());
  for (std::uint64_t at = 0; at < kMany; ++at) ASSERT_EQ(came[at], content(at)) << at;
}

TEST_F(SimulatedUploads, LendNoMoreUntilSomeAreSent) {
  for (std::uint64_t piece = 0; piece < kMostLent; ++piece) {
    const auto lent = upload_->take(kUploadPieceBytes, 1);
    ASSERT_TRUE(lent.has_value());
    ASSERT_EQ(lent->size(), kUploadPieceBytes);
  }
  const auto none = upload_->take(1, 1);
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->empty());
  ASSERT_TRUE(upload_->send({.buffer = weights_.get(), .offset = 0, .bytes = kUploadPieceBytes}, {}).has_value());
  const auto some = upload_->take(1, 1);
  ASSERT_TRUE(some.has_value());
  EXPECT_EQ(some->size(), 1U);
}

TEST_F(SimulatedUploads, ThoseBehindWhatNeverEndsAreTimedOut) {
  Simulation::control().set_fault(Fault::never_done);
  Event event = submit(std::chrono::nanoseconds(0));
  for (std::uint64_t piece = 0; piece < kMostPieces; ++piece) ASSERT_TRUE(send(piece * kUploadPieceBytes).has_value());
  const auto late = send(kMostPieces * kUploadPieceBytes);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Code::timed_out);
  EXPECT_EQ(event.wait().error().code, Code::timed_out);
  EXPECT_EQ(upload_->finish().error().code, Code::timed_out);
  const std::uint64_t held = objects();
  upload_.reset();
  weights_.reset();
  EXPECT_EQ(objects(), held) << "the device may still copy";
  EXPECT_EQ(device().upload().error().code, Code::timed_out);
}

TEST_F(SimulatedUploads, AProgramThatFailsMeanwhileEndsThem) {
  Simulation::control().set_fault(Fault::illegal_address);
  Event event = submit();
  ASSERT_TRUE(send(0).has_value()) << "the driver does not know yet";
  const Status lost = upload_->finish();
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, Code::device_lost);
  EXPECT_NE(lost.error().message.find("cuda:0"), std::string::npos) << lost.error().message;
  EXPECT_EQ(event.wait().error().code, Code::device_lost);
}

TEST_F(SimulatedUploads, RunOutOfMemoryOnlyWherePiecesDoNotFit) {
  constexpr std::uint64_t kSmall = 400'000;
  ASSERT_TRUE(send(0, kSmall).has_value());
  Simulation::control().set_fault(Fault::out_of_memory);
  for (std::uint64_t piece = 1; piece < 9; ++piece) ASSERT_TRUE(send(piece * kSmall, kSmall).has_value());
  EXPECT_LE(objects(), begun_ + kObjectsOfABlock + 2) << "they share a little block";
  EXPECT_EQ(send(0).error().code, Code::out_of_memory);
  EXPECT_TRUE(device().health().status.has_value());
  ASSERT_TRUE(upload_->finish().has_value());
  const auto none = upload_->take(1, 1);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::out_of_memory);
  EXPECT_TRUE(device().health().status.has_value());
}

TEST_F(SimulatedUploads, DoWithTheMemoryThatThereIs) {
  std::vector<std::byte> bytes(kMany);
  for (std::uint64_t at = 0; at < kMany; ++at) bytes[at] = content(at);
  MemoryWeights source;
  ASSERT_TRUE(source.add("w", DType::I8, {static_cast<std::uint32_t>(kMany)}, bytes).has_value());
  WeightLoader loader(&source);
  constexpr std::uint64_t kSmall = 1'000'000;  // little memory holds one of these
  for (std::uint64_t done = 0; done < kMany; done += kSmall) {
    const std::uint64_t part = std::min(kSmall, kMany - done);
    const Status copied = loader.copy("w", {.offset = done, .bytes = part, .row_bytes = part}, device(),
                                      {.buffer = weights_.get(), .offset = done, .bytes = part});
    ASSERT_TRUE(copied.has_value()) << copied.error().message;
    Simulation::control().set_fault(Fault::out_of_memory);
  }
  const Status finished = loader.finish();
  ASSERT_TRUE(finished.has_value()) << finished.error().message;
  Simulation::control().set_fault(Fault::none);
  std::vector<std::byte> came(kMany);
  ASSERT_TRUE(device().read({weights_.get(), 0, kMany}, came).wait().has_value());
  EXPECT_EQ(came, bytes);
}

}  // namespace
}  // namespace shunt::simulated
