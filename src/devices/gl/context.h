// One OpenGL or OpenGL ES context without a window, and when it is current.
//
// A context is current on one thread at a time, and a thread has one at a time. Each call into a device makes the
// context current with a Current and then restores what the thread had before. So the next call may come from any
// thread, and an application's own use of GL is not disturbed. Buffers and programs share the Context. One thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "devices/gl/api.h"
#include "devices/shaders/dispatch.h"

namespace shunt::gl {

enum class Api : std::uint8_t { gl, gles };
[[nodiscard]] std::string_view name_of(Api api);  // as in backends.def
// The form of a kernel that this API compiles.
[[nodiscard]] ShaderLanguage language_of(Api api);
[[nodiscard]] std::string_view source_of(const Shader& shader, Api api);

// A context's report about itself.
struct Description {
  std::string renderer;
  std::string vendor;
  std::string version;  // "OpenGL 4.5"
  std::string driver;   // as the driver words it
  std::string uuid;     // of the processor, in hexadecimal; empty: unknown
  bool has_own_memory = false;
  std::uint64_t memory_bytes = 0;  // 0: unknown
  std::uint64_t shared_memory_bytes = 0;
  std::uint32_t largest_workgroup = 0;
  DeviceFeatures features;
  DispatchLimits limits;
};

// Changes a context's functions before they are used; tests use it to provoke rare driver behaviour.
using Adjust = std::function<void(Functions&)>;

class Context {
 public:
  // Errors: unsupported if the display has no such contexts, or its limits are too small.
  [[nodiscard]] static Result<std::shared_ptr<Context>> create(std::shared_ptr<const Egl> egl, const Display& display,
                                                               Api api, const Adjust& adjust);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // REQUIRES for all of these: a Current of this context.
  [[nodiscard]] const Functions& call() const { return functions_; }
  // Returns the first error since the last check.
  [[nodiscard]] Status check(std::string_view what) const;
  // Returns device_lost once the driver has reset the context.
  [[nodiscard]] Status check_alive() const;

  [[nodiscard]] Api api() const { return api_; }
  [[nodiscard]] const Description& description() const { return description_; }
  // Returns the processor's free memory. Makes the context current itself.
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const;

 private:
  friend class Current;
  Context(std::shared_ptr<const Egl> egl, EglDisplay display, Api api)
      : egl_(std::move(egl)), display_(display), api_(api) {}
  [[nodiscard]] Status start();
  [[nodiscard]] Status create_handle();
  [[nodiscard]] Status describe();
  void drop_what_is_not_there();
  [[nodiscard]] bool has(std::string_view extension) const;
  [[nodiscard]] GLint integer(GLenum name) const;

  std::shared_ptr<const Egl> egl_;
  EglDisplay display_ = nullptr;
  Api api_ = Api::gl;
  EglContext handle_ = nullptr;
  Functions functions_;
  Description description_;
  std::vector<std::string> extensions_;
  int version_ = 0;  // 10 * major + minor
  bool counts_memory_ = false;
};

// Makes a context current on this thread, and restores the previous one at the end. Nests.
class Current {
 public:
  explicit Current(const Context& context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  // Errors: device_lost, out_of_memory, internal if another thread holds it. Unless it succeeded, make no GL call.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  const EglFunctions& egl_;
  const Context& context_;
  Status status_;
  bool taken_ = false;
  EglContext context_before_ = nullptr;
  EglDisplay display_before_ = nullptr;
  EglSurface draw_before_ = nullptr;
  EglSurface read_before_ = nullptr;
};

}  // namespace shunt::gl
