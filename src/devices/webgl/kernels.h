// A device's kernels as linked programs, each made on first use. Owned by the device; one thread.
#pragma once

#include <map>
#include <memory>

#include "devices/webgl/texture.h"

namespace shunt::webgl {

// Uniform blocks are bound at kCallBinding and kParametersBinding, the texture of operand i to unit i.
struct Kernel {
  GLuint program = 0;
  GLuint first_pass = 0;  // zero: none
  // Invocations choose where they write: each is a point. If false, each is a fragment that writes its own word.
  bool scatters = false;
};

class Kernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Kernels>> create(std::shared_ptr<Context> context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Errors: internal, with the compiler's output.
  [[nodiscard]] Result<Kernel> of(const SpecializedShader& shader);
  // Bound to a kernel's input that a call does not have.
  [[nodiscard]] const Texture& nothing() const { return *nothing_; }

 private:
  explicit Kernels(std::shared_ptr<Context> context);
  [[nodiscard]] Result<Kernel> make(const SpecializedShader& made_of) const;
  [[nodiscard]] Result<GLuint> link(std::string_view name, std::string_view vertices, std::string_view fragments) const;
  [[nodiscard]] Status compile(GLuint program, GLenum type, std::string_view source) const;
  void bind(GLuint program) const;

  std::shared_ptr<Context> context_;
  std::map<SpecializedShader, Kernel> kernels_;
  std::unique_ptr<Texture> nothing_;
};

}  // namespace shunt::webgl
