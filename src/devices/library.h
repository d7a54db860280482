// A shared library opened at run time: what every accelerator's API comes from.
//
// A plain handle; any thread. What was opened stays open: drivers have threads and exit handlers of their own.
#pragma once

#include <string_view>

#include "shunt/status.h"

namespace shunt {

class Library {
 public:
  // Tries, in this order: the file that the environment variable `override_variable` names, if it is set; `name` as the
  // system finds it; `name` in the folder lib beside the program's, where a bundle carries what a machine may lack.
  // Errors: unsupported, with what was tried; `advice` says what helps.
  [[nodiscard]] static Result<Library> open(const char* name, const char* override_variable, std::string_view advice);
  Library() = default;

  // Null where the library has no such symbol.
  template <class Function>
  [[nodiscard]] Function find(const char* symbol) const {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  [[nodiscard]] void* address_of(const char* symbol) const;
  void* handle_ = nullptr;
};

}  // namespace shunt
