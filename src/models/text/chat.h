// Chat templates: how a conversation is laid out as tokens.
//
// A file has its template as Jinja source. It is not run but recognized; one row of the table in chat_formats.cpp then
// says how each role opens and closes. Only the row's own markers become special tokens; the contents of messages never
// do, whatever they spell. Additions of a template, such as a default system message or today's date, are left out, and
// a system message stays where it was given. Plain values; all calls are safe from many threads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.h"
#include "shunt/model.h"

namespace shunt::models {

struct ChatFormat;

class ChatTemplate {
 public:
  // Recognizes tokenizer.chat_template. Errors: unsupported if there is none, it is unknown, or one of its markers is
  // not a special token of the vocabulary.
  [[nodiscard]] static Result<ChatTemplate> create(const Metadata& metadata, const Tokenizer& tokenizer);

  // Returns the row of this name, whatever the file's template is. Errors: unsupported if there is no such row, with
  // the list of names, or if one of its markers is not a special token of the vocabulary.
  [[nodiscard]] static Result<ChatTemplate> named(std::string_view name, const Tokenizer& tokenizer);
  // Returns all names, in the order in which templates are tried.
  [[nodiscard]] static std::vector<std::string_view> names();

  // REQUIRES for the three below: the tokenizer is the one that the template was created with.

  // Encodes a whole conversation, with BOS if the model takes one, and with the opening of a reply if asked. Errors:
  // invalid for a role that the template does not know. If the format puts system messages into the user's turn, also
  // for one without a user message after it.
  [[nodiscard]] Result<std::vector<Token>> encode(std::span<const Message> messages, const Tokenizer& tokenizer,
                                                  bool add_generation_prompt) const;
  // Returns the tokens to append to `so_far` to continue with more messages. `so_far` is all tokens of a conversation
  // up to and including a reply. Closes the reply as far as it is still open. If another end token (such as </s>) ended
  // the reply, leave it out of `so_far`. If `so_far` is empty, does the same as encode().
  [[nodiscard]] Result<std::vector<Token>> encode_next(std::span<const Token> so_far, std::span<const Message> messages,
                                                       const Tokenizer& tokenizer, bool add_generation_prompt) const;

  [[nodiscard]] std::string_view name() const;
  // The token that ends a reply.
  [[nodiscard]] Token reply_end() const { return reply_end_; }

 private:
  ChatTemplate(const ChatFormat& format, Token reply_end) : format_(&format), reply_end_(reply_end) {}
  [[nodiscard]] static Result<ChatTemplate> of(const ChatFormat& format, const Tokenizer& tokenizer);
  [[nodiscard]] Result<std::vector<Segment>> lay_out(std::span<const Message> messages,
                                                     bool add_generation_prompt) const;

  [[nodiscard]] std::string system_alone() const;

  const ChatFormat* format_;  // a row of the table
  Token reply_end_;
};

}  // namespace shunt::models
