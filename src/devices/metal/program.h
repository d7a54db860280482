// A run of ops as a list of dispatches that every submission encodes again, as Metal requires.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/metal/context.h"

namespace shunt::metal {

// A device's compiled kernels, each made on first use. Owned by the device.
class Pipelines {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Pipelines>> create(std::shared_ptr<const Context> context);
  // The result lives as long as this. Errors: internal if Metal refuses the kernel.
  [[nodiscard]] Result<Id> of(const SpecializedShader& kernel);
  // Bound to a kernel's input that a call does not have.
  [[nodiscard]] Id nothing() const { return nothing_->handle(); }

 private:
  explicit Pipelines(std::shared_ptr<const Context> context);
  [[nodiscard]] Result<Owned> compile(const SpecializedShader& kernel) const;

  std::shared_ptr<const Context> context_;
  std::map<SpecializedShader, Owned> pipelines_;
  std::unique_ptr<MetalBuffer> nothing_;
};

class MetalProgram final : public Program {
 public:
  // The buffers and `pipelines` must outlive it. Errors: unsupported if an op has no kernel, out_of_memory, internal.
  [[nodiscard]] static Result<std::unique_ptr<MetalProgram>> create(std::shared_ptr<const Context> context,
                                                                    Pipelines& pipelines,
                                                                    const ProgramRequest& request);

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return blocks_->bytes(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns the committed command buffer.
  [[nodiscard]] Result<Owned> submit(const Submission& submission);

 private:
  struct Bound {
    Id buffer = nullptr;
    std::uint64_t offset = 0;
    bool operator==(const Bound&) const = default;
  };
  using Bindings = std::array<Bound, kShaderBindings>;
  struct Launch {
    Id pipeline = nullptr;
    Size groups;
    Bindings bound;
    std::uint32_t op = 0;
  };

  explicit MetalProgram(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  [[nodiscard]] Bindings bindings_of(const Dispatch& dispatch, Id nothing) const;
  void encode(Id encoder, const Submission& submission) const;

  std::shared_ptr<const Context> context_;
  std::string name_;
  std::unique_ptr<MetalBuffer> blocks_;
  std::vector<Launch> steps_;
};

}  // namespace shunt::metal
