// THE table of chat formats: what a model's template renders, as one row of plain text per family.
//
// A row says how each role opens and closes a turn, with exactly the text of the published templates. Static data; safe
// from many threads.
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
  // The row matches a template whose source contains all of these; earlier rows are tried first. Empty: chosen by name
  // only.
  std::vector<std::string_view> recognised_by{};
  std::vector<std::string_view> markers{};  // must be special tokens
  std::string_view reply_end{};             // the marker that ends a reply
  // Begin conversations with BOS even if the file says otherwise for other texts.
  bool begins_with_bos = false;
  std::string_view begins{};        // text before the first turn
  std::vector<RoleFormat> roles{};  // one of them "assistant"
  std::string_view asks{};          // the opening of a reply
  // The system message goes, untrimmed, into the next user turn, between its opening and its content.
  bool system_in_user = false;
  bool trims = false;  // strip white space around contents
  // Of an assistant's content only the part after this is kept, without the characters of `thought_gap` at its start.
  std::string_view thought_end{};
  std::string_view thought_gap{};
};

// The rows, in the order in which they are tried.
[[nodiscard]] std::span<const ChatFormat> chat_formats();

// Returns null if no row has this name.
[[nodiscard]] const ChatFormat* find_chat_format(std::string_view name);

}  // namespace shunt::models
