// THE table of chat formats: what a model's template renders, as one row of plain text for each family.
//
// A row says how each role opens and closes a turn; the texts are those that the published templates write, role for
// role. Static data; safe from many threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace shunt::models {

struct RoleFormat {
  std::string_view role;
  std::string_view opens;
  std::string_view closes;
};

struct ChatFormat {
  std::string_view name;
  // The template's source contains all of these, and those of no row before. None: chosen by name alone.
  std::vector<std::string_view> recognised_by{};
  std::vector<std::string_view> markers{};  // must be special tokens
  std::string_view reply_end{};             // the marker that ends a reply
  // BOS begins a conversation, whatever the file says of other texts.
  bool begins_with_bos = false;
  std::string_view begins{};        // stands before the first turn
  std::vector<RoleFormat> roles{};  // one of them "assistant"
  std::string_view asks{};          // the opening of a reply
  // The system message stands, untrimmed, in the turn of the user's next one, between its opening and its content.
  bool system_in_user = false;
  bool trims = false;  // white space around contents
  // Of an assistant's content only what follows this is told again, without the characters of `thought_gap` before it.
  std::string_view thought_end{};
  std::string_view thought_gap{};
};

// In the order in which they are tried.
[[nodiscard]] std::span<const ChatFormat> chat_formats();

// Null where no row has this name.
[[nodiscard]] const ChatFormat* find_chat_format(std::string_view name);

}  // namespace shunt::models
