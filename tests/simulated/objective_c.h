// An Objective-C runtime for tests: reference-counted objects, autorelease pools, and messages by class name.
//
// Stricter than Apple's: a message that a class does not know, a message to a released object, and an object
// autoreleased without a pool abort the program with a message. Safe from any thread.
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
// Methods by class and selector. Defined by the simulation that has the classes.
const std::map<std::pair<std::string_view, std::string_view>, Method>& methods();
// Returns whether there is a class object of this name to send messages to.
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

// Ignores null.
void retain(Instance* instance);
void release(Instance* instance);
// Passes a reference to the innermost pool of this thread.
Id autorelease(Instance* instance);
std::uint64_t live_objects();
[[noreturn]] void refuse(std::string_view what, std::string_view why);

template <class T>
T& as(Id id) {
  return *static_cast<T*>(reinterpret_cast<Instance*>(id));
}

// An instance's reference to another instance.
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
