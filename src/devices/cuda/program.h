// A run of ops as one captured graph of kernels; only a block of parameters in memory changes from step to step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/cuda/context.h"
#include "devices/hazards.h"
#include "ops/cuda.h"

namespace shunt::cuda {

// A device's kernels, each loaded on first use. Owned by the device.
class Kernels {
 public:
  explicit Kernels(std::shared_ptr<Context> context);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Returns the function, for blocks with so much shared memory besides what it declares. Errors: unsupported if its
  // module has no form that the driver takes.
  [[nodiscard]] Result<FunctionHandle> of(const CudaEntry& entry, std::uint32_t shared_bytes);

 private:
  struct Function {
    FunctionHandle handle = nullptr;
    std::uint32_t shared_bytes = 0;  // that were asked for
  };
  [[nodiscard]] Result<Function*> find(const CudaEntry& entry);

  std::shared_ptr<Context> context_;
  std::vector<ModuleHandle> modules_;  // one per entry of cuda_modules()
  std::map<std::pair<const CudaModule*, std::string>, Function> functions_;
};

// Returns the form of a kernel that a driver takes; empty if this build has none.
[[nodiscard]] std::span<const std::byte> image_for(const Driver& driver, const CudaModule& module);

// Returns the scratch memory that the kernels of a call need, 0 if none were chosen.
[[nodiscard]] std::uint64_t scratch_of(const CudaChoice& choice, const OpCall& call);

class SideStreams;

class CudaProgram final : public Program {
 public:
  // The buffers and `kernels` must outlive it. Ops that name no kernel take those of `choices`. Errors: unsupported if
  // an op has no kernel, out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<CudaProgram>> create(std::shared_ptr<Context> context, Kernels& kernels,
                                                                   const ProgramRequest& request,
                                                                   const KernelChoices& choices);
  ~CudaProgram() override;
  CudaProgram(const CudaProgram&) = delete;
  CudaProgram& operator=(const CudaProgram&) = delete;

  [[nodiscard]] std::uint64_t scratch_bytes() const override {
    // Those who share memory count a part of it each.
    return blocks_->bytes() +
           (scratch_ == nullptr ? 0 : scratch_->bytes() / static_cast<std::uint64_t>(scratch_.use_count()));
  }
  [[nodiscard]] std::optional<std::uint64_t> op_ns() const override;
  [[nodiscard]] const std::string& name() const { return name_; }
  // Writes the parameters, if they have changed, and starts the graph, or one op's kernels. REQUIRES: no submission of
  // it is in flight.
  [[nodiscard]] Status submit(const Submission& submission);
  // Like Pinned::query(), for the last submission.
  [[nodiscard]] int query() const { return upload_->query(); }

 private:
  // One use of a kernel.
  struct Call {
    Address at = 0;  // initially an offset into blocks_
    std::uint64_t bytes = 0;
    std::uint32_t op = 0;
    std::uint64_t blocks = 0;  // CudaKernel::blocks
    std::uint64_t least = 0;   // CudaKernel::least_blocks
  };
  struct Launch {
    FunctionHandle function = nullptr;
    std::vector<Call> calls;  // they share its blocks (CudaShares)
    std::uint64_t most_blocks = 0;
    unsigned threads = 0;           // of a block
    unsigned shared_bytes = 0;      // of a block, besides what the kernel declares
    bool waits = false;             // for all before it; otherwise it may run at the same time as the last of these
    bool fills = false;             // it has a block for each multiprocessor
    bool starts_early = false;      // it may be launched before the one ahead of it has ended
    const OpCall* first = nullptr;  // of the calls, while the program is planned
  };
  // Scratch memory as the kernels before an op's own left it, for later ops with the same inputs.
  struct Left {
    std::string by;
    std::uint32_t read = 0;         // CudaKernel::read_before
    std::uint64_t number = 0;       // CudaKernel::before_depends_on
    const ProgramOp* of = nullptr;  // while the program is planned
    [[nodiscard]] bool serves(const CudaChoice& choice, const ProgramOp& op) const;
    [[nodiscard]] bool ends_with(const Hazards& accesses) const;
  };
  explicit CudaProgram(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  [[nodiscard]] Status plan(const ProgramOp& op, std::uint32_t number, const CudaChoice& choice, Kernels& kernels);
  [[nodiscard]] Status add(const CudaEntry& entry, const ProgramOp& op, std::uint32_t number, const Hazards& accesses,
                           Kernels& kernels);
  [[nodiscard]] static std::uint64_t sum_of(std::span<const Call> calls, std::uint64_t Call::* member);
  // Returns the launch that a call of that kernel shares with the last one, or nothing if it must be alone.
  [[nodiscard]] Result<std::optional<Launch>> join_last(const CudaKernel& kernel, const Launch& alone,
                                                        const Hazards& accesses, Kernels& kernels) const;
  [[nodiscard]] Status upload();
  [[nodiscard]] Status capture();
  // Gives the stream, which is being captured, all kernels; those that need not wait for each other run side by side.
  [[nodiscard]] Status record(SideStreams& sides);
  // Starts a launch for some of its calls, which follow each other. `early`: if its kernel can, it starts before the
  // kernel ahead of it in the stream has ended.
  [[nodiscard]] Status launch(const Launch& each, std::span<const Call> calls, StreamHandle stream, bool early = false);
  // Starts the kernels of one op, between two events with the time.
  [[nodiscard]] Status launch_op(const Submission& submission);
  // Shares blocks by what the calls would have alone. REQUIRES: there are enough for the least that each needs.
  [[nodiscard]] static CudaShares share(std::span<const Call> calls, std::uint64_t blocks);

  std::shared_ptr<Context> context_;
  std::string name_;
  std::vector<Launch> launches_;
  Hazards hazards_;  // of the last launches that do not wait for each other, while the program is planned
  Hazards written_;  // while the program is planned
  Left left_;
  std::vector<std::byte> content_;       // of blocks_
  std::unique_ptr<CudaBuffer> blocks_;   // the call of each kernel
  std::shared_ptr<CudaBuffer> scratch_;  // shared with other programs; null: none
  std::unique_ptr<Pinned> upload_;       // the source of blocks_, then of parameters; it marks the end of submissions
  ExecutableHandle executable_ = nullptr;
  EventHandle op_begins_ = nullptr;  // once an op was submitted alone
  EventHandle op_ends_ = nullptr;
};

}  // namespace shunt::cuda
