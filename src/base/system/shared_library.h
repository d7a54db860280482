// A shared library opened at run time, as every accelerator's API is.
//
// A plain handle; any thread. Libraries stay open: drivers have threads and exit handlers of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

class SharedLibrary {
 public:
  // Tries only the file that the environment variable `override_variable` names, if it is set. Otherwise tries each of
  // `names` as the system finds it, then each in the program's folder and in the folder lib beside that, where a bundle
  // carries what a machine may lack. Errors: io, with what was tried; `advice` says what helps.
  [[nodiscard]] static Result<SharedLibrary> open(std::span<const char* const> names, const char* override_variable,
                                                  std::string_view advice);
  [[nodiscard]] static Result<SharedLibrary> open(const char* name, const char* override_variable,
                                                  std::string_view advice) {
    return open({&name, 1}, override_variable, advice);
  }
  // Returns the file that the variable names to replace an API's library; null: none.
  [[nodiscard]] static const char* named_by(const char* override_variable);
  SharedLibrary() = default;

  // The opened file, for messages.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns null if the library has no such symbol.
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
