// A shared library opened at run time: what every accelerator's API comes from.
//
// A plain handle; any thread. What was opened stays open: drivers have threads and exit handlers of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

class SharedLibrary {
 public:
  // Tries, in this order: the file that the environment variable `override_variable` names, and then nothing else; each
  // of `names` as the system finds it; each of them in the program's folder and in the folder lib beside it, where a
  // bundle carries what a machine may lack. Errors: io, with what was tried; `advice` says what helps.
  [[nodiscard]] static Result<SharedLibrary> open(std::span<const char* const> names, const char* override_variable,
                                                  std::string_view advice);
  [[nodiscard]] static Result<SharedLibrary> open(const char* name, const char* override_variable,
                                                  std::string_view advice) {
    return open({&name, 1}, override_variable, advice);
  }
  // The file that the variable names in place of an API's own library; null: none.
  [[nodiscard]] static const char* named_by(const char* override_variable);
  SharedLibrary() = default;

  // What was opened, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Null where the library has no such symbol.
  template <class Function>
  [[nodiscard]] Function find(const char* symbol) const {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] void* address_of(const char* symbol) const;

  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace shunt
