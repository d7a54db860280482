// The steps of a model that bench commands time. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/session.h"

namespace shunt::cli {

// Returns whether a step of generation reads all of a weight: of an embedding it reads few rows.
[[nodiscard]] bool is_read_whole(const models::Model& model, const WeightInfo& weight);

// The same tokens each time.
[[nodiscard]] std::vector<Token> random_tokens(std::uint32_t count, std::uint32_t vocabulary);

// Measures the tokens per second of a prompt in an empty context. Reads what choosing a next token takes.
[[nodiscard]] Result<double> time_prompt(models::Session& session, std::span<const Token> prompt);
// Measures the tokens per second that all sequences together get one by one. Reads what choosing the next ones takes.
[[nodiscard]] Result<double> time_generation(models::Session& session, std::span<const Token> tokens,
                                             std::uint32_t sequences);

}  // namespace shunt::cli
