// A run of ops as draws, issued to the context for each submission; only a block of parameters in a uniform buffer
// changes from step to step. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "devices/waiting.h"
#include "devices/webgl/kernels.h"

namespace shunt::webgl {

class WebglProgram final : public Program {
 public:
  // The buffers and `kernels` must outlive it. Errors: unsupported if an op has no kernel, out_of_memory, internal.
  [[nodiscard]] static Result<std::unique_ptr<WebglProgram>> create(std::shared_ptr<Context> context, Kernels& kernels,
                                                                    const ProgramRequest& request);
  // Returns an upper bound on what a program holds for one op besides its blocks. `most`: bytes of a texture.
  [[nodiscard]] static std::uint64_t scratch_bytes_of(const OpCall& call, const Shader& shader, std::uint64_t most);
  ~WebglProgram() override;
  WebglProgram(const WebglProgram&) = delete;
  WebglProgram& operator=(const WebglProgram&) = delete;

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return scratch_bytes_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Starts it. Drivers that compute on the CPU may do all the work here, so this stops at the deadline too.
  [[nodiscard]] Status submit(const Submission& submission, const Deadline& deadline);
  // Returns whether the last submission has ended.
  [[nodiscard]] Result<bool> has_ended() const;
  // Returns whether the deadline came before the last draw was submitted.
  [[nodiscard]] bool was_cut_short() const { return was_cut_short_; }

 private:
  struct Launch {
    Dispatch dispatch;
    Kernel kernel;
    const Texture* target = nullptr;
    Rectangle area;                      // the part of the target that may change
    const Texture* constants = nullptr;  // null: none
    Rectangle first_pass;                // of the texture first_pass_; empty: none
    bool reads_target = false;
  };
  WebglProgram(std::shared_ptr<Context> context, Kernels& kernels) : context_(std::move(context)), kernels_(kernels) {}
  [[nodiscard]] Status add(Dispatch dispatch);
  [[nodiscard]] Result<const Texture*> constants_of(const Dispatch& dispatch);
  [[nodiscard]] Status allocate_scratch();
  [[nodiscard]] Status upload(const DispatchPlan& plan);
  void draw(const Launch& step) const;
  void draw_first_pass(const Launch& step) const;
  // `first_pass`: the texture bound for the first pass's words; may be null.
  void bind(const Launch& step, GLuint program, const Texture* first_pass) const;

  std::shared_ptr<Context> context_;
  Kernels& kernels_;
  std::string name_;
  std::vector<Launch> steps_;
  std::vector<std::vector<std::uint32_t>> constants_;  // each distinct one
  std::vector<std::unique_ptr<Texture>> constants_textures_;
  std::unique_ptr<Texture> scratch_;     // drawn to instead of targets; null: never needed
  std::unique_ptr<Texture> first_pass_;  // the results of first passes; null: there are none
  GLuint blocks_ = 0;
  std::uint64_t scratch_bytes_ = 0;
  GLsync done_ = nullptr;
  bool was_cut_short_ = false;
};

}  // namespace shunt::webgl
