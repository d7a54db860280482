// shunt tokenize: splits a text into a model's tokens.
#include <fmt/format.h>

#include "command.h"
#include "input.h"
#include "loading.h"
#include "models/text/utf8.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  bool json = false;
};

// A token that is part of a character shows as U+FFFD.
std::string text_of(const models::Tokenizer& tokenizer, Token token) {
  models::Utf8Stream characters;
  const std::string begin = characters.push(tokenizer.piece(token, true));
  return begin + characters.flush();
}

Status execute(const TokenizeOptions& options) {
  SHUNT_TRY_ASSIGN(const auto file, models::GgufFile::open(options.model));
  auto tokenizer = models::Tokenizer::create(file->metadata());
  if (!tokenizer) return fail_at(options.model, std::move(tokenizer).error());
  std::string text;
  if (options.text) {
    text = *options.text;
  } else {
    SHUNT_TRY_ASSIGN(text, read_stdin());
  }
  SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, encode_raw(*tokenizer, text));
  Json json = {{"tokens", tokens}, {"pieces", Json::array()}};
  std::string lines;
  for (const Token token : tokens) {
    const std::string piece = text_of(*tokenizer, token);
    json["pieces"].push_back(piece);
    lines += fmt::format("{:>8}  {}\n", token, in_quotes(piece));
  }
  return options.json ? print_json(json) : print(lines);
}

}  // namespace

Action tokenize(CommandLine& line) {
  auto options = std::make_shared<TokenizeOptions>();
  add_model(line, options->model);
  line.option("TEXT", options->text, "The text, in which special tokens are parsed [stdin]");
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
