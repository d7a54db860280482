// The cache's pages while sequences grow, shrink and fill up in any order.
#include <cmath>
#include <random>

#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/step_planner.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kSequences = 3;
constexpr std::uint32_t kContext = 2 * kPageTokens;

class Pages : public testing::Test {
 protected:
  Pages() {
    EXPECT_TRUE(make_model("nano", "F16", folder_.file("m")).has_value());
    // One thread: these models are too small to share.
    runtime_ = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:scalar"}));
    model_ = Loaded::take(Model::load(folder_.file("m")));
  }
  std::unique_ptr<Session> session_of(std::uint32_t context, std::uint32_t sequences) {
    return Loaded::take(Session::create(*model_, *runtime_, {.context = context, .max_sequences = sequences}));
  }

  void expect_logits_of_fresh_session(const Session& session, std::span<const float> logits,
                                      const std::vector<Token>& tokens) {
    const std::vector<float> expected = last_logits(*session_of(kContext, 1), tokens, 1);
    ASSERT_EQ(logits.size(), session.model().config().vocabulary);
    ASSERT_EQ(expected.size(), logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], 1e-5) << "token " << i;
  }

  TestFolder folder_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Model> model_;
};

TEST_F(Pages, AnyOrderOfGrowingAndShrinkingGivesTheLogitsOfTheTokens) {
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    const auto owned = session_of(kContext, kSequences);
    Session& session = *owned;
    std::mt19937 random(seed);
    std::vector<std::vector<Token>> tokens(kSequences);
    for (int step = 0; step < 40; ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      const auto sequence = static_cast<std::uint32_t>(random() % kSequences);
      std::vector<Token>& own = tokens[sequence];
      if (random() % 3 == 0) {
        const std::size_t length = random() % (own.size() + 5);
        session.truncate(sequence, length);
        own.resize(std::min(own.size(), length));
      } else {
        std::vector<Token> more(1 + random() % (kContext - 1));
        // Often exactly as many as fit.
        if (random() % 2 == 0 || more.size() > kContext - own.size()) more.resize(kContext - own.size());
        for (Token& token : more) token = static_cast<Token>(5 + random() % 250);
        if (more.empty()) continue;
        const Status done = session.prefill(sequence, more);
        ASSERT_TRUE(done.has_value()) << done.error().message;
        own.insert(own.end(), more.begin(), more.end());
        expect_logits_of_fresh_session(session, session.logits(0), own);
      }
      for (std::uint32_t i = 0; i < kSequences; ++i)
        ASSERT_TRUE(std::ranges::equal(session.tokens(i), tokens[i])) << "sequence " << i;
      if (HasFailure()) return;
    }
  }
}

TEST_F(Pages, EverySequenceCanBeFilledAtTheSameTime) {
  for (const std::uint32_t context : {1U, kPageTokens - 1, kPageTokens, kPageTokens + 1, 3 * kPageTokens}) {
    const auto owned = session_of(context, kSequences);
    Session& session = *owned;
    for (std::uint32_t token = 0; token < context; ++token) {
      std::vector<BatchToken> batch;
      for (std::uint32_t i = 0; i < kSequences; ++i)
        batch.push_back({.sequence = i, .token = static_cast<Token>(5 + token), .wants_logits = true});
      const Status done = session.decode(batch);
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
    for (std::uint32_t i = 0; i < kSequences; ++i) {
      EXPECT_EQ(session.tokens(i).size(), context);
      const BatchToken over[] = {{.sequence = i, .token = 5}};
      EXPECT_FALSE(session.decode(over).has_value());
    }
    // The same tokens give the same logits, whichever pages they are in.
    for (std::size_t i = 0; i < session.logits(0).size(); ++i)
      for (std::size_t row = 1; row < kSequences; ++row)
        ASSERT_NEAR(session.logits(row)[i], session.logits(0)[i], 1e-4) << "context " << context;
  }
}

}  // namespace
}  // namespace shunt::models
