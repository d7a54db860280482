#include "ops/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace shunt {
namespace {

// expression = name | name "(" expression { "," expression } ")"
class Parser {
 public:
  explicit Parser(const OpInfo& row) : row_(row), text_(row.expansion) {}

  Result<Expansion> parse() {
    SHUNT_TRY_ASSIGN(Expansion whole, expression());
    if (!text_.empty()) return error("text after the end");
    if (whole.is_input()) return error("an op was expected");
    return whole;
  }

 private:
  std::unexpected<Error> error(std::string_view what) const {
    return fail(Code::invalid,
                fmt::format("{}: expansion \"{}\": {} at \"{}\"", row_.name, row_.expansion, what, text_));
  }

  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size())); }

  bool take(char wanted) {
    skip_spaces();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  Result<Expansion> expression() {
    skip_spaces();
    const std::size_t length = std::min(text_.find_first_of(" (),"), text_.size());
    const std::string_view name = text_.substr(0, length);
    text_.remove_prefix(length);
    if (!take('(')) return input(name);
    auto op = op_from_name(name);
    if (!op) return error("unknown op before");
    Expansion call{.op = *op};
    do {
      SHUNT_TRY_ASSIGN(Expansion argument, expression());
      call.arguments.push_back(std::move(argument));
    } while (take(','));
    if (!take(')')) return error("a closing parenthesis is missing");
    skip_spaces();
    return call;
  }

  Result<Expansion> input(std::string_view name) const {
    const auto place = std::ranges::find(row_.inputs, name);
    if (place == row_.inputs.end()) return error(fmt::format("\"{}\" is no input, stands", name));
    return Expansion{.input = static_cast<std::uint32_t>(place - row_.inputs.begin())};
  }

  const OpInfo& row_;
  std::string_view text_;
};

}  // namespace

Result<Expansion> parse_expansion(const OpInfo& row) { return Parser(row).parse(); }

const Expansion& expansion_of(Op op) {
  static const std::vector<Expansion> kExpansions = [] {
    std::vector<Expansion> all;
    for (const OpInfo& row : ops()) {
      auto parsed = row.is_fused() ? parse_expansion(row) : Result<Expansion>(Expansion{});
      if (!parsed) std::abort();  // a broken row of ops.def
      all.push_back(std::move(*parsed));
    }
    return all;
  }();
  return kExpansions[static_cast<std::size_t>(op)];
}

Attributes attributes_for(Op op, const Attributes& attributes) {
  Attributes own;
  for (const auto& [attr, value] : attributes.set_values())
    if (std::ranges::find(info_of(op).attributes, attr) != info_of(op).attributes.end()) own.set(attr, value);
  return own;
}

}  // namespace shunt
