// shunt tokenize: text into tokens.
#include "command.h"
#include "models/utf8.h"

namespace shunt::cli {

Action tokenize(CLI::App& command);
Action tokenize(CLI::App& command) {
  struct Options {
    std::string model;
    std::string text;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  command.add_option("text", options->text, "The text")->required();
  add_json(command, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const auto file, models::GgufFile::open(options->model));
    SHUNT_TRY_ASSIGN(const models::Tokenizer tokenizer, models::Tokenizer::create(file->metadata()));
    SHUNT_TRY_ASSIGN(const auto tokens, tokenizer.encode(options->text, {.add_bos = tokenizer.adds_bos(), .parse_special = true}));
    // A token may be part of a character: what JSON and terminals cannot show becomes U+FFFD.
    const auto piece = [&](models::Token token) {
      models::Utf8Stream characters;
      std::string text = characters.push(tokenizer.piece(token, true));
      return text + characters.flush();
    };
    Json json = {{"tokens", tokens}, {"pieces", Json::array()}};
    std::string lines;
    for (const models::Token token : tokens) {
      json["pieces"].push_back(piece(token));
      lines += fmt::format("{:>8}  {}\n", token, Json(piece(token)).dump());
    }
    return options->json ? print(json) : print(lines);
  };
}

}  // namespace shunt::cli
