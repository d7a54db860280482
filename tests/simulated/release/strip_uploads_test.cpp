// The simulated CUDA device lays out rows as strips while they are uploaded, as ops/strips.h says.
#include <algorithm>

#include <random>
#include <vector>

#include "devices/upload.h"
#include "ops/strips.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

std::vector<std::byte> random_bytes(std::uint64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Uploads rows in pieces of at most `strips_at_a_time` and returns what has arrived.
std::vector<std::byte> uploaded(Device& device, const MatrixRows& rows, std::span<const std::byte> content,
                                std::uint64_t strip_bytes, std::uint64_t strips_at_a_time) {
  auto buffer = device.allocate(content.size(), BufferUse::weights);
  auto upload = device.upload();
  EXPECT_TRUE(buffer.has_value() && upload.has_value());
  for (std::uint64_t done = 0; done < content.size();) {
    const std::uint64_t bytes = std::min(content.size() - done, strips_at_a_time * strip_bytes);
    auto piece = (*upload)->take(bytes, strip_bytes);
    EXPECT_TRUE(piece.has_value()) << piece.error().message;
    std::ranges::copy(content.subspan(done, piece->size()), piece->begin());
    const Status sent = (*upload)->send(
        {.buffer = buffer->get(), .offset = done, .bytes = piece->size(), .layout = Layout::strips}, rows);
    EXPECT_TRUE(sent.has_value()) << sent.error().message;
    done += piece->size();
  }
  EXPECT_TRUE((*upload)->finish().has_value());
  std::vector<std::byte> came(content.size());
  EXPECT_TRUE(device.read({buffer->get(), 0, came.size()}, came).wait().has_value());
  return came;
}

TEST(SimulatedStripUploads, LayOutEveryType) {
  const Simulation simulation;
  const BackendReport report = Simulation::open("cuda");
  ASSERT_EQ(report.devices.size(), 1U);
  for (std::size_t i = 0; i < dtypes().size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    const StripChunk chunk = strip_chunk(dtype);
    if (chunk.columns == 0) continue;
    for (const std::uint32_t chunks : {1U, 3U}) {
      constexpr std::uint32_t kStrips = 5;
      const std::uint64_t strip_bytes = std::uint64_t{chunk.bytes} * chunks;
      const MatrixRows rows{dtype, chunk.columns * chunks};
      const std::vector<std::byte> content = random_bytes(kStrips * strip_bytes);
      std::vector<std::byte> expected(content.size());
      rows_to_strips(dtype, rows.columns, content, expected);
      EXPECT_EQ(uploaded(*report.devices[0], rows, content, strip_bytes, 2), expected)
          << name_of(dtype) << ", " << chunks << " chunks";
    }
  }
}

TEST(SimulatedStripUploads, TakeStripsThatAreLargerThanAPiece) {
  const Simulation simulation;
  const BackendReport report = Simulation::open("cuda");
  ASSERT_EQ(report.devices.size(), 1U);
  const StripChunk chunk = strip_chunk(DType::F16);
  const auto chunks = static_cast<std::uint32_t>(kUploadPieceBytes / chunk.bytes + 1);
  const std::uint64_t strip_bytes = std::uint64_t{chunk.bytes} * chunks;
  const MatrixRows rows{DType::F16, chunk.columns * chunks};
  const std::vector<std::byte> content = random_bytes(2 * strip_bytes);
  std::vector<std::byte> expected(content.size());
  rows_to_strips(DType::F16, rows.columns, content, expected);
  EXPECT_EQ(uploaded(*report.devices[0], rows, content, strip_bytes, 2), expected);
}

}  // namespace
}  // namespace shunt::simulated
