#include <fmt/format.h>

#include <algorithm>

#include "base/parse_bytes.h"
#include "shunt/runtime.h"

namespace shunt {

Result<std::map<std::string, std::uint64_t>> budgets_from_text(std::string_view text) {
  std::map<std::string, std::uint64_t> budgets;
  for (bool has_more = !text.empty(); has_more;) {
    std::string_view item = text.substr(0, text.find(','));
    has_more = item.size() < text.size();
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    const std::size_t equals = item.rfind('=');
    const auto bytes = equals == std::string_view::npos ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (!bytes || equals == 0 || !(*bytes >= 0 && *bytes < 0x1p63))
      return fail(Code::invalid,
                  fmt::format("\"{}\" is not DEVICE=SIZE, such as vulkan:0=4GiB or cuda:0=512MiB", item));
    budgets[std::string(item.substr(0, equals))] = static_cast<std::uint64_t>(*bytes);
  }
  return budgets;
}

}  // namespace shunt
