// Metal without Apple's headers: the Objective-C runtime and the framework, opened at run time, and typed messages.
//
// A message is a C call of objc_msgSend through the type of the method behind it. The caller owns objects returned by
// calls named new or copy (Owned); others live as long as the Pool around the call. The functions are Apple's stable
// ABI, https://clang.llvm.org/docs/AutomaticReferenceCounting.html#runtime-support. Constant once opened; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system/shared_library.h"

namespace shunt::metal {

using Id = struct Object*;
using Selector = const struct SelectorName*;
struct Size {  // MTLSize
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t depth = 0;
};

template <class Type>
class Message;
template <class Result, class... Parameters>
class Message<Result(Parameters...)> {
 public:
  Message() = default;
  Message(void (*send)(), Selector selector) : send_(send), selector_(selector) {}
  // A message to nil does nothing and returns nil or 0.
  Result operator()(Id receiver, Parameters... arguments) const {
    return reinterpret_cast<Result (*)(Id, Selector, Parameters...)>(send_)(receiver, selector_, arguments...);
  }

 private:
  void (*send_)() = nullptr;
  Selector selector_ = nullptr;
};

struct Messages {
#define SHUNT_METAL_MESSAGE(name, selector, receiver, type) Message<type> name;
#include "devices/metal/messages.def"
};

// A reference to an object, or nil.
class Owned {
 public:
  Owned() = default;
  // Takes over the caller's reference.
  Owned(Id object, void (*release)(Id)) : object_(object), release_(release) {}
  ~Owned() {
    if (object_ != nullptr) release_(object_);
  }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  [[nodiscard]] Id get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  Id object_ = nullptr;
  void (*release_)(Id) = nullptr;
};

class ObjectiveC {
 public:
  // Errors: unsupported, with the stage where it stopped and what would help.
  [[nodiscard]] static Result<std::shared_ptr<const ObjectiveC>> open();

  [[nodiscard]] const Messages& call() const { return messages_; }
  // Returns whether the library replaces Apple's, as it tells by exporting shunt_metal_is_simulated.
  [[nodiscard]] bool simulated() const { return simulated_; }
  // Returns all GPUs.
  [[nodiscard]] std::vector<Owned> devices() const;

  // Takes over a reference; adds one.
  [[nodiscard]] Owned own(Id object) const { return {object, functions_.release}; }
  [[nodiscard]] Owned keep(Id object) const { return own(functions_.retain(object)); }
  // MTLCompileOptions.
  [[nodiscard]] Owned new_options() const { return own(messages_.new_options(options_class_)); }
  // MTLFunctionConstantValues.
  [[nodiscard]] Owned new_constants() const { return own(messages_.new_constants(constants_class_)); }

  // REQUIRES (here and below): a Pool exists; the string and the results live in it.
  [[nodiscard]] Id string(const std::string& text) const { return messages_.make_string(string_class_, text.c_str()); }
  // The content of an NSString.
  [[nodiscard]] std::string text(Id string) const;
  // Describes an NSError: "description (code)".
  [[nodiscard]] std::string describe(Id error) const;

 private:
  friend class Pool;
  struct Functions {
    void (*send)() = nullptr;
    Selector (*selector)(const char*) = nullptr;
    Id (*find_class)(const char*) = nullptr;
    Id (*retain)(Id) = nullptr;
    void (*release)(Id) = nullptr;
    void* (*push_pool)() = nullptr;
    void (*pop_pool)(void*) = nullptr;
    Id (*default_device)() = nullptr;
    Id (*all_devices)() = nullptr;  // null on systems with one GPU
  };

  ObjectiveC() = default;
  [[nodiscard]] Status load();

  SharedLibrary objective_c_;
  SharedLibrary metal_;
  Functions functions_;
  Messages messages_;
  Id string_class_ = nullptr;
  Id options_class_ = nullptr;
  Id constants_class_ = nullptr;
  bool simulated_ = false;
};

// At its end, releases what calls on this thread returned without giving it away. Pools end in reverse order.
class Pool {
 public:
  explicit Pool(const ObjectiveC& runtime) : functions_(runtime.functions_), pool_(functions_.push_pool()) {}
  ~Pool() { functions_.pop_pool(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  const ObjectiveC::Functions& functions_;
  void* pool_;
};

}  // namespace shunt::metal
