// Pre-tokenizers: how a byte-level vocabulary cuts text into words, which merges never cross.
//
// A pre-tokenizer is one row of pre_tokenizers.def, chosen by the file's tokenizer.ggml.pre. Words are views into the
// text and together cover all of it. An immutable plain value; all calls are safe from many threads.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/pattern.h"

namespace shunt::models {

class PreTokenizer {
 public:
  // Errors: unsupported for a name that no row has, with the list of known names.
  [[nodiscard]] static Result<PreTokenizer> create(std::string_view name);

  // Appends the words of `text`. Bytes that are not UTF-8 count as characters of no class. REQUIRES: text.size() <
  // 2^32.
  void append_words(std::string_view text, std::vector<std::string_view>& words) const;

  // True if a word that is a token becomes that token, whatever the merges would give.
  [[nodiscard]] bool whole_words() const { return whole_words_; }
  // True if BOS begins a text when the file does not say.
  [[nodiscard]] bool adds_bos() const { return adds_bos_; }

 private:
  PreTokenizer(std::vector<Pattern> rules, bool whole_words, bool adds_bos)
      : rules_(std::move(rules)), whole_words_(whole_words), adds_bos_(adds_bos) {}

  std::vector<Pattern> rules_;
  bool whole_words_;
  bool adds_bos_;
};

// Returns all names that create() knows, in the order of the table.
[[nodiscard]] std::vector<std::string_view> pre_tokenizer_names();

}  // namespace shunt::models
