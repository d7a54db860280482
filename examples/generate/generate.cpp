// Text out of a model file: goes on from a prompt, or answers it where the model knows a chat format.
//
//   generate MODEL PROMPT [DEVICES]
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/model.h"

namespace {

using namespace shunt;

Result<std::vector<Token>> tokens_of(const LanguageModel& model, const std::string& prompt) {
  const Message messages[] = {{.role = "user", .content = prompt}};
  if (model.chat_format()) return model.apply_chat_template(messages);
  return model.encode(prompt, {.add_bos = model.adds_bos(), .parse_special = true});
}

bool show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

Status run(const std::string& path, const std::string& prompt, const std::string& devices) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.devices = devices}));
  SHUNT_TRY_ASSIGN(const auto model, LanguageModel::load(path));
  SHUNT_TRY_ASSIGN(const auto session, LanguageSession::create(*model, *runtime));
  SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, tokens_of(*model, prompt));
  SHUNT_TRY_ASSIGN(const Generation generation,
                   session->generate(tokens, {.max_tokens = 64, .sampling = {.greedy = true}}, {.on_text = show}));
  std::printf("\n%u tokens read in %.2f s, %zu generated in %.2f s; ended by: %s\n", generation.prompt_tokens,
              generation.prompt_s, generation.tokens.size(), generation.generate_s,
              std::string(name_of(generation.stop)).c_str());
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "generate MODEL PROMPT [DEVICES]\n");
    return 2;
  }
  const Status status = run(arguments[1], arguments[2], count > 3 ? arguments[3] : "");
  if (!status) std::fprintf(stderr, "generate: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
