// Steps whose blocks compute their tokens in pieces, against the same steps in one piece.
#include <filesystem>
#include <numeric>

#include "models/decoder/architecture.h"
#include "models/reference.h"
#include "shunt/computation.h"

namespace shunt::models {
namespace {

// Pieces have so many tokens that plans fuse the same ops, and so round alike.
constexpr std::uint32_t kTokens = 48;
constexpr std::uint32_t kPages = 12;
constexpr std::uint32_t kPageTokens = 8;

// Runs two steps of kTokens each and returns the logits of three tokens of the second.
std::vector<float> logits_in(std::uint32_t pieces, bool by_piece, const Model& model, const Runtime& runtime) {
  const StepShape shape{.tokens = kTokens,
                        .outputs = 4,
                        .pages_per_sequence = kPages,
                        .pages = kPages,
                        .page_tokens = kPageTokens,
                        .cache_dtype = DType::F32,
                        .pieces = pieces,
                        .by_piece = by_piece};
  Graph graph = Loaded::take(build_step(model.config(), model.weights(), shape));
  const auto computation = Loaded::take(Computation::create(std::move(graph), runtime, &model.weights()));
  const auto write = [&](const std::string& name, std::span<const std::int32_t> values) {
    const Status status = computation->write(name, std::as_bytes(values));
    EXPECT_TRUE(status.has_value()) << status.error().message;
  };
  std::vector<std::int32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  write("pages", pages);
  write("output_rows", std::vector<std::int32_t>{1, kTokens / 2, kTokens - 1});
  constexpr std::uint32_t kSteps = 2;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const std::uint32_t count = kTokens / pieces;
    for (std::uint32_t piece = 0; piece < pieces; ++piece) {
      std::vector<std::int32_t> positions(count);
      std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(step * kTokens + piece * count));
      std::vector<std::int32_t> tokens;
      for (const std::int32_t position : positions) tokens.push_back(3 + (position * 7) % 50);
      write(input_of_piece("tokens", piece), tokens);
      write(input_of_piece("positions", piece), positions);
      write(input_of_piece("sequences", piece), std::vector<std::int32_t>(count, 0));
    }
    const Status status = computation->run({.tokens = kTokens, .outputs = 3, .positions = (step + 1) * kTokens});
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
  std::vector<float> logits(std::size_t{3} * model.config().vocabulary);
  const Status status = computation->read(0, 0, std::as_writable_bytes(std::span(logits)));
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return logits;
}

TEST(StepInPieces, HasTheLogitsOfOnePiece) {
  const auto runtime = Loaded::take(Runtime::create({.threads = 2, .devices = "cpu:scalar"}));
  std::size_t models = 0;
  for (const auto& file : std::filesystem::directory_iterator(SHUNT_TEST_DATA "/architectures")) {
    if (file.path().extension() != ".gguf") continue;
    SCOPED_TRACE(file.path().filename());
    const auto model = Loaded::take(Model::load(file.path()));
    const std::vector<float> whole = logits_in(1, false, *model, *runtime);
    for (const std::uint32_t pieces : {2U, 3U})
      for (const bool by_piece : {false, true})
        EXPECT_EQ(logits_in(pieces, by_piece, *model, *runtime), whole) << pieces << " pieces, by piece: " << by_piece;
    ++models;
  }
  EXPECT_GE(models, 5U);
}

}  // namespace
}  // namespace shunt::models
