#include "models/text/chat_formats.h"

#include <algorithm>
#include <utility>

namespace shunt::models {
namespace {

std::vector<RoleFormat> chatml_roles() {
  return {{"system", "<|im_start|>system\n", "<|im_end|>\n"},
          {"user", "<|im_start|>user\n", "<|im_end|>\n"},
          {"assistant", "<|im_start|>assistant\n", "<|im_end|>\n"}};
}

// gpt-oss's template writes this text itself, plus a line with today's date, which is left out.
constexpr std::string_view kHarmonySystem =
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: "
    "2024-06\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every "
    "message.<|end|>";

std::vector<ChatFormat> chatml_family() {
  return {
      {.name = "phi4",
       .recognised_by = {"<|im_start|>", "<|im_sep|>"},
       .markers = {"<|im_start|>", "<|im_sep|>", "<|im_end|>"},
       .reply_end = "<|im_end|>",
       .roles = {{"system", "<|im_start|>system<|im_sep|>", "<|im_end|>"},
                 {"user", "<|im_start|>user<|im_sep|>", "<|im_end|>"},
                 {"assistant", "<|im_start|>assistant<|im_sep|>", "<|im_end|>"}},
       .asks = "<|im_start|>assistant<|im_sep|>"},
      {.name = "qwen3",
       .recognised_by = {"<|im_start|>", "<|im_end|>", "enable_thinking"},
       .markers = {"<|im_start|>", "<|im_end|>"},
       .reply_end = "<|im_end|>",
       .roles = chatml_roles(),
       .asks = "<|im_start|>assistant\n",
       .thought_end = "</think>",
       .thought_gap = "\n"},
      {.name = "qwen3-no-thinking",
       .markers = {"<|im_start|>", "<|im_end|>"},
       .reply_end = "<|im_end|>",
       .roles = chatml_roles(),
       .asks = "<|im_start|>assistant\n<think>\n\n</think>\n\n",
       .thought_end = "</think>",
       .thought_gap = "\n"},
      {.name = "chatml",
       .recognised_by = {"<|im_start|>", "<|im_end|>"},
       .markers = {"<|im_start|>", "<|im_end|>"},
       .reply_end = "<|im_end|>",
       .roles = chatml_roles(),
       .asks = "<|im_start|>assistant\n"},
  };
}

// Llama 2 and the versions of Mistral, which differ in a space here and there.
std::vector<ChatFormat> inst_family() {
  const auto mistral = [](std::string_view name, std::vector<std::string_view> recognised_by, RoleFormat system,
                          RoleFormat user, RoleFormat assistant, bool system_in_user) {
    return ChatFormat{.name = name,
                      .recognised_by = std::move(recognised_by),
                      .markers = {"</s>"},
                      .reply_end = "</s>",
                      .begins_with_bos = true,
                      .roles = {system, user, assistant},
                      .system_in_user = system_in_user};
  };
  constexpr RoleFormat kInUser{"system", "", "\n\n"};
  return {
      {.name = "llama2",
       .recognised_by = {"[INST]", "<<SYS>>"},
       .markers = {"<s>", "</s>"},
       .reply_end = "</s>",
       .begins_with_bos = true,
       .roles = {{"system", "<<SYS>>\n", "\n<</SYS>>\n\n"},
                 {"user", "<s>[INST] ", " [/INST]"},
                 {"assistant", " ", " </s>"}},
       .system_in_user = true,
       .trims = true},
      mistral("mistral-v7", {"[INST]", "[SYSTEM_PROMPT] "}, {"system", "[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
              {"user", "[INST] ", "[/INST]"}, {"assistant", " ", "</s>"}, false),
      mistral("mistral-v7-tekken", {"[INST]", "[SYSTEM_PROMPT]"}, {"system", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
              {"user", "[INST]", "[/INST]"}, {"assistant", "", "</s>"}, false),
      mistral("mistral-v1", {" [INST] ", " [/INST]"}, kInUser, {"user", " [INST] ", " [/INST]"},
              {"assistant", " ", "</s>"}, true),
      mistral("mistral-v3-tekken", {"[AVAILABLE_TOOLS]", "[INST]\""}, kInUser, {"user", "[INST]", "[/INST]"},
              {"assistant", "", "</s>"}, true),
      mistral("mistral-v3", {"[AVAILABLE_TOOLS]", "[INST] "}, kInUser, {"user", "[INST] ", "[/INST]"},
              {"assistant", " ", "</s>"}, true),
      mistral("mistral", {"[INST] ", " [/INST]"}, kInUser, {"user", "[INST] ", " [/INST]"}, {"assistant", "", "</s>"},
              true),
  };
}

std::vector<ChatFormat> other_families() {
  return {
      {.name = "gpt-oss",
       .recognised_by = {"<|start|>", "<|channel|>", "<|message|>"},
       .markers = {"<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"},
       .reply_end = "<|return|>",
       .begins = kHarmonySystem,
       .roles = {{"system", "<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"},
                 {"user", "<|start|>user<|message|>", "<|end|>"},
                 {"assistant", "<|start|>assistant<|channel|>final<|message|>", "<|end|>"}},
       .asks = "<|start|>assistant"},
      {.name = "llama3",
       .recognised_by = {"<|start_header_id|>", "<|end_header_id|>"},
       .markers = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       .reply_end = "<|eot_id|>",
       .begins_with_bos = true,
       .roles = {{"system", "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                 {"user", "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                 {"assistant", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}},
       .asks = "<|start_header_id|>assistant<|end_header_id|>\n\n",
       .trims = true},
      {.name = "gemma",
       .recognised_by = {"<start_of_turn>", "<end_of_turn>"},
       .markers = {"<start_of_turn>", "<end_of_turn>"},
       .reply_end = "<end_of_turn>",
       .begins_with_bos = true,
       .roles = {{"system", "", "\n\n"},
                 {"user", "<start_of_turn>user\n", "<end_of_turn>\n"},
                 {"assistant", "<start_of_turn>model\n", "<end_of_turn>\n"}},
       .asks = "<start_of_turn>model\n",
       .system_in_user = true,
       .trims = true},
      {.name = "phi3",
       .recognised_by = {"<|user|>", "<|assistant|>", "<|end|>"},
       .markers = {"<|user|>", "<|assistant|>", "<|end|>"},
       .reply_end = "<|end|>",
       .roles = {{"system", "<|system|>\n", "<|end|>\n"},
                 {"user", "<|user|>\n", "<|end|>\n"},
                 {"assistant", "<|assistant|>\n", "<|end|>\n"}},
       .asks = "<|assistant|>\n"},
      {.name = "granite",
       .recognised_by = {"<|start_of_role|>", "<|end_of_role|>"},
       .markers = {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"},
       .reply_end = "<|end_of_text|>",
       .roles = {{"system", "<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
                 {"user", "<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
                 {"assistant", "<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"}},
       .asks = "<|start_of_role|>assistant<|end_of_role|>"},
  };
}

// V3, and R1, which begins its reply with a thought.
std::vector<ChatFormat> deepseek_family() {
  ChatFormat plain{.name = "deepseek",
                   .recognised_by = {"<｜User｜>", "<｜Assistant｜>"},
                   .markers = {"<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
                   .reply_end = "<｜end▁of▁sentence｜>",
                   .begins_with_bos = true,
                   .roles = {{"system", "", ""},
                             {"user", "<｜User｜>", ""},
                             {"assistant", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"}},
                   .asks = "<｜Assistant｜>",
                   .thought_end = "</think>"};
  ChatFormat thinking = plain;
  thinking.name = "deepseek-r1";
  thinking.recognised_by = {"<｜User｜>", "<｜Assistant｜><think>"};
  thinking.asks = "<｜Assistant｜><think>\n";
  return {thinking, plain};
}

}  // namespace

std::span<const ChatFormat> chat_formats() {
  static const std::vector<ChatFormat> rows = [] {
    std::vector<ChatFormat> all;
    for (const auto& family : {other_families(), chatml_family(), inst_family(), deepseek_family()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return rows;
}

const ChatFormat* find_chat_format(std::string_view name) {
  const std::span<const ChatFormat> rows = chat_formats();
  const auto row = std::ranges::find(rows, name, &ChatFormat::name);
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace shunt::models
