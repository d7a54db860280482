#include "onnx/budget.h"

#include <fmt/format.h>

#include <limits>

#include "base/checked.h"
#include "base/units.h"

namespace shunt::onnx {

void Budget::add_file(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t more = checked_product(bytes, kBytesPerFileByte).value_or(kMost);
  most_bytes_ = checked_sum(most_bytes_, more).value_or(kMost);
}

Status Budget::take(std::uint64_t count, std::uint64_t bytes_each) {
  const auto bytes = checked_product(count, bytes_each);
  const auto made = bytes ? checked_sum(made_bytes_, *bytes) : std::nullopt;
  if (!made || *made > most_bytes_)
    return fail(Code::unsupported,
                fmt::format("importing the model would compute {} elements of {} bytes, after {}; a model of this size "
                            "may compute {} in all",
                            count, bytes_each, in_units(made_bytes_), in_units(most_bytes_)));
  made_bytes_ = *made;
  return {};
}

}  // namespace shunt::onnx
