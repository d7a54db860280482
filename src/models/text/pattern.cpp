#include "models/text/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/text/utf8.h"

namespace shunt::models {
namespace {

using Set = Pattern::Set;
using Item = Pattern::Item;
using Sequence = Pattern::Sequence;
using Alternatives = std::vector<Sequence>;

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();
constexpr int kMaxDepth = 8;

bool is_ascii_letter(char32_t code) { return (code | 0x20U) >= U'a' && (code | 0x20U) <= U'z'; }

// Adds both cases, and the two characters outside ASCII that fold to a letter in it.
void add_folded(char32_t letter, Set& set) {
  const char32_t lower = letter | 0x20U;
  set.ranges = {{lower, lower}, {lower ^ 0x20U, lower ^ 0x20U}};
  if (lower == U's') set.ranges.emplace_back(0x17F, 0x17F);    // long s
  if (lower == U'k') set.ranges.emplace_back(0x212A, 0x212A);  // kelvin sign
}

class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source) {}

  Result<Alternatives> parse() {
    SHUNT_TRY_ASSIGN(Alternatives alternatives, parse_alternatives(0));
    if (at_ < source_.size()) return wrong("\")\" closes nothing");
    return alternatives;
  }

 private:
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view why) const {
    return fail(Code::invalid, fmt::format("pattern \"{}\": {} at byte {}", source_, why, at_));
  }
  [[nodiscard]] bool at_end() const { return at_ == source_.size(); }
  [[nodiscard]] bool sees(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!sees(text)) return false;
    at_ += text.size();
    return true;
  }

  Result<char32_t> take_character() {
    if (at_end()) return wrong("a character is missing");
    const Utf8Unit unit = first_utf8_unit(source_.substr(at_));
    if (unit.kind != Utf8Unit::Kind::character) return wrong("bytes are not UTF-8");
    const char32_t code = code_point(source_.substr(at_, unit.length));
    at_ += unit.length;
    return code;
  }

  Result<Alternatives> parse_alternatives(int depth) {
    Alternatives alternatives(1);
    while (!at_end() && !sees(")")) {
      if (take("|")) {
        alternatives.emplace_back();
        continue;
      }
      SHUNT_TRY_ASSIGN(Item item, parse_atom(depth));
      SHUNT_TRY(parse_quantifier(item));
      alternatives.back().push_back(std::move(item));
    }
    return alternatives;
  }

  Result<Item> parse_atom(int depth) {
    Item item;
    if (take("(")) {
      if (depth == kMaxDepth) return wrong("groups are nested too deeply");
      SHUNT_TRY(parse_group(item, depth));
    } else if (take("[")) {
      SHUNT_TRY_ASSIGN(item.set, parse_set());
    } else if (take("\\")) {
      SHUNT_TRY(parse_escape(item.set, true));
    } else {
      SHUNT_TRY_ASSIGN(const char32_t code, take_character());
      if (folds_ && is_ascii_letter(code))
        add_folded(code, item.set);
      else
        item.set.ranges.emplace_back(code, code);
    }
    return item;
  }

  Status parse_group(Item& item, int depth) {
    const bool outer_folds = folds_;
    if (take("?i:")) {
      folds_ = true;
      item.kind = Item::Kind::group;
    } else if (take("?:")) {
      item.kind = Item::Kind::group;
    } else if (take("?=")) {
      item.kind = Item::Kind::ahead;
    } else if (take("?!")) {
      item.kind = Item::Kind::not_ahead;
    } else {
      return wrong("a group that is none of (?: (?i: (?= (?!");
    }
    SHUNT_TRY_ASSIGN(item.alternatives, parse_alternatives(depth + 1));
    folds_ = outer_folds;
    if (!take(")")) return wrong("\")\" is missing");
    return {};
  }

  Result<Set> parse_set() {
    Set set{.classes = 0, .ranges = {}, .negated = take("^")};
    while (!take("]")) {
      if (take("\\")) {
        SHUNT_TRY(parse_escape(set, false));
        continue;
      }
      SHUNT_TRY_ASSIGN(const char32_t first, take_character());
      char32_t last = first;
      if (sees("-") && !sees("-]")) {
        ++at_;
        SHUNT_TRY_ASSIGN(last, take_character());
      }
      if (last < first) return wrong("a range that ends before it begins");
      set.ranges.emplace_back(first, last);
    }
    return set;
  }

  // Parses what follows the backslash and adds it to `set`; \S is allowed only on its own.
  Status parse_escape(Set& set, bool alone) {
    if (take("p{")) {
      const std::size_t end = source_.find('}', at_);
      const auto classes = classes_named(source_.substr(at_, end - at_));
      if (end == std::string_view::npos || !classes) return wrong("\\p of an unknown category");
      set.classes |= *classes;
      at_ = end + 1;
      return {};
    }
    SHUNT_TRY_ASSIGN(char32_t code, take_character());
    if (code == U's' || (alone && code == U'S')) {
      set.classes |= kWhiteSpace;
      set.negated = set.negated || code == U'S';
      return {};
    }
    if (code == U'r') {
      code = U'\r';
    } else if (code == U'n') {
      code = U'\n';
    } else if (is_ascii_letter(code) || (code >= U'0' && code <= U'9')) {
      return wrong("an unknown escape");
    }
    set.ranges.emplace_back(code, code);
    return {};
  }

  Status parse_quantifier(Item& item) {
    if (take("?")) {
      item.least = 0;
    } else if (take("*")) {
      item.least = 0;
      item.most = kUnlimited;
    } else if (take("+")) {
      item.most = kUnlimited;
    } else if (take("{")) {
      SHUNT_TRY_ASSIGN(item.least, take_number());
      item.most = item.least;
      if (take(",")) {
        SHUNT_TRY_ASSIGN(item.most, take_number());
      }
      if (!take("}") || item.most < item.least) return wrong("{n} or {n,m} is expected");
    } else {
      return {};
    }
    if (item.kind != Item::Kind::set && (item.most != 1 || item.kind != Item::Kind::group))
      return wrong("a group can be repeated by \"?\" alone");
    return {};
  }

  Result<std::uint32_t> take_number() {
    constexpr std::uint32_t kMost = 1000;
    std::uint32_t number = 0;
    const std::size_t begin = at_;
    for (; !at_end() && source_[at_] >= '0' && source_[at_] <= '9' && number < kMost; ++at_)
      number = 10 * number + static_cast<std::uint32_t>(source_[at_] - '0');
    if (at_ == begin || number >= kMost) return wrong("a number below 1000 is expected");
    return number;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool folds_ = false;  // inside (?i: )
};

// What must match after the end of a sequence, innermost first.
struct Rest {
  std::span<const Item> items;
  const Rest* next;
};

class Matcher {
 public:
  explicit Matcher(std::span<const Character> text) : text_(text) {}

  std::optional<std::size_t> any(const Alternatives& alternatives, const Rest* rest, std::size_t at) const {
    for (const Sequence& sequence : alternatives)
      if (const auto end = items(sequence, rest, at)) return end;
    return std::nullopt;
  }

 private:
  std::optional<std::size_t> items(std::span<const Item> items_left, const Rest* rest, std::size_t at) const {
    if (items_left.empty()) return rest == nullptr ? std::optional(at) : items(rest->items, rest->next, at);
    const Item& item = items_left.front();
    const std::span<const Item> after = items_left.subspan(1);
    if (item.kind == Item::Kind::set) return repeated(item, after, rest, at);
    if (item.kind == Item::Kind::group) {
      const Rest then{after, rest};
      if (const auto end = any(item.alternatives, &then, at)) return end;
      return item.least == 0 ? items(after, rest, at) : std::nullopt;
    }
    const bool found = any(item.alternatives, nullptr, at).has_value();
    return found == (item.kind == Item::Kind::ahead) ? items(after, rest, at) : std::nullopt;
  }

  std::optional<std::size_t> repeated(const Item& item, std::span<const Item> after, const Rest* rest,
                                      std::size_t at) const {
    std::size_t count = 0;
    while (count < item.most && at + count < text_.size() && item.set.contains(text_[at + count])) ++count;
    for (;; --count) {
      if (count < item.least) return std::nullopt;
      if (const auto end = items(after, rest, at + count)) return end;
      if (count == 0) return std::nullopt;
    }
  }

  std::span<const Character> text_;
};

}  // namespace

bool Pattern::Set::contains(const Character& character) const {
  const bool listed = (classes & character.classes) != 0 || std::ranges::any_of(ranges, [&](const auto& range) {
                        return character.code >= range.first && character.code <= range.second;
                      });
  return listed != negated;
}

Result<Pattern> Pattern::parse(std::string_view source) {
  SHUNT_TRY_ASSIGN(Alternatives alternatives, Parser(source).parse());
  return Pattern(std::move(alternatives));
}

std::optional<std::size_t> Pattern::match(std::span<const Character> text, std::size_t at) const {
  return Matcher(text).any(alternatives_, nullptr, at);
}

}  // namespace shunt::models
