#include "devices/cuda/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shunt::cuda {
namespace {

Address address_of(const Binding& binding) {
  if (binding.buffer == nullptr) return 0;
  return static_cast<CudaBuffer*>(binding.buffer)->address() + binding.offset;
}

}  // namespace

std::span<const std::byte> image_for(const Driver& driver, const CudaModule& module) {
  return driver.takes_ptx() ? module.ptx : module.code_object;
}

Kernels::Kernels(std::shared_ptr<Context> context) : context_(std::move(context)), loaded_(cuda_modules().size()) {}

Kernels::~Kernels() {
  for (const Loaded& loaded : loaded_)
    if (loaded.module != nullptr)
      context_->end(
          [module = loaded.module](const DriverFunctions& call) { static_cast<void>(call.module_unload(module)); });
}

Result<FunctionHandle> Kernels::of(const CudaModule& module) {
  Loaded& loaded = loaded_[static_cast<std::size_t>(&module - cuda_modules().data())];
  if (loaded.function != nullptr) return loaded.function;
  const std::span<const std::byte> image = image_for(context_->driver(), module);
  if (image.empty())
    return fail(Code::unsupported,
                fmt::format("this build has no kernel {} for {}", module.family, context_->driver().api().title));
  const DriverFunctions& call = context_->call();
  if (loaded.module == nullptr)
    SHUNT_TRY(check(call.module_load(&loaded.module, image.data()), fmt::format("loading kernel {}", module.family)));
  const std::string name = fmt::format("shunt_{}", module.family);
  SHUNT_TRY(check(call.module_function(&loaded.function, loaded.module, name.c_str()), name));
  return loaded.function;
}

Result<std::unique_ptr<CudaProgram>> CudaProgram::create(std::shared_ptr<Context> context, Kernels& kernels,
                                                         const ProgramRequest& request) {
  std::unique_ptr<CudaProgram> program(new CudaProgram(std::move(context)));
  program->context_->enter();
  program->name_ = request.name;
  program->content_.resize(sizeof(Parameters));
  for (std::uint32_t op = 0; op < request.ops.size(); ++op) SHUNT_TRY(program->plan(request.ops[op], op, kernels));
  SHUNT_TRY(program->upload());
  SHUNT_TRY(program->capture());
  return program;
}

CudaProgram::~CudaProgram() {
  if (executable_ == nullptr) return;
  context_->end([executable = executable_](const DriverFunctions& call) {
    static_cast<void>(call.executable_destroy(executable));
  });
}

Status CudaProgram::plan(const ProgramOp& op, std::uint32_t number, Kernels& kernels) {
  const CudaChoice choice = choose_cuda(op.call);
  if (choice.module == nullptr) return fail(Code::unsupported, choice.refusal);
  const std::uint64_t blocks = choice.module->kernel->blocks(op.call);
  if (blocks == 0) return {};
  SHUNT_TRY_ASSIGN(const FunctionHandle function, kernels.of(*choice.module));
  CudaBlock block = cuda_block(op.call, *choice.module);
  // Offsets are within blocks_ until its address is known; operands are addresses already.
  CudaCall call{.output = address_of(op.output), .constants = block.constants_at};
  for (std::size_t i = 0; i < op.inputs.size(); ++i) call.inputs[i] = address_of(op.inputs[i]);
  std::memcpy(block.bytes.data(), &call, sizeof(call));
  launches_.push_back({function, static_cast<unsigned>(blocks), content_.size(), number});
  content_.insert(content_.end(), block.bytes.begin(), block.bytes.end());
  return {};
}

Status CudaProgram::upload() {
  SHUNT_TRY_ASSIGN(blocks_, CudaBuffer::create(context_, content_.size()));
  SHUNT_TRY_ASSIGN(upload_, Pinned::create(context_, content_.size()));
  for (Launch& launch : launches_) {
    CudaCall call;
    std::byte* const at = content_.data() + launch.call;
    launch.call += blocks_->address();
    std::memcpy(&call, at, sizeof(call));
    call.parameters = blocks_->address();
    if (call.constants != 0) call.constants += launch.call;
    std::memcpy(at, &call, sizeof(call));
  }
  const DriverFunctions& call = context_->call();
  std::ranges::copy(content_, upload_->memory().begin());
  return check(call.copy_to_device(blocks_->address(), upload_->memory().data(), content_.size(), context_->stream()),
               "copying the arguments of kernels");
}

Status CudaProgram::capture() {
  if (launches_.empty()) return {};
  const DriverFunctions& call = context_->call();
  SHUNT_TRY(check(call.capture_begin(context_->stream(), kCaptureRelaxed), "starting to record kernels"));
  const Status launched = launch({});
  GraphHandle graph = nullptr;
  const Status ended = check(call.capture_end(context_->stream(), &graph), "recording kernels");
  Status made = !launched ? launched : ended;
  if (made) made = check(call.graph_instantiate(&executable_, graph, 0), "preparing the recorded kernels");
  if (graph != nullptr) static_cast<void>(call.graph_destroy(graph));
  return made;
}

Status CudaProgram::launch(const Submission& submission) {
  for (Launch& each : launches_) {
    if (!submission.includes(each.op)) continue;
    void* arguments[] = {&each.call};
    SHUNT_TRY(check(context_->call().launch(each.function, each.blocks, 1, 1, kCudaGroupSize, 1, 1, 0,
                                            context_->stream(), arguments, nullptr),
                    "starting a kernel"));
  }
  return {};
}

Status CudaProgram::submit(const Submission& submission) {
  const Parameters& parameters = submission.parameters;
  std::memcpy(upload_->memory().data(), &parameters, sizeof(parameters));
  const DriverFunctions& call = context_->call();
  SHUNT_TRY(
      check(call.copy_to_device(blocks_->address(), upload_->memory().data(), sizeof(parameters), context_->stream()),
            "copying parameters"));
  if (submission.op)
    SHUNT_TRY(launch(submission));
  else if (executable_ != nullptr)
    SHUNT_TRY(check(call.graph_launch(executable_, context_->stream()), "starting kernels"));
  return upload_->mark();
}

}  // namespace shunt::cuda
