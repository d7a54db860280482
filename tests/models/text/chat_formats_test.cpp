// Each family of chat templates: recognised from a template of its form, and rendered exactly.
#include "models/text/chat_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/chat.h"

namespace shunt::models {
namespace {

struct Family {
  std::string_view name;
  std::string_view source;                 // a template with the family's markers and order of roles
  std::vector<std::string_view> specials;  // of the vocabulary; the first one is BOS
  // System "Be brief.", user "Hi", assistant "Hello!", user " Bye\n", and the start of a reply, without BOS.
  std::string_view rendered;
};

constexpr std::string_view kChatMlBody =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n' "
    "}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
constexpr std::string_view kQwen3Body =
    "{%- for message in messages %}{%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}"
    "{{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and "
    "enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}";
constexpr std::string_view kChatMlText =
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n"
    "<|im_start|>user\n Bye\n<|im_end|>\n<|im_start|>assistant\n";

const std::vector<Family>& families() {
  static const std::vector<Family> rows = {
      {"chatml", kChatMlBody, {"<s>", "<|im_start|>", "<|im_end|>"}, kChatMlText},
      {"qwen3", kQwen3Body, {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"}, kChatMlText},
      {"phi4",
       "{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|im_start|>system<|im_sep|>' + "
       "message['content'] + '<|im_end|>' }}{% elif message['role'] == 'user' %}{{ '<|im_start|>user<|im_sep|>' + "
       "message['content'] + '<|im_end|>' }}{% else %}{{ '<|im_start|>assistant<|im_sep|>' + message['content'] + "
       "'<|im_end|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}"
       "{% endif %}",
       {"<|endoftext|>", "<|im_start|>", "<|im_sep|>", "<|im_end|>"},
       "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>Hi<|im_end|><|im_start|>assistant"
       "<|im_sep|>Hello!<|im_end|><|im_start|>user<|im_sep|> Bye\n<|im_end|><|im_start|>assistant<|im_sep|>"},
      {"llama2",
       "{% if messages[0]['role'] == 'system' %}{% set system = '<<SYS>>\\n' + messages[0]['content'] + "
       "'\\n<</SYS>>\\n\\n' %}{% endif %}{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + "
       "'[INST] ' + content.strip() + ' [/INST]' }}{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}"
       "{% endfor %}",
       {"<s>", "</s>"},
       "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s><s>[INST] Bye [/INST]"},
      {"llama3",
       "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
       "'<|end_header_id|>\n\n' "
       "+ message['content'] | trim + '<|eot_id|>' %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ "
       "'<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
       {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi"
       "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user"
       "<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"gemma",
       "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + role + '\n' + (first_user_prefix if "
       "loop.first else '') + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt "
       "%}{{'<start_of_turn>model\n'}}{% endif %}",
       {"<bos>", "<start_of_turn>", "<end_of_turn>"},
       "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello!<end_of_turn>\n<start_of_turn>"
       "user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {"mistral",
       "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + "
       "message['content'] "
       "+ ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}",
       {"<s>", "</s>"},
       "[INST] Be brief.\n\nHi [/INST]Hello!</s>[INST]  Bye\n [/INST]"},
      {"mistral-v1",
       "{{ bos_token }}{%- for message in loop_messages %}{%- if message['role'] == 'user' %}{{- ' [INST] ' + "
       "message['content'] + ' [/INST]' }}{%- else %}{{- ' ' + message['content'] + eos_token }}{%- endif %}"
       "{%- endfor %}",
       {"<s>", "</s>"},
       " [INST] Be brief.\n\nHi [/INST] Hello!</s> [INST]  Bye\n [/INST]"},
      {"mistral-v3",
       "{{- bos_token }}{%- for message in loop_messages %}{%- if tools %}{{- \"[AVAILABLE_TOOLS] [\" }}{%- endif %}"
       "{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}{{- \" \" + message[\"content\"]|trim + eos_token}}"
       "{%- endfor %}",
       {"<s>", "</s>", "[INST]", "[/INST]"},
       "[INST] Be brief.\n\nHi[/INST] Hello!</s>[INST]  Bye\n[/INST]"},
      {"mistral-v3-tekken",
       "{{- bos_token }}{%- for message in loop_messages %}{%- if tools %}{{- \"[AVAILABLE_TOOLS][\" }}{%- endif %}"
       "{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}{{- message[\"content\"] + eos_token}}{%- endfor %}",
       {"<s>", "</s>", "[INST]", "[/INST]"},
       "[INST]Be brief.\n\nHi[/INST]Hello!</s>[INST] Bye\n[/INST]"},
      {"mistral-v7",
       "{{- bos_token }}{{- '[SYSTEM_PROMPT] ' + message['content'] + '[/SYSTEM_PROMPT]' }}{{- '[INST] ' + "
       "message['content'] + '[/INST]' }}{{- ' ' + message['content'] + eos_token }}",
       {"<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
       "[SYSTEM_PROMPT] Be brief.[/SYSTEM_PROMPT][INST] Hi[/INST] Hello!</s>[INST]  Bye\n[/INST]"},
      {"mistral-v7-tekken",
       "{{- bos_token }}{{- '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}{{- '[INST]' + "
       "message['content'] + '[/INST]' }}{{- message['content'] + eos_token }}",
       {"<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
       "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hi[/INST]Hello!</s>[INST] Bye\n[/INST]"},
      {"phi3",
       "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + "
       "'<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% else %}"
       "{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}"
       "{{ '<|assistant|>\n' }}{% endif %}",
       {"<s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"},
       "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello!<|end|>\n<|user|>\n Bye\n<|end|>\n"
       "<|assistant|>\n"},
      {"deepseek",
       "{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' "
       "%}{{'<｜User｜>' "
       "+ message['content']}}{%- else %}{{'<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>'}}{%- endif "
       "%}"
       "{%- endfor %}{% if add_generation_prompt %}{{'<｜Assistant｜>'}}{% endif %}",
       {"<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
       "Be brief.<｜User｜>Hi<｜Assistant｜>Hello!<｜end▁of▁sentence｜><｜User｜> Bye\n<｜Assistant｜>"},
      {"deepseek-r1",
       "{{bos_token}}{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] == 'user' "
       "%}{{'<｜User｜>' "
       "+ message['content']}}{%- else %}{% set content = content.split('</think>')[-1] %}{{'<｜Assistant｜>' + "
       "content "
       "+ '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endfor %}{% if add_generation_prompt %}"
       "{{'<｜Assistant｜><think>\\n'}}{% endif %}",
       {"<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<think>", "</think>"},
       "Be brief.<｜User｜>Hi<｜Assistant｜>Hello!<｜end▁of▁sentence｜><｜User｜> Bye\n<｜Assistant｜><think>\n"},
      {"gpt-oss",
       "{{- \"<|start|>system<|message|>\" }}{{- build_system_message() }}{{- \"<|end|>\" }}{%- for message in "
       "loop_messages -%}{{- \"<|start|>user<|message|>\" + message.content + \"<|end|>\" }}{{- "
       "\"<|start|>assistant<|channel|>final<|message|>\" + message.content + \"<|end|>\" }}{%- endfor -%}"
       "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}",
       {"<|startoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>"},
       "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06"
       "\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every "
       "message.<|end|><|start|>developer<|message|># Instructions\n\nBe brief.\n\n<|end|><|start|>user<|message|>Hi"
       "<|end|><|start|>assistant<|channel|>final<|message|>Hello!<|end|><|start|>user<|message|> Bye\n<|end|>"
       "<|start|>assistant"},
      {"granite",
       "{%- for message in messages %}{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + "
       "message['content'] + '<|end_of_text|>\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- "
       "'<|start_of_role|>assistant<|end_of_role|>' }}{%- endif %}",
       {"<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"},
       "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Hi"
       "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>Hello!<|end_of_text|>\n<|start_of_role|>user"
       "<|end_of_role|> Bye\n<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
  };
  return rows;
}

// Bytes and special tokens only.
Metadata metadata_of(const Family& family, bool add_bos) {
  std::vector<std::string> tokens(family.specials.begin(), family.specials.end());
  std::vector<std::int32_t> types(tokens.size(), 3);
  for (std::uint32_t code = 0x21; code < 0x144; ++code) {
    if ((code >= 0x7F && code < 0xA1) || code == 0xAD) continue;  // does not stand for a byte
    tokens.push_back(
        code < 0x80 ? std::string(1, static_cast<char>(code))
                    : std::string{static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))});
    types.push_back(1);
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.token_type", std::move(types));
  metadata.set("tokenizer.ggml.merges", std::vector<std::string>{});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{0});
  metadata.set("tokenizer.ggml.add_bos_token", add_bos);
  metadata.set("tokenizer.chat_template", std::string(family.source));
  return metadata;
}

const std::vector<Message>& conversation() {
  static const std::vector<Message> messages = {
      {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello!"}, {"user", " Bye\n"}};
  return messages;
}

std::string text_of(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  return tokenizer.decode(tokens, {.control = true}).value_or("?");
}

TEST(ChatFormats, EachFamilyIsRecognisedAndRenderedExactly) {
  for (const Family& family : families())
    for (const bool add_bos : {false, true}) {
      const Metadata metadata = metadata_of(family, add_bos);
      const auto tokenizer = Tokenizer::create(metadata);
      ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
      const auto chat = ChatTemplate::create(metadata, *tokenizer);
      ASSERT_TRUE(chat.has_value()) << family.name << ": " << chat.error().message;
      EXPECT_EQ(chat->name(), family.name);
      const auto tokens = chat->encode(conversation(), *tokenizer, true);
      ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
      EXPECT_EQ(text_of(*tokenizer, *tokens), family.rendered) << family.name;
      const bool begins_with_bos = add_bos || find_chat_format(family.name)->begins_with_bos;
      EXPECT_EQ(tokens->front() == 0, begins_with_bos) << family.name;
      for (std::size_t id = 1; id < family.specials.size(); ++id) {
        std::ptrdiff_t shown = 0;
        for (std::size_t at = family.rendered.find(family.specials[id]); at != std::string_view::npos;
             at = family.rendered.find(family.specials[id], at + 1))
          ++shown;
        EXPECT_EQ(std::ranges::count(*tokens, static_cast<Token>(id)), shown)
            << family.name << ' ' << family.specials[id];
      }
    }
}

TEST(ChatFormats, GoingOnTurnByTurnGivesTheWhole) {
  for (const Family& family : families()) {
    const Metadata metadata = metadata_of(family, true);
    const auto tokenizer = Tokenizer::create(metadata);
    const auto chat = ChatTemplate::create(metadata, *tokenizer);
    ASSERT_TRUE(chat.has_value()) << chat.error().message;
    const std::span<const Message> all = conversation();
    std::vector<Token> tokens = *chat->encode(all.first(3), *tokenizer, false);
    const std::vector<Token> more = *chat->encode_next(tokens, all.subspan(3), *tokenizer, true);
    tokens.insert(tokens.end(), more.begin(), more.end());
    EXPECT_EQ(text_of(*tokenizer, tokens), family.rendered) << family.name;
  }
}

TEST(ChatFormats, EveryRowHasAFamilyHereAndIsFoundByName) {
  for (const ChatFormat& format : chat_formats()) {
    EXPECT_EQ(find_chat_format(format.name), &format);
    const bool shown = std::ranges::find(families(), format.name, &Family::name) != families().end();
    EXPECT_EQ(shown, format.name != "qwen3-no-thinking") << format.name;
    EXPECT_NE(std::ranges::find(format.roles, "assistant", &RoleFormat::role), format.roles.end());
  }
  EXPECT_EQ(find_chat_format("none"), nullptr);
}

TEST(ChatFormats, QwenThinksOrNotByName) {
  const Family& qwen = *std::ranges::find(families(), "qwen3", &Family::name);
  const Metadata metadata = metadata_of(qwen, false);
  const auto tokenizer = Tokenizer::create(metadata);
  ASSERT_TRUE(tokenizer.has_value());
  const auto quiet = ChatTemplate::named("qwen3-no-thinking", *tokenizer);
  ASSERT_TRUE(quiet.has_value()) << quiet.error().message;
  EXPECT_EQ(text_of(*tokenizer, *quiet->encode(conversation(), *tokenizer, true)),
            std::string(qwen.rendered) + "<think>\n\n</think>\n\n");
  // Thoughts in past replies are left out.
  std::vector<Message> messages = conversation();
  messages[2].content = "<think>\nA greeting.\n</think>\n\nHello!";
  for (const std::string_view name : {"qwen3", "chatml"}) {
    const auto chat = ChatTemplate::named(name, *tokenizer);
    EXPECT_EQ(text_of(*tokenizer, *chat->encode(messages, *tokenizer, true)) == qwen.rendered, name == "qwen3");
  }
}

TEST(ChatFormats, ASystemMessageAloneIsAnErrorWhereItStandsInTheUsersTurn) {
  const Family& gemma = *std::ranges::find(families(), "gemma", &Family::name);
  const Metadata metadata = metadata_of(gemma, true);
  const auto tokenizer = Tokenizer::create(metadata);
  const auto chat = ChatTemplate::create(metadata, *tokenizer);
  ASSERT_TRUE(chat.has_value());
  const auto alone = chat->encode(std::span(conversation()).first(1), *tokenizer, false);
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().message,
            "chat template gemma has the system message in the user's turn; give a user's message after it");
  const std::vector<Message> wrong = {{"system", "a"}, {"assistant", "b"}};
  EXPECT_FALSE(chat->encode(wrong, *tokenizer, false).has_value());
}

TEST(ChatFormats, UnknownTemplatesAndNamesListTheKnownOnes) {
  Family other = families().front();
  other.source = "{% for message in messages %}### {{ message.role }}: {{ message.content }}{% endfor %}";
  const Metadata metadata = metadata_of(other, true);
  const auto tokenizer = Tokenizer::create(metadata);
  const auto unknown = ChatTemplate::create(metadata, *tokenizer);
  const auto unnamed = ChatTemplate::named("alpaca", *tokenizer);
  for (const auto& failed : {unknown, unnamed}) {
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, Code::unsupported);
    for (const std::string_view name : ChatTemplate::names())
      EXPECT_NE(failed.error().message.find(name), std::string::npos) << failed.error().message;
  }
  EXPECT_NE(unknown.error().message.find("--template"), std::string::npos);
  const auto lacking = ChatTemplate::named("llama3", *tokenizer);
  ASSERT_FALSE(lacking.has_value());
  EXPECT_NE(lacking.error().message.find("<|start_header_id|>"), std::string::npos);
}

// gpt-oss separates the messages of one reply by a token that ends the reply in other families.
TEST(ChatFormats, TheEndOfAHarmonyMessageEndsNoReply) {
  const auto tokenizer_of = [](std::string_view name) {
    return *Tokenizer::create(metadata_of(*std::ranges::find(families(), name, &Family::name), true));
  };
  const Tokenizer harmony = tokenizer_of("gpt-oss");
  EXPECT_FALSE(harmony.is_end(*harmony.special("<|end|>")));
  EXPECT_TRUE(harmony.is_end(*harmony.special("<|return|>")));
  const Tokenizer phi = tokenizer_of("phi3");
  EXPECT_TRUE(phi.is_end(*phi.special("<|end|>")));
}

}  // namespace
}  // namespace shunt::models
