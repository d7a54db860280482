// A run of ops as a list of dispatches, issued to the driver for each submission; only a block of parameters in a
// buffer changes from step to step. One thread at a time.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/gl/memory.h"
#include "devices/shaders/dispatch.h"
#include "devices/waiting.h"

namespace shunt::gl {

// A device's compiled kernels, each made on first use. Owned by the device.
class Kernels {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Kernels>> create(std::shared_ptr<Context> context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // REQUIRES: a Current of the context. Errors: internal, with the compiler's output.
  [[nodiscard]] Result<GLuint> of(const SpecializedShader& kernel);
  // Bound to a kernel's input that a call does not have.
  [[nodiscard]] GLuint nothing() const { return nothing_->name(); }

 private:
  explicit Kernels(std::shared_ptr<Context> context);
  [[nodiscard]] Result<GLuint> compile(const SpecializedShader& kernel) const;

  std::shared_ptr<Context> context_;
  std::map<SpecializedShader, GLuint> programs_;
  std::unique_ptr<GlBuffer> nothing_;
};

class GlProgram final : public Program {
 public:
  // The buffers and `kernels` must outlive it. Errors: unsupported if an op has no kernel, out_of_memory, internal.
  [[nodiscard]] static Result<std::unique_ptr<GlProgram>> create(std::shared_ptr<Context> context, Kernels& kernels,
                                                                 const ProgramRequest& request);
  ~GlProgram() override;
  GlProgram(const GlProgram&) = delete;
  GlProgram& operator=(const GlProgram&) = delete;

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return blocks_->bytes(); }
  [[nodiscard]] const std::string& name() const { return name_; }

  // REQUIRES for the rest: a Current of the context. Starts it. Drivers that compute on the CPU may do all the work
  // here, so this stops at the deadline too.
  [[nodiscard]] Status submit(const Submission& submission, const Deadline& deadline);
  // Returns true if the submission has ended; false if it still runs after that many nanoseconds.
  [[nodiscard]] Result<bool> wait(std::uint64_t nanoseconds) const;
  // Returns whether the deadline came before the last dispatch was submitted.
  [[nodiscard]] bool was_cut_short() const { return was_cut_short_; }

 private:
  struct Launch {
    Dispatch dispatch;
    GLuint kernel = 0;
  };
  GlProgram(std::shared_ptr<Context> context, Kernels& kernels) : context_(std::move(context)), kernels_(kernels) {}
  void dispatch(const Launch& step) const;

  std::shared_ptr<Context> context_;
  Kernels& kernels_;
  std::string name_;
  std::unique_ptr<GlBuffer> blocks_;
  std::vector<Launch> steps_;
  GLsync done_ = nullptr;
  bool was_cut_short_ = false;
};

}  // namespace shunt::gl
