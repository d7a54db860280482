#include "shunt/status.h"

#include <fmt/format.h>

namespace shunt {

std::string_view name_of(Code code) {
  switch (code) {
#define SHUNT_CODE(name, c_name, meaning) \
  case Code::name:                        \
    return #name;
    SHUNT_ERROR_CODES(SHUNT_CODE)
#undef SHUNT_CODE
  }
  return "unknown";
}

std::unexpected<Error> fail_at(std::string_view what, Error error) {
  error.message = fmt::format("{}: {}", what, error.message);
  return std::unexpected(std::move(error));
}

}  // namespace shunt
