#include "models/text/chat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "models/text/chat_formats.h"

namespace shunt::models {
namespace {

constexpr std::string_view kSystem = "system";
constexpr std::string_view kUser = "user";
constexpr std::string_view kAssistant = "assistant";

const RoleFormat* find_role(const ChatFormat& format, std::string_view role) {
  const auto place = std::ranges::find(format.roles, role, &RoleFormat::role);
  return place == format.roles.end() ? nullptr : &*place;
}

std::string roles_of(const ChatFormat& format) {
  std::vector<std::string_view> names;
  names.reserve(format.roles.size());
  for (const RoleFormat& row : format.roles) names.push_back(row.role);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the content of a message as the format renders it.
std::string_view told(const Message& message, const ChatFormat& format) {
  constexpr std::string_view kWhite = " \t\n\v\f\r";
  std::string_view content = message.content;
  if (message.role == kAssistant && !format.thought_end.empty()) {
    if (const std::size_t end = content.rfind(format.thought_end); end != std::string_view::npos) {
      content.remove_prefix(end + format.thought_end.size());
      content.remove_prefix(std::min(content.find_first_not_of(format.thought_gap), content.size()));
    }
  }
  if (!format.trims) return content;
  content.remove_prefix(std::min(content.find_first_not_of(kWhite), content.size()));
  return content.substr(0, content.find_last_not_of(kWhite) + 1);
}

}  // namespace

Result<ChatTemplate> ChatTemplate::create(const Metadata& metadata, const Tokenizer& tokenizer) {
  if (metadata.find("tokenizer.chat_template") == nullptr)
    return fail(Code::unsupported,
                "the model has no chat template (tokenizer.chat_template); use --raw to give the prompt as it is");
  SHUNT_TRY_ASSIGN(const std::string_view source, metadata.string("tokenizer.chat_template"));
  const auto recognised = [&](const ChatFormat& format) {
    return !format.recognised_by.empty() &&
           std::ranges::all_of(format.recognised_by, [&](std::string_view part) { return source.contains(part); });
  };
  const auto format = std::ranges::find_if(chat_formats(), recognised);
  if (format == chat_formats().end())
    return fail(Code::unsupported, fmt::format("the model's chat template is of an unknown kind; choose one with "
                                               "--template ({}), or use --raw to give the prompt as it is",
                                               fmt::join(names(), ", ")));
  return of(*format, tokenizer);
}

Result<ChatTemplate> ChatTemplate::named(std::string_view name, const Tokenizer& tokenizer) {
  const ChatFormat* format = find_chat_format(name);
  if (format == nullptr)
    return fail(Code::unsupported,
                fmt::format("no chat template is named \"{}\"; choose from {}", name, fmt::join(names(), ", ")));
  return of(*format, tokenizer);
}

std::vector<std::string_view> ChatTemplate::names() {
  std::vector<std::string_view> all;
  for (const ChatFormat& format : chat_formats()) all.push_back(format.name);
  return all;
}

Result<ChatTemplate> ChatTemplate::of(const ChatFormat& format, const Tokenizer& tokenizer) {
  for (const std::string_view marker : format.markers)
    if (!tokenizer.special(marker))
      return fail(Code::unsupported, fmt::format("chat template {} needs the special token {}, which the vocabulary "
                                                 "lacks; use --raw to give the prompt as it is",
                                                 format.name, marker));
  return ChatTemplate(format, *tokenizer.special(format.reply_end));
}

Result<std::vector<Token>> ChatTemplate::encode(std::span<const Message> messages, const Tokenizer& tokenizer,
                                                bool add_generation_prompt) const {
  SHUNT_TRY_ASSIGN(std::vector<Segment> segments, lay_out(messages, add_generation_prompt));
  if (!format_->begins.empty()) segments.insert(segments.begin(), Segment{format_->begins, Markup::all});
  const bool bos = tokenizer.adds_bos() || (format_->begins_with_bos && tokenizer.bos());
  return tokenizer.encode_segments(segments, {.add_bos = bos, .add_prefix = true});
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
  segments.reserve(6 * messages.size() + 1);
  const Message* held = nullptr;  // a system message that waits for a user message
  for (const Message& message : messages) {
    const RoleFormat* role = find_role(*format_, message.role);
    if (role == nullptr)
      return fail(Code::invalid, fmt::format("chat role \"{}\" is unknown to template {}; roles are {}", message.role,
                                             format_->name, roles_of(*format_)));
    if (held != nullptr && message.role != kUser) return fail(Code::invalid, system_alone());
    if (format_->system_in_user && message.role == kSystem) {
      held = &message;
      continue;
    }
    segments.push_back({role->opens, Markup::all});
    if (held != nullptr) {
      const RoleFormat* system = find_role(*format_, kSystem);
      segments.push_back({system->opens, Markup::all});
      segments.push_back({held->content, Markup::none});
      segments.push_back({system->closes, Markup::all});
      held = nullptr;
    }
    segments.push_back({told(message, *format_), Markup::none});
    segments.push_back({role->closes, Markup::all});
  }
  if (held != nullptr) return fail(Code::invalid, system_alone());
  if (add_generation_prompt) segments.push_back({format_->asks, Markup::all});
  return segments;
}

std::string ChatTemplate::system_alone() const {
  return fmt::format("chat template {} has the system message in the user's turn; give a user's message after it",
                     format_->name);
}

std::string_view ChatTemplate::name() const { return format_->name; }

}  // namespace shunt::models
