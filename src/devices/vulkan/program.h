// A run of ops as one recorded command buffer; only a block of parameters in memory changes from step to step.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/program_trace.h"
#include "devices/vulkan/pipeline.h"
#include "devices/vulkan/transfer.h"

namespace shunt::vulkan {

class VulkanProgram final : public Program {
 public:
  // The buffers and `pipelines` must outlive it. Errors: unsupported if an op has no kernel, out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<VulkanProgram>> create(std::shared_ptr<Context> context,
                                                                     Pipelines& pipelines,
                                                                     const ProgramRequest& request, ProgramTrace trace);
  ~VulkanProgram() override;
  VulkanProgram(const VulkanProgram&) = delete;
  VulkanProgram& operator=(const VulkanProgram&) = delete;

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return blocks_->bytes(); }
  [[nodiscard]] bool records() const override { return true; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns the moment at which it is over. REQUIRES: the last submission is over.
  [[nodiscard]] Result<Moment> submit(Transfer& transfer, const Submission& submission);
  // Records the outcome of the last submission and, if requested, how long each op took.
  void finish(const Status& status) const;

 private:
  struct Launch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE;
    std::array<std::uint32_t, 2> grid{};
    std::uint32_t op = 0;
    bool needs_barrier = false;
  };

  VulkanProgram(std::shared_ptr<Context> context, Pipelines& pipelines, ProgramTrace trace)
      : context_(std::move(context)), pipelines_(pipelines), trace_(std::move(trace)) {}
  [[nodiscard]] Status make_sets(std::size_t count);
  [[nodiscard]] Result<VkDescriptorSet> make_set(const Dispatch& dispatch);
  [[nodiscard]] Status make_results(std::span<const Binding> results);
  // The timestamps that the device writes.
  enum class Timing : std::uint8_t { none, end, each };
  [[nodiscard]] Timing timing_for(const Submission& submission) const;
  [[nodiscard]] Status record(Timing timing);
  [[nodiscard]] Status write_commands(VkCommandBuffer commands, Timing timing) const;
  [[nodiscard]] std::vector<std::uint64_t> read_times() const;
  void trace_ops(std::span<const std::uint64_t> times, std::uint64_t end_ns) const;

  std::shared_ptr<Context> context_;
  Pipelines& pipelines_;
  ProgramTrace trace_;
  std::string name_;
  std::unique_ptr<VulkanBuffer> blocks_;
  std::shared_ptr<const Hazards> touches_;
  std::vector<Launch> steps_;
  std::vector<Brought> results_;  // copied at the end
  VkDescriptorPool sets_ = VK_NULL_HANDLE;
  std::array<VkCommandBuffer, 3> commands_{};  // by Timing; with `each`, ops run one after the other
  VkQueryPool times_ = VK_NULL_HANDLE;         // before the first step and after each
  // About the last submission.
  std::uint64_t start_ns_ = 0;
  std::uint32_t number_ = 0;
  Timing timing_ = Timing::none;
};

}  // namespace shunt::vulkan
