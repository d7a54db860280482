#include "simulated/objective_c.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace shunt::simulated {
namespace {

struct State {
  std::recursive_mutex mutex;
  std::set<const Instance*> live;
  std::set<std::string, std::less<>> selectors;
  std::map<std::string_view, std::unique_ptr<Instance>> classes;
};
State& state() {
  static State* const kState = new State;  // never destroyed: outlives whatever is released at the end of the process
  return *kState;
}

thread_local std::vector<Instance*> pooled;
thread_local std::size_t pools = 0;

void nothing() {}

}  // namespace

void refuse(std::string_view what, std::string_view why) {
  std::fprintf(stderr, "simulated Metal: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(why.size()), why.data());
  std::abort();
}

Instance::Instance(std::string_view of_class) : of_class_(of_class) {
  const std::scoped_lock lock(state().mutex);
  state().live.insert(this);
}
Instance::~Instance() {
  const std::scoped_lock lock(state().mutex);
  state().live.erase(this);
}

void retain(Instance* instance) {
  if (instance == nullptr) return;
  const std::scoped_lock lock(state().mutex);
  if (!state().live.contains(instance)) refuse("retain", "the object is gone");
  ++instance->references_;
}

void release(Instance* instance) {
  if (instance == nullptr) return;
  const std::scoped_lock lock(state().mutex);
  if (!state().live.contains(instance)) refuse("release", "the object is gone");
  if (--instance->references_ == 0) delete instance;
}

Id autorelease(Instance* instance) {
  if (pools == 0) refuse(instance->of_class(), "there is no pool that would release it");
  pooled.push_back(instance);
  return instance->id();
}

std::uint64_t live_objects() {
  const std::scoped_lock lock(state().mutex);
  return state().live.size() - state().classes.size();
}

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the names are those of the real one
Selector sel_registerName(const char* name) {
  const std::scoped_lock lock(state().mutex);
  return reinterpret_cast<Selector>(state().selectors.emplace(name).first->c_str());
}

Id objc_getClass(const char* name) {
  const std::scoped_lock lock(state().mutex);
  if (!has_class(name)) return nullptr;
  const std::string_view kept = reinterpret_cast<const char*>(sel_registerName(name));
  auto& found = state().classes[kept];
  if (found == nullptr) found = std::make_unique<Instance>(kept);
  return found->id();
}

Id objc_retain(Id object) {
  retain(reinterpret_cast<Instance*>(object));
  return object;
}
void objc_release(Id object) { release(reinterpret_cast<Instance*>(object)); }

void* objc_autoreleasePoolPush() {
  ++pools;
  return reinterpret_cast<void*>(pooled.size());
}
void objc_autoreleasePoolPop(void* pool) {
  --pools;
  while (pooled.size() > reinterpret_cast<std::uintptr_t>(pool)) {
    Instance* const last = pooled.back();
    pooled.pop_back();
    release(last);
  }
}

// NOLINTEND(readability-identifier-naming)

// Finds the method for a message.
[[gnu::used]] Method shunt_simulated_method(Id receiver, Selector selector) {
  if (receiver == nullptr) return nothing;
  const char* const name = reinterpret_cast<const char*>(selector);
  const std::scoped_lock lock(state().mutex);
  const auto* const instance = reinterpret_cast<const Instance*>(receiver);
  if (!state().live.contains(instance)) refuse(name, "a message to an object that is gone");
  const auto found = methods().find({instance->of_class(), name});
  if (found == methods().end()) refuse(name, std::string("unknown to ") + std::string(instance->of_class()));
  return found->second;
}

// Jumps to the method with all arguments in place, whatever they are. The result of `nothing` is 0.
#if defined(__x86_64__)
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, @function
objc_msgSend:
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  sub $8, %rsp
  call shunt_simulated_method@PLT
  mov %rax, %r11
  add $8, %rsp
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  xor %eax, %eax
  jmp *%r11
.size objc_msgSend, . - objc_msgSend
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, %function
objc_msgSend:
  stp x29, x30, [sp, #-80]!
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  bl shunt_simulated_method
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldp x29, x30, [sp], #80
  br x16
.size objc_msgSend, . - objc_msgSend
)");
#else
#error "objc_msgSend is written for x86-64 and arm64"
#endif

}  // extern "C"

}  // namespace shunt::simulated
