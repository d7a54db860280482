// Interposes the C library and operator new, and makes the Nth call of one kind fail. Link it, or preload it with
//   SHUNT_TEST_EXHAUSTION=KIND:N    KIND as in kNames; "N+": that call and all later ones
//   SHUNT_TEST_EXHAUSTED=FILE       created once a call has failed
//   SHUNT_TEST_EXHAUSTION_COUNTS=FILE  gets a line with the calls of each kind, in the order of kNames, when main()
//   ends
// Calls count from the beginning of main() to its end.
#include "exhaustion.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr const char* kNames[] = {"allocation", "thread", "open", "write", "sync", "close", "rename"};
static_assert(sizeof kNames / sizeof *kNames == EXHAUSTION_KINDS);

std::atomic<int> armed{-1};
std::atomic<long> left{0};
std::atomic<bool> stays{false};
std::atomic<bool> has_failed{false};
std::atomic<long> live{0};
std::atomic<long> counts[EXHAUSTION_KINDS];
const char* marker = nullptr;

bool fails(exhaustion_kind kind) {
  counts[kind].fetch_add(1, std::memory_order_relaxed);
  if (armed.load() != kind) return false;
  const long now = left.fetch_sub(1);
  if (now > 1 || (now < 1 && !stays.load())) return false;
  if (!has_failed.exchange(true) && marker != nullptr) {
    const long file = syscall(SYS_openat, AT_FDCWD, marker, O_WRONLY | O_CREAT, 0600);
    if (file >= 0) syscall(SYS_close, file);
  }
  return true;
}

// Finds the function that this library interposes.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails(EXHAUSTION_ALLOCATION)) return nullptr;
  void* memory = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                                : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr) live.fetch_add(1);
  return memory;
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) {
  if (memory != nullptr) live.fetch_sub(1);
  std::free(memory);
}

using Main = int(int, char**, char**);
Main* program = nullptr;

// One write, since processes may end at the same time.
void append_counts(const char* path) {
  char line[EXHAUSTION_KINDS * 24] = "";
  std::size_t bytes = 0;
  for (const std::atomic<long>& count : counts)
    bytes += static_cast<std::size_t>(std::snprintf(line + bytes, sizeof line - bytes, "%ld ", count.load()));
  line[bytes - 1] = '\n';
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0) return;
  syscall(SYS_write, file, line, bytes);
  syscall(SYS_close, file);
}

int counted_main(int argc, char** argv, char** environment) {
  for (std::atomic<long>& count : counts) count.store(0);
  if (const char* wish = std::getenv("SHUNT_TEST_EXHAUSTION"); wish != nullptr) {
    marker = std::getenv("SHUNT_TEST_EXHAUSTED");
    const char* const colon = std::strchr(wish, ':');
    for (int kind = 0; colon != nullptr && kind < EXHAUSTION_KINDS; ++kind)
      if (std::strncmp(wish, kNames[kind], static_cast<std::size_t>(colon - wish)) == 0)
        exhaustion_arm(static_cast<exhaustion_kind>(kind), std::strtol(colon + 1, nullptr, 10),
                       std::strchr(colon, '+') != nullptr);
  }
  const int code = program(argc, argv, environment);
  exhaustion_disarm();
  if (const char* path = std::getenv("SHUNT_TEST_EXHAUSTION_COUNTS"); path != nullptr) append_counts(path);
  return code;
}

}  // namespace

void exhaustion_arm(exhaustion_kind kind, long nth, int stays_so) {
  has_failed.store(false);
  left.store(nth);
  stays.store(stays_so != 0);
  armed.store(kind);
}

int exhaustion_disarm(void) {
  armed.store(-1);
  return has_failed.load() ? 1 : 0;
}

long exhaustion_live(void) { return live.load(); }

void* operator new(std::size_t bytes) { return or_throw(allocate(bytes, 0)); }
void* operator new[](std::size_t bytes) { return or_throw(allocate(bytes, 0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }

extern "C" {

// NOLINTNEXTLINE(readability-identifier-naming): the name is glibc's
int __libc_start_main(Main* its_main, int argc, char** argv, void (*begin)(), void (*end)(), void (*loader_end)(),
                      void* stack) {
  program = its_main;
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start>("__libc_start_main")(counted_main, argc, argv, begin, end, loader_end, stack);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  if (fails(EXHAUSTION_THREAD)) return EAGAIN;
  return next<decltype(pthread_create)>("pthread_create")(thread, attributes, function, argument);
}

#define OPEN(name)                                                     \
  int name(const char* path, int flags, ...) {                         \
    va_list more;                                                      \
    va_start(more, flags);                                             \
    const int mode = va_arg(more, int);                                \
    va_end(more);                                                      \
    if (fails(EXHAUSTION_OPEN)) {                                      \
      errno = EMFILE;                                                  \
      return -1;                                                       \
    }                                                                  \
    return next<int(const char*, int, ...)>(#name)(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                       \
  std::FILE* name(const char* path, const char* mode) {                   \
    if (fails(EXHAUSTION_OPEN)) {                                         \
      errno = EMFILE;                                                     \
      return nullptr;                                                     \
    }                                                                     \
    return next<std::FILE*(const char*, const char*)>(#name)(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int file, const void* bytes, size_t count) {
  if (fails(EXHAUSTION_WRITE)) {
    errno = ENOSPC;
    return -1;
  }
  return next<ssize_t(int, const void*, size_t)>("write")(file, bytes, count);
}

int fsync(int file) {
  if (fails(EXHAUSTION_SYNC)) {
    errno = EIO;
    return -1;
  }
  return next<int(int)>("fsync")(file);
}

int close(int file) {
  const bool lost = fails(EXHAUSTION_CLOSE);
  const int result = next<int(int)>("close")(file);
  if (!lost) return result;
  errno = EIO;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  if (fails(EXHAUSTION_RENAME)) {
    errno = EXDEV;
    return -1;
  }
  return next<int(const char*, const char*)>("rename")(from, to);
}
}
