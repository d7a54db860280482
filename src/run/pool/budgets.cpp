#include <fmt/format.h>

#include <algorithm>

#include "base/parse_bytes.h"
#include "shunt/runtime.h"

namespace shunt {
namespace {

constexpr std::string_view kAuto = "auto";

}  // namespace

Result<std::map<std::string, std::uint64_t>> budgets_from_text(std::string_view text) {
  std::map<std::string, std::uint64_t> budgets;
  for (bool has_more = !text.empty(); has_more;) {
    std::string_view item = text.substr(0, text.find(','));
    has_more = item.size() < text.size();
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    const std::size_t equals = item.rfind('=');
    if (item == kAuto) continue;  // what devices do whose budgets are not set
    if (equals != 0 && equals != std::string_view::npos && item.substr(equals + 1) == kAuto) {
      budgets.erase(std::string(item.substr(0, equals)));
      continue;
    }
    const auto bytes = equals == std::string_view::npos ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (!bytes || equals == 0 || !(*bytes >= 0 && *bytes < 0x1p63))
      return fail(
          Code::invalid,
          fmt::format("\"{}\" is not DEVICE=SIZE, such as vulkan:0=4GiB or cuda:0=512MiB, nor auto or DEVICE=auto, "
                      "which follow free memory",
                      item));
    budgets[std::string(item.substr(0, equals))] = static_cast<std::uint64_t>(*bytes);
  }
  return budgets;
}

}  // namespace shunt
