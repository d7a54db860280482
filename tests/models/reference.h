// Expected results that Hugging Face transformers computed from the trained model, and sessions to compare with them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/session.h"

namespace shunt::models {

inline const nlohmann::json& reference() {
  static const nlohmann::json kReference = [] {
    std::ifstream file(SHUNT_TEST_DATA "/tiny-llama-reference.json");
    return nlohmann::json::parse(file, nullptr, false);
  }();
  return kReference;
}

inline constexpr const char* kTrainedModel = SHUNT_TEST_DATA "/tiny-llama-f16.gguf";

// A model with a runtime and a session. Ends the test program if the fixture is missing.
struct Loaded {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;

  Loaded(const std::string& path, const std::string& devices, const SessionOptions& options)
      : Loaded(path, take(Runtime::create({.threads = 2, .devices = devices})), options) {}
  Loaded(const std::string& path, std::unique_ptr<Runtime> on, const SessionOptions& options) : runtime(std::move(on)) {
    model = take(Model::load(path));
    session = take(Session::create(*model, *runtime, options));
  }

  template <class T>
  static T take(Result<T> result) {
    if (!result) {
      ADD_FAILURE() << result.error().message;
      std::abort();
    }
    return std::move(*result);
  }
};

// Returns the token ids of one of the reference's prompts.
inline std::vector<Token> prompt_ids(std::size_t index) {
  return reference()["prompts"][index]["ids"].get<std::vector<Token>>();
}

inline Token best_of(std::span<const float> logits) {
  return static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
}

inline void expect_says(const std::string& message, std::string_view part) {
  EXPECT_NE(message.find(part), std::string::npos) << "\"" << message << "\" does not say \"" << part << "\"";
}

// Returns the logits after each of the last `count` tokens, row after row.
inline std::vector<float> last_logits(Session& session, const std::vector<Token>& tokens, std::size_t count) {
  session.truncate(0, 0);
  std::vector<float> all;
  for (std::size_t begin = 0; begin < tokens.size(); begin += usual_step(session.options())) {
    const std::size_t end = std::min<std::size_t>(tokens.size(), begin + usual_step(session.options()));
    std::vector<BatchToken> batch;
    std::size_t wanted = 0;
    for (std::size_t i = begin; i < end; ++i) {
      batch.push_back({.sequence = 0, .token = tokens[i], .wants_logits = i + count >= tokens.size()});
      if (batch.back().wants_logits) ++wanted;
    }
    const Status status = session.decode(batch);
    EXPECT_TRUE(status.has_value()) << status.error().message;
    if (!status) return {};
    for (std::size_t i = 0; i < wanted; ++i) all.insert(all.end(), session.logits(i).begin(), session.logits(i).end());
  }
  return all;
}

}  // namespace shunt::models
