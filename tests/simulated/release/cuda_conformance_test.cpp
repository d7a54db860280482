// The CUDA kernels, compiled for the host, and the flow of calls around them, simulated, against the scalar reference.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ops/cuda.h"
#include "run/verify/conformance.h"
#include "run/verify/support_check.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

struct Use {
  std::string api;
  Op op{};
  std::string target = {};  // the compute capability whose kernels run; empty: the device's own
};

std::vector<Use> uses() {
  std::vector<Use> found;
  for (const char* api : {"cuda", "hip"})
    for (std::size_t index = 0; index < ops().size(); ++index)
      if (ops()[index].can_be_sampled()) found.push_back({api, static_cast<Op>(index)});
  for (std::size_t index = 0; index < ops().size(); ++index)
    if (ops()[index].family == "linear") found.push_back({"cuda", static_cast<Op>(index), "80"});
  return found;
}

// Returns whether HIP runs an op by kernels that CUDA would not choose for weights in rows.
bool has_hip_kernels(Op op) {
  const auto is_of_cuda_alone = [](const CudaModule& module) {
    return module.code_object.empty() && std::ranges::none_of(cuda_modules(), [&](const CudaModule& other) {
             return other.name == module.name && other.capability == 0;
           });
  };
  return std::ranges::any_of(cuda_modules(), [&](const CudaModule& module) {
    return module.family == info_of(op).family && is_of_cuda_alone(module) &&
           std::ranges::any_of(module.kernels,
                               [](const CudaKernel* kernel) { return kernel->weights == Layout::rows; });
  });
}

class SimulatedCuda : public testing::TestWithParam<Use> {};

TEST_P(SimulatedCuda, GivesTheReferencesResult) {
  const Simulation simulation;
  const Target target(GetParam().target);
  const std::uint64_t before = Simulation::control().live_objects();
  {
    const BackendReport report = Simulation::open(GetParam().api);
    ASSERT_EQ(report.devices.size(), 1U) << report.absent_because;
    EXPECT_TRUE(report.devices[0]->info().emulated);
    Device* const devices[] = {report.devices[0].get()};
    ConformanceOptions options{.ops = {GetParam().op}};
    const bool is_like_cuda = GetParam().api == "hip" && !has_hip_kernels(GetParam().op);
    if (is_like_cuda) options.sizes = {Sizes::awkward};
    // How a device divides so many blocks is the same for all ops, and simulating them takes minutes.
    if (GetParam().op != Op::add)
      std::erase_if(options.sizes, [](Sizes sizes) { return sizes == Sizes::tall || sizes == Sizes::tall_weight; });
    const auto result = check_conformance(devices, options);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    for (const ConformanceFailure& failure : result->failures) ADD_FAILURE() << failure.call << ": " << failure.words;
    if (GetParam().target.empty()) test::expect_as_recorded(*result, *devices[0], true);
    for (const ConformanceTally& tally : result->tallies)
      EXPECT_TRUE(tally.declined == 0 || test::is_left_to_its_parts(tally)) << tally.dtypes << ": " << tally.reason;
  }
  EXPECT_EQ(Simulation::control().live_objects(), before);
}

INSTANTIATE_TEST_SUITE_P(Conformance, SimulatedCuda, testing::ValuesIn(uses()), [](const auto& test) {
  return test.param.api + test.param.target + "_" + std::string(name_of(test.param.op));
});

TEST(CudaModules, AreWholeAndForOldDriversToo) {
  ASSERT_FALSE(cuda_modules().empty());
  for (const CudaModule& module : cuda_modules()) {
    ASSERT_FALSE(module.ptx.empty()) << module.name;
    EXPECT_EQ(module.ptx.back(), std::byte{0}) << module.name;
    const std::string_view text(reinterpret_cast<const char*>(module.ptx.data()));
    struct Form {
      std::uint32_t capability;
      std::string_view version;
      std::string_view target;
    };
    constexpr Form kForms[] = {{0, ".version 6.3\n", ".target sm_75\n"},
                               {75, ".version 6.5\n", ".target sm_75\n"},
                               {80, ".version 7.0\n", ".target sm_80\n"},
                               {90, ".version 8.0\n", ".target sm_90"}};
    const auto* const form = std::ranges::find(kForms, module.capability, &Form::capability);
    ASSERT_NE(form, std::end(kForms)) << module.name;
    EXPECT_NE(text.find(form->version), std::string_view::npos) << module.name;
    EXPECT_NE(text.find(form->target), std::string_view::npos) << module.name;
    EXPECT_EQ(text.find(".target sm_90a") != std::string_view::npos, module.is_for_one) << module.name;
    for (std::size_t at = text.find(".extern"); at != std::string_view::npos; at = text.find(".extern", at + 1))
      EXPECT_TRUE(text.substr(at).starts_with(".extern .shared")) << module.name << " calls what nobody defines";
    EXPECT_EQ(text.find(".local"), std::string_view::npos) << module.name << " keeps an array in slow memory";
  }
}

// Returns the kernels for `rows` of x by a weight of Q4_K.
CudaChoice kernels_for(std::uint32_t rows, const CudaGpu& gpu, Layout layout, Numerics numerics = Numerics::exact) {
  const Operand x = Operand::contiguous(DType::F32, {rows, 256});
  const Operand weight = Operand::contiguous(DType::Q4_K, {16, 256}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {rows, 16});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  return choose_cuda({.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result, .numerics = numerics},
                     gpu, layout);
}

const CudaGpu kHopper{.capability = 90, .multiprocessors = 132, .shared_bytes = 227U << 10U};

TEST(CudaModules, TheBestKernelOfAFamilyIsChosen) {
  for (const CudaGpu& gpu : {CudaGpu{}, kHopper}) {
    EXPECT_EQ(kernels_for(1, gpu, Layout::rows).main.name, "shunt_linear_row_Q4_K_1");
    EXPECT_EQ(kernels_for(3, gpu, Layout::rows).main.name, "shunt_linear_row_Q4_K_4");
    EXPECT_EQ(kernels_for(8, gpu, Layout::rows).main.name, "shunt_linear_row_Q4_K_8");
    EXPECT_EQ(kernels_for(9, gpu, Layout::rows).main.name, "shunt_linear_tile_Q4_K");
  }
}

TEST(CudaModules, ManyRowsAreHalvesFrom75OnWhereNumericsAllow) {
  CudaGpu gpu = kHopper;
  for (const std::uint32_t capability : {75U, 80U, 86U, 89U, 90U, 100U, 120U}) {
    gpu.capability = capability;
    const CudaChoice choice = kernels_for(9, gpu, Layout::rows, Numerics::automatic);
    EXPECT_EQ(choice.main.name, "shunt_linear_halves_Q4_K_32");
    EXPECT_EQ(choice.before.back().name, "shunt_linear_x_tiles_halves");
    EXPECT_EQ(kernels_for(9, gpu, Layout::rows).main.name, "shunt_linear_tile_Q4_K");
  }
  gpu.capability = 70;
  EXPECT_EQ(kernels_for(9, gpu, Layout::rows, Numerics::automatic).main.name, "shunt_linear_tile_Q4_K");
}

// Returns how often an instruction is in the PTX of a kernel for a capability.
std::ptrdiff_t count_in_ptx(std::string_view instruction, const CudaEntry& entry) {
  const std::string_view text(reinterpret_cast<const char*>(entry.module->ptx.data()), entry.module->ptx.size());
  const std::size_t begin = text.find(".entry " + entry.name + "(");
  std::string_view body = text.substr(begin, text.find(".entry ", begin + 1) - begin);
  std::ptrdiff_t count = 0;
  for (std::size_t at = body.find(instruction); at != std::string_view::npos; at = body.find(instruction, at + 1))
    ++count;
  return count;
}

TEST(CudaModules, EachGenerationHasItsOwnMatrixInstructions) {
  constexpr std::ptrdiff_t kProducts = 8 * 2 * 4 * 2 / 8;  // of a warp: 128 x 32 sums, 64 columns, 16 x 8 x 16 each
  CudaGpu gpu = kHopper;
  for (const std::uint32_t capability : {75U, 80U}) {
    gpu.capability = capability;
    const CudaEntry entry = kernels_for(9, gpu, Layout::rows, Numerics::automatic).main;
    EXPECT_EQ(entry.module->capability, capability);
    EXPECT_EQ(count_in_ptx("mma.sync.aligned.m16n8k8.", entry), capability == 75 ? 2 * kProducts : 0);
    EXPECT_EQ(count_in_ptx("mma.sync.aligned.m16n8k16.", entry), capability == 75 ? 0 : kProducts);
    EXPECT_EQ(count_in_ptx("cp.async.cg.", entry) == 0, capability == 75);
  }
  for (const std::uint32_t capability : {90U, 100U, 103U}) {
    gpu.capability = capability;
    const CudaEntry entry = kernels_for(9, gpu, Layout::strips, Numerics::automatic).main;
    EXPECT_EQ(entry.module->is_for_one, capability == 90);
    EXPECT_EQ(count_in_ptx("wgmma.mma_async.", entry) == 0, capability != 90);
    EXPECT_EQ(count_in_ptx("mma.sync.aligned.m16n8k16.", entry) == 0, capability == 90);
  }
}

TEST(CudaModules, TilesAreSmallerWhereSharedMemoryIs) {
  const Operand x = Operand::contiguous(DType::F32, {512, 4096});
  const Operand weight = Operand::contiguous(DType::Q6_K, {14336, 4096}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {512, 14336});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  const OpCall call{
      .op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result, .numerics = Numerics::automatic};
  CudaGpu gpu{.capability = 80, .multiprocessors = 108, .shared_bytes = 99U << 10U};
  EXPECT_EQ(choose_cuda(call, gpu).main.name, "shunt_linear_halves_Q6_K_128");
  gpu.shared_bytes = 64U << 10U;
  EXPECT_EQ(choose_cuda(call, gpu).main.name, "shunt_linear_halves_Q6_K_64");
}

TEST(CudaModules, AmdGpusRunCodeObjects) {
  CudaGpu gpu{.multiprocessors = 104, .shared_bytes = 64U << 10U, .gfx = "gfx90a"};
  if (cuda_modules().front().code_object.empty()) GTEST_SKIP() << "this build has no code objects";
  const CudaChoice choice = kernels_for(9, gpu, Layout::rows, Numerics::automatic);
  EXPECT_EQ(choice.main.name, "shunt_linear_halves_Q4_K_32");
  EXPECT_TRUE(has_matrix_kernels(gpu));
  for (const CudaEntry* const entry : {&choice.main, &choice.before.front()}) {
    EXPECT_FALSE(entry->module->code_object.empty());
    EXPECT_FALSE(entry->starts_early());
  }
  gpu.gfx = "gfx1100";
  EXPECT_EQ(kernels_for(9, gpu, Layout::rows, Numerics::automatic).main.name, "shunt_linear_halves_Q4_K_32");
  EXPECT_TRUE(has_matrix_kernels(gpu));
  gpu.gfx = "gfx1030";
  EXPECT_EQ(kernels_for(9, gpu, Layout::rows, Numerics::automatic).main.name, "shunt_linear_tile_Q4_K");
  EXPECT_FALSE(has_matrix_kernels(gpu));
  gpu.gfx = "gfx601";
  EXPECT_EQ(kernels_for(9, gpu, Layout::rows, Numerics::automatic).main.module, nullptr);
}

TEST(CudaModules, ACodeObjectThatIsCutOffIsForTheGpusThatItStillNames) {
  std::string bundle = "__CLANG_OFFLOAD_BUNDLE__";
  const auto add = [&](std::uint64_t number) { bundle.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  add(3);
  for (const std::string target :
       {"host-x86_64-unknown-linux", "hipv4-amdgcn-amd-amdhsa--gfx900", "hipv4-amdgcn-amd-amdhsa--gfx90a"}) {
    add(4096);
    add(64);
    add(target.size());
    bundle += target;
  }
  const auto gpus_of = [](std::string_view text) { return gpus_of_code_object(std::as_bytes(std::span(text))); };
  EXPECT_EQ(gpus_of(bundle), (std::vector<std::string_view>{"gfx900", "gfx90a"}));
  for (std::size_t bytes = 0; bytes < bundle.size(); ++bytes)
    EXPECT_LE(gpus_of(std::string_view(bundle).substr(0, bytes)).size(), 1U) << bytes;
  EXPECT_TRUE(gpus_of("\x7f"
                      "ELF")
                  .empty());
}

TEST(CudaModules, StripsHaveKernelsOfTheirOwnWhereTheGpuRunsThem) {
  EXPECT_EQ(kernels_for(1, kHopper, Layout::strips).main.name, "shunt_linear_strips_Q4_K_1");
  EXPECT_EQ(kernels_for(9, kHopper, Layout::strips).main.name, "shunt_linear_product_Q4_K_exact_16");
  EXPECT_EQ(kernels_for(9, kHopper, Layout::strips).before.back().name, "shunt_linear_x_tiles_exact");
  CudaGpu next = kHopper;
  next.capability = 100;
  EXPECT_TRUE(next.reads_strips());
  EXPECT_EQ(kernels_for(1, next, Layout::strips).main.name, "shunt_linear_strips_Q4_K_1");
  EXPECT_EQ(kernels_for(9, next, Layout::strips).main.name, "shunt_linear_product_Q4_K_exact_16");
  CudaGpu small = kHopper;
  small.shared_bytes = 99U << 10U;
  EXPECT_FALSE(small.reads_strips());
  EXPECT_EQ(kernels_for(1, small, Layout::strips).main.name, "shunt_linear_strips");
}

TEST(CudaModules, ProductsOfStripsWithoutWgmmaHaveSmallerTiles) {
  const Operand x = Operand::contiguous(DType::F32, {2048, 4096});
  const Operand weight = Operand::contiguous(DType::Q4_K, {14336, 4096}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {2048, 14336});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  for (const bool exact : {false, true}) {
    const OpCall call{.op = Op::linear,
                      .attributes = &none,
                      .inputs = inputs,
                      .output = &result,
                      .numerics = exact ? Numerics::exact : Numerics::automatic};
    const std::string name = exact ? "shunt_linear_product_Q4_K_exact_" : "shunt_linear_product_Q4_K_halves_";
    CudaGpu gpu = kHopper;
    EXPECT_EQ(choose_cuda(call, gpu, Layout::strips).main.name, name + (exact ? "128" : "256"));
    gpu.capability = 100;
    EXPECT_EQ(choose_cuda(call, gpu, Layout::strips).main.name, name + (exact ? "64" : "128"));
  }
}

TEST(CudaModules, ARowTooLongForSharedMemoryTakesTheKernelOfTwo) {
  const auto kernel_for = [](std::uint32_t columns) {
    const Operand x = Operand::contiguous(DType::F32, {1, columns});
    const Operand weight = Operand::contiguous(DType::Q4_K, {64, columns}, TensorKind::weight);
    const Operand result = Operand::contiguous(DType::F32, {1, 64});
    const Operand* const inputs[] = {&x, &weight};
    const Attributes none;
    return choose_cuda({.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result}, kHopper,
                       Layout::strips)
        .main.name;
  };
  EXPECT_EQ(kernel_for(28672), "shunt_linear_strips_Q4_K_1");
  EXPECT_EQ(kernel_for(65536), "shunt_linear_strips_Q4_K_2");
}

// Returns the kernels for two of eight experts for each of so many tokens.
CudaChoice experts_for(std::uint32_t tokens, const CudaGpu& gpu, Layout layout) {
  const Operand x = Operand::contiguous(DType::F32, {tokens, 1, 256});
  const Operand weight = Operand::contiguous(DType::Q4_K, {8, 32, 256}, TensorKind::weight);
  const Operand ids = Operand::contiguous(DType::I32, {tokens, 2});
  const Operand result = Operand::contiguous(DType::F32, {tokens, 2, 32});
  const Operand* const inputs[] = {&x, &weight, &ids};
  const Attributes none;
  return choose_cuda({.op = Op::linear_experts,
                      .attributes = &none,
                      .inputs = inputs,
                      .output = &result,
                      .numerics = Numerics::automatic},
                     gpu, layout);
}

TEST(CudaModules, ManyUsesOfExpertsAreSortedBeforeTheyAreMultiplied) {
  EXPECT_EQ(experts_for(8, kHopper, Layout::rows).main.name, "shunt_experts");
  EXPECT_EQ(experts_for(8, kHopper, Layout::strips).main.name, "shunt_experts_strips_Q4_K");
  EXPECT_EQ(experts_for(9, kHopper, Layout::strips).main.name, "shunt_experts_product_Q4_K_halves_32");
  const CudaChoice many = experts_for(512, kHopper, Layout::strips);
  EXPECT_EQ(many.main.name, "shunt_experts_product_Q4_K_halves_128");
  ASSERT_EQ(many.before.size(), 2U);
  EXPECT_EQ(many.before[0].name, "shunt_experts_sort_halves");
  EXPECT_EQ(many.before[1].name, "shunt_experts_x_tiles_halves");
  CudaGpu next = kHopper;
  next.capability = 100;
  EXPECT_EQ(experts_for(512, next, Layout::strips).main.name, "shunt_experts_product_Q4_K_halves_128");
  EXPECT_FALSE(experts_for(512, next, Layout::strips).main.module->is_for_one);
}

// A product of `rows` rows of x by a weight in 14336 rows of 4096 columns.
struct Product {
  Product(std::uint32_t rows, DType dtype, Numerics numerics)
      : x(Operand::contiguous(DType::F32, {rows, 4096})),
        weight(Operand::contiguous(dtype, {14336, 4096}, TensorKind::weight)),
        result(Operand::contiguous(DType::F32, {rows, 14336})),
        call{.op = Op::linear, .attributes = &none, .inputs = inputs, .output = &result, .numerics = numerics} {}
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  [[nodiscard]] std::vector<std::string_view> kernels(Layout layout) const {
    std::vector<std::string_view> names;
    for (const KernelCandidate& each : cuda_candidates(call, kHopper, layout)) names.push_back(each.name);
    return names;
  }

  Attributes none;
  Operand x;
  Operand weight;
  Operand result;
  const Operand* inputs[2] = {&x, &weight};
  OpCall call;
};

using Names = std::vector<std::string_view>;

TEST(CudaCandidates, AreKernelsOfDifferentSourcesThatNumericsAllowTheRulesFirst) {
  EXPECT_EQ(Product(1, DType::Q4_K, Numerics::automatic).kernels(Layout::strips), Names());
  EXPECT_EQ(Product(4, DType::Q4_K, Numerics::automatic).kernels(Layout::strips), Names());
  EXPECT_EQ(Product(8, DType::Q4_K, Numerics::automatic).kernels(Layout::strips),
            (Names{"linear_product", "linear_strips"}));
  EXPECT_EQ(Product(8, DType::Q4_K, Numerics::exact).kernels(Layout::strips),
            (Names{"linear_strips", "linear_product"}));
  EXPECT_EQ(Product(16, DType::Q4_K, Numerics::automatic).kernels(Layout::strips), Names());
  EXPECT_EQ(Product(8, DType::Q4_K, Numerics::automatic).kernels(Layout::rows), (Names{"linear_row", "linear_halves"}));
  EXPECT_EQ(Product(8, DType::Q4_K, Numerics::exact).kernels(Layout::rows), Names());
  EXPECT_EQ(Product(16, DType::Q4_K, Numerics::automatic).kernels(Layout::rows),
            (Names{"linear_halves", "linear_tile"}));
  EXPECT_EQ(Product(8, DType::F32, Numerics::automatic).kernels(Layout::rows), (Names{"linear_row", "linear_dots"}));
  EXPECT_EQ(Product(16, DType::F32, Numerics::automatic).kernels(Layout::rows), (Names{"linear_tile", "linear_warps"}));
}

TEST(CudaCandidates, RunWhereTheyAreNamedOrWereMeasured) {
  const Product product(8, DType::Q4_K, Numerics::automatic);
  const auto main_with = [&](const CudaPreference& preference) {
    const CudaChoice choice = choose_cuda(product.call, kHopper, Layout::strips, preference);
    return fmt::format("{} {}", choice.main.name, choice.use.is_measured);
  };
  const std::string by_rule = "shunt_linear_product_Q4_K_halves_16 false";
  const std::string other = "shunt_linear_strips_Q4_K_8 true";
  EXPECT_EQ(main_with({}), by_rule);
  EXPECT_EQ(main_with({.named = "linear_strips"}), other);
  EXPECT_EQ(main_with({.named = "linear_row"}), by_rule) << "it reads another layout";
  const auto candidates = cuda_candidates(product.call, kHopper, Layout::strips);
  const auto measured = [&](std::string kernel) -> KernelChoices {
    return {{choice_kind(product.call, candidates),
             {{.cost = info_of(Op::linear).rule->cost(product.call), .kernel = std::move(kernel)}}}};
  };
  KernelChoices choices = measured("linear_strips");
  EXPECT_EQ(main_with({.measured = &choices}), other);
  EXPECT_TRUE(choose_cuda(product.call, kHopper, Layout::strips, {.measured = &choices}).before.empty());
  choices = measured("of another build");
  EXPECT_EQ(main_with({.measured = &choices}), by_rule);
}

TEST(CudaCandidates, ADeviceTakesThoseThatWereMeasured) {
  const Simulation simulation;
  const BackendReport report = Simulation::open("cuda");
  ASSERT_EQ(report.devices.size(), 1U) << report.absent_because;
  Device& device = *report.devices[0];
  const Product product(8, DType::Q4_K, Numerics::automatic);
  const auto support = [&] { return device.supports(std::span(&product.call, 1)); };
  EXPECT_EQ(support().kernel.name, "linear_product");
  EXPECT_FALSE(support().kernel.is_measured);
  EXPECT_EQ(support().arithmetic, Arithmetic::halves);
  const auto candidates = device.kernels_for(product.call, weights_layout(device, product.call));
  device.choose_kernels({{choice_kind(product.call, candidates),
                          {{.cost = info_of(Op::linear).rule->cost(product.call), .kernel = "linear_strips"}}}});
  EXPECT_EQ(support().kernel.name, "linear_strips");
  EXPECT_TRUE(support().kernel.is_measured);
  EXPECT_EQ(support().arithmetic, Arithmetic::f32);
}

TEST(CudaModules, NumericsAllowKernelsThatRound) {
  for (const Numerics numerics : {Numerics::automatic, Numerics::fast}) {
    const CudaChoice choice = kernels_for(9, kHopper, Layout::strips, numerics);
    EXPECT_EQ(choice.main.name, "shunt_linear_product_Q4_K_halves_16");
    EXPECT_EQ(choice.before.back().name, "shunt_linear_x_tiles_halves");
    EXPECT_EQ(choice.main.kernel->arithmetic, Arithmetic::halves);
  }
}

}  // namespace
}  // namespace shunt::simulated
