// An Objective-C runtime for tests: objects that count references, pools, and messages by the name of a class.
//
// Stricter than Apple's: a message that a class does not know, one to an object that is gone, and an object that
// nobody's pool takes end the program with a word on why. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "devices/metal/objective_c.h"

namespace shunt::simulated {

using metal::Id;
using metal::Selector;
using Method = void (*)();
// By class and selector. Provided by whoever has the classes.
const std::map<std::pair<std::string_view, std::string_view>, Method>& methods();
// Whether there is a class to send messages to itself.
bool has_class(std::string_view name);

class Instance {
 public:
  explicit Instance(std::string_view of_class);
  virtual ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  [[nodiscard]] std::string_view of_class() const { return of_class_; }
  [[nodiscard]] Id id() { return reinterpret_cast<Id>(this); }

 private:
  friend void release(Instance* instance);
  friend void retain(Instance* instance);
  std::string_view of_class_;
  std::uint64_t references_ = 1;
};

// Null stays null.
void retain(Instance* instance);
void release(Instance* instance);
// Gives a reference to the innermost pool of this thread.
Id autorelease(Instance* instance);
std::uint64_t live_objects();
[[noreturn]] void refuse(std::string_view what, std::string_view why);

template <class T>
T& as(Id id) {
  return *static_cast<T*>(reinterpret_cast<Instance*>(id));
}

// A reference that an instance has to another one.
template <class T>
class Held {
 public:
  Held() = default;
  explicit Held(T* instance) : instance_(instance) { retain(instance); }
  ~Held() { release(instance_); }
  Held(Held&& other) noexcept : instance_(std::exchange(other.instance_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(instance_, other.instance_);
    return *this;
  }
  [[nodiscard]] T* get() const { return instance_; }
  T* operator->() const { return instance_; }

 private:
  T* instance_ = nullptr;
};

}  // namespace shunt::simulated
