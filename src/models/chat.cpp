#include "models/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace shunt::models {

struct RoleFormat {
  std::string_view role;
  std::string_view opens;
  std::string_view closes;
};

struct ChatFormat {
  std::string_view name;
  std::vector<std::string_view> recognised_by;  // the template's source contains all of these
  std::vector<std::string_view> markers;        // must be special tokens
  std::string_view reply_end;                   // the marker that ends a reply
  std::vector<RoleFormat> roles;                // one of them "assistant", whose opening asks for a reply
};

namespace {

// A conversation begins every turn with a marker, so that turns can be encoded one after the other.
const std::vector<ChatFormat>& formats() {
  static const std::vector<ChatFormat> rows = {
      {.name = "chatml",
       .recognised_by = {"<|im_start|>", "<|im_end|>"},
       .markers = {"<|im_start|>", "<|im_end|>"},
       .reply_end = "<|im_end|>",
       .roles = {{"system", "<|im_start|>system\n", "<|im_end|>\n"},
                 {"user", "<|im_start|>user\n", "<|im_end|>\n"},
                 {"assistant", "<|im_start|>assistant\n", "<|im_end|>\n"}}},
  };
  return rows;
}

std::string known_formats() {
  std::vector<std::string_view> names;
  names.reserve(formats().size());
  for (const ChatFormat& format : formats()) names.push_back(format.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const RoleFormat* find_role(const ChatFormat& format, std::string_view role) {
  const auto place = std::ranges::find(format.roles, role, &RoleFormat::role);
  return place == format.roles.end() ? nullptr : &*place;
}

constexpr std::string_view kAssistant = "assistant";

}  // namespace

Result<ChatTemplate> ChatTemplate::create(const Metadata& metadata, const Tokenizer& tokenizer) {
  if (metadata.find("tokenizer.chat_template") == nullptr)
    return fail(Code::unsupported,
                "the model has no chat template (tokenizer.chat_template); use --raw to give the prompt as it is");
  SHUNT_TRY_ASSIGN(const std::string_view source, metadata.string("tokenizer.chat_template"));
  const auto recognised = [&](const ChatFormat& format) {
    return std::ranges::all_of(format.recognised_by, [&](std::string_view part) { return source.contains(part); });
  };
  const auto format = std::ranges::find_if(formats(), recognised);
  if (format == formats().end())
    return fail(Code::unsupported, fmt::format("the model's chat template is of an unknown kind; supported: {}; use "
                                               "--raw to give the prompt as it is",
                                               known_formats()));
  for (const std::string_view marker : format->markers)
    if (!tokenizer.special(marker))
      return fail(Code::unsupported, fmt::format("chat template {} needs the special token {}, which the vocabulary "
                                                 "lacks; use --raw to give the prompt as it is",
                                                 format->name, marker));
  return ChatTemplate(*format, *tokenizer.special(format->reply_end));
}

Result<std::vector<Token>> ChatTemplate::encode(std::span<const Message> messages, const Tokenizer& tokenizer,
                                                bool add_generation_prompt) const {
  SHUNT_TRY_ASSIGN(const std::vector<Segment> segments, lay_out(messages, add_generation_prompt));
  return tokenizer.encode_segments(segments, {.add_bos = tokenizer.adds_bos(), .add_prefix = true});
}

Result<std::vector<Token>> ChatTemplate::encode_next(std::span<const Token> so_far, std::span<const Message> messages,
                                                     const Tokenizer& tokenizer, bool add_generation_prompt) const {
  if (so_far.empty()) return encode(messages, tokenizer, add_generation_prompt);
  constexpr SegmentOptions follows{.add_bos = false, .add_prefix = false};
  const Segment closing{find_role(*format_, kAssistant)->closes, Markup::all};
  SHUNT_TRY_ASSIGN(std::vector<Token> tokens, tokenizer.encode_segments(std::span(&closing, 1), follows));
  std::size_t closed = std::min(tokens.size(), so_far.size());
  while (!std::ranges::equal(so_far.last(closed), std::span(tokens).first(closed))) --closed;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(closed));

  SHUNT_TRY_ASSIGN(const std::vector<Segment> segments, lay_out(messages, add_generation_prompt));
  SHUNT_TRY_ASSIGN(const std::vector<Token> more, tokenizer.encode_segments(segments, follows));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

Result<std::vector<Segment>> ChatTemplate::lay_out(std::span<const Message> messages,
                                                   bool add_generation_prompt) const {
  std::vector<Segment> segments;
  segments.reserve(3 * messages.size() + 1);
  for (const Message& message : messages) {
    const RoleFormat* role = find_role(*format_, message.role);
    if (role == nullptr) {
      std::vector<std::string_view> known;
      known.reserve(format_->roles.size());
      for (const RoleFormat& row : format_->roles) known.push_back(row.role);
      return fail(Code::invalid, fmt::format("chat role \"{}\" is unknown to template {}; roles are {}", message.role,
                                             format_->name, fmt::join(known, ", ")));
    }
    segments.push_back({role->opens, Markup::all});
    segments.push_back({message.content, Markup::none});
    segments.push_back({role->closes, Markup::all});
  }
  if (add_generation_prompt) segments.push_back({find_role(*format_, kAssistant)->opens, Markup::all});
  return segments;
}

std::string_view ChatTemplate::name() const { return format_->name; }

}  // namespace shunt::models
