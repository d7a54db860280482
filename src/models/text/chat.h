// Chat templates: how a conversation is laid out as tokens.
//
// A file carries its template as Jinja source. That is not run; it is recognised, and one row of the table in
// chat_formats.cpp says how each role opens and closes. Only the row's own markers become special tokens: the contents
// of messages never do, whatever they spell. What a template adds on its own, such as a default system message or
// today's date, is not added, and a system message stays where it was given. Plain values; all calls are safe from many
// threads.
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
  // Recognises tokenizer.chat_template. Errors: unsupported where there is none, it is unknown, or a marker of
  // it is not a special token of the vocabulary.
  [[nodiscard]] static Result<ChatTemplate> create(const Metadata& metadata, const Tokenizer& tokenizer);

  // The row of this name, whatever the file's template says. Errors: unsupported where there is no such row, with the
  // list of names, or a marker of it is not a special token of the vocabulary.
  [[nodiscard]] static Result<ChatTemplate> named(std::string_view name, const Tokenizer& tokenizer);
  // All names, in the order in which templates are tried.
  [[nodiscard]] static std::vector<std::string_view> names();

  // For the three below, REQUIRES: the tokenizer is the one that the template was created with.

  // A whole conversation, from BOS on where the model takes one, and with the opening of a reply if asked.
  // Errors: invalid for a role that the template does not know, and for a system message without a user's after it
  // where the format has it in the user's turn.
  [[nodiscard]] Result<std::vector<Token>> encode(std::span<const Message> messages, const Tokenizer& tokenizer,
                                                  bool add_generation_prompt) const;
  // The tokens to append to `so_far`, all tokens of a conversation up to and with a reply, to go on with more messages.
  // Closes the reply as far as it is not closed yet. An end token of another kind (such as </s>) that ended
  // the reply is best left out of `so_far`. With nothing so far: the same as encode().
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
