#include "run/verify/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "devices/cpu/device.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "ops/strips.h"
#include "run/verify/comparison.h"

namespace shunt {
namespace {

constexpr std::byte kCanary{0xA5};

// The most flops of a case that the reference computes fast.
constexpr double kMostFlops = 1 << 26U;

std::uint64_t bytes_before(const Operand& operand, std::uint64_t elements) {
  const DTypeInfo& info = info_of(operand.dtype);
  return elements / info.block_elements * info.block_bytes;
}

// Returns a plain copy of the valid part of an operand.
HostTensor valid_part(const SampleTensor& tensor, const Parameters& parameters) {
  const Operand& operand = tensor.operand;
  const std::uint32_t rows = operand.shape.rank() == 0 ? 1 : operand.shape[0];
  return plain_copy(operand, tensor.storage, tensor.offset, valid_rows(rows, operand.extent, parameters));
}

// A sample, its call, and the expected result.
struct Case {
  Sample sample;
  std::vector<const Operand*> operands;
  Operand output;
  OpCall call;
  HostTensor expected;

  [[nodiscard]] std::string dtypes() const {
    std::string text;
    for (const Operand* operand : operands)
      if (operand != nullptr && operand->dtype != DType::I32) text += fmt::format("{} ", name_of(operand->dtype));
    return fmt::format("{}-> {}", text, name_of(output.dtype));
  }
  [[nodiscard]] std::vector<DType> different_dtypes() const {
    std::set<DType> found{output.dtype};
    for (const Operand* operand : operands)
      if (operand != nullptr && operand->dtype != DType::I32) found.insert(operand->dtype);
    return {found.begin(), found.end()};
  }
  [[nodiscard]] bool has(std::string_view dtype) const {
    return dtype.empty() || dtype == name_of(output.dtype) || std::ranges::any_of(operands, [&](const Operand* input) {
             return input != nullptr && name_of(input->dtype) == dtype;
           });
  }
};

Result<Case> make_case(Op op, const SampleCase& which, std::uint64_t seed) {
  Case made{.sample = make_sample(op, which, seed)};
  for (const auto& input : made.sample.inputs) made.operands.push_back(input ? &input->operand : nullptr);
  SHUNT_TRY_ASSIGN(const ResultShape shape, infer(op, made.operands, made.sample.attributes));
  made.output = shape.operand;
  return made;
}

// REQUIRES: the call of the case is set.
bool is_soon_computed(const Case& made) {
  return !made.sample.is_too_large && made.output.shape.elements() <= kMostSampleElements &&
         info_of(made.call.op).rule->cost(made.call).flops <= kMostFlops;
}

// The first op stands for others that its family's kernels compute in the same way.
bool is_first_of_its_family(Op op) {
  const std::string_view family = info_of(op).family;
  return std::ranges::find(ops(), family, &OpInfo::family) - ops().begin() == static_cast<std::ptrdiff_t>(op);
}

Status compute_expected(Case& made) {
  const Sample& sample = made.sample;
  std::vector<HostTensor> copies;
  copies.reserve(sample.inputs.size());
  std::vector<const HostTensor*> inputs;
  for (const auto& input : sample.inputs)
    inputs.push_back(input ? &copies.emplace_back(valid_part(*input, sample.parameters)) : nullptr);
  SHUNT_TRY_ASSIGN(made.expected, run_reference(sample.op, sample.attributes, inputs));
  return {};
}

// Memory of a device with guard bytes on either side.
class Guarded {
 public:
  static Result<Guarded> create(Device& device, std::vector<std::byte> content, BufferUse use) {
    Guarded guarded;
    guarded.margin_ = std::max<std::uint64_t>(256, device.info().alignment_bytes);
    guarded.content_ = std::move(content);
    const std::uint64_t bytes = guarded.content_.size() + 2 * guarded.margin_;
    SHUNT_TRY_ASSIGN(guarded.buffer_, device.allocate(bytes, use));
    std::vector<std::byte> all(bytes, kCanary);
    std::ranges::copy(guarded.content_, all.begin() + static_cast<std::ptrdiff_t>(guarded.margin_));
    SHUNT_TRY(device.write({guarded.buffer_.get(), 0, bytes}, all).wait());
    return guarded;
  }

  [[nodiscard]] Binding at(std::uint64_t offset, std::uint64_t bytes) const {
    return {buffer_.get(), margin_ + offset, bytes};
  }
  [[nodiscard]] const std::vector<std::byte>& content() const { return content_; }

  // Reads the content back. Errors: internal if a guard byte has changed.
  Result<std::vector<std::byte>> read(Device& device, std::string_view what) const {
    std::vector<std::byte> all(content_.size() + 2 * margin_);
    SHUNT_TRY(device.read({buffer_.get(), 0, all.size()}, all).wait());
    for (std::size_t index = 0; index < all.size(); ++index)
      if ((index < margin_ || index >= margin_ + content_.size()) && all[index] != kCanary)
        return fail(Code::internal,
                    fmt::format("wrote {} bytes {} {}", index < margin_ ? margin_ - index : index - margin_,
                                index < margin_ ? "before" : "after the start of", what));
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(margin_));
    all.resize(content_.size());
    return all;
  }

 private:
  std::unique_ptr<Buffer> buffer_;
  std::uint64_t margin_ = 0;
  std::vector<std::byte> content_;
};

// One case on one device, with weights in rows or in the layout that the device reads fastest.
class Trial {
 public:
  Trial(Device& device, const Case& tried, KernelCandidate kernel, bool in_rows)
      : device_(device), case_(tried), kernel_(kernel), in_rows_(in_rows) {}

  // Returns the error relative to the reference. Errors: anything that is wrong.
  Result<double> run() {
    SHUNT_TRY(allocate());
    SHUNT_TRY(submit());
    SHUNT_TRY(check_inputs());
    SHUNT_TRY_ASSIGN(const std::vector<std::byte> bytes, result().read(device_, "the result"));
    return check(bytes);
  }

 private:
  [[nodiscard]] bool changes_state() const { return case_.output.kind == TensorKind::state; }
  [[nodiscard]] const Guarded& result() const { return changes_state() ? *inputs_.front() : *output_; }

  Status allocate() {
    for (std::size_t index = 0; index < case_.sample.inputs.size(); ++index) {
      const auto& input = case_.sample.inputs[index];
      inputs_.emplace_back();
      if (!input) continue;
      const BufferUse use = input->operand.kind == TensorKind::weight  ? BufferUse::weights
                            : input->operand.kind == TensorKind::state ? BufferUse::state
                                                                       : BufferUse::values;
      SHUNT_TRY_ASSIGN(inputs_.back(), Guarded::create(device_, content_of(index), use));
    }
    if (changes_state()) return {};
    SHUNT_TRY_ASSIGN(const std::uint64_t bytes, bytes_of(case_.output.dtype, case_.output.shape));
    SHUNT_TRY_ASSIGN(output_, Guarded::create(device_, std::vector<std::byte>(bytes, kCanary), BufferUse::values));
    return {};
  }

  [[nodiscard]] Layout layout_of(std::size_t index) const {
    return in_rows_ ? Layout::rows : device_.layout_for(case_.call, index);
  }

  [[nodiscard]] std::vector<std::byte> content_of(std::size_t index) const {
    const SampleTensor& tensor = *case_.sample.inputs[index];
    if (layout_of(index) == Layout::rows) return tensor.storage;
    std::vector<std::byte> strips(tensor.storage.size());
    rows_to_strips(tensor.operand.dtype, tensor.operand.shape.columns(), tensor.storage, strips);
    return strips;
  }

  Status submit() {
    ProgramOp op{.call = case_.call, .name = std::string(name_of(case_.call.op)), .kernel = kernel_.name};
    for (std::size_t index = 0; index < inputs_.size(); ++index) {
      op.inputs.emplace_back();
      if (!inputs_[index]) continue;
      const SampleTensor& tensor = *case_.sample.inputs[index];
      op.inputs.back() = inputs_[index]->at(bytes_before(tensor.operand, tensor.offset), tensor.operand.span_bytes());
      op.inputs.back().layout = layout_of(index);
    }
    op.output = result().at(0, result().content().size());
    const ProgramRequest request{.name = op.name, .ops = std::span(&op, 1)};
    SHUNT_TRY_ASSIGN(const auto program, device_.prepare(request));
    return device_.submit(*program, {.parameters = case_.sample.parameters}).wait();
  }

  Status check_inputs() {
    for (std::size_t index = changes_state() ? 1 : 0; index < inputs_.size(); ++index) {
      if (!inputs_[index]) continue;
      const std::string_view name = info_of(case_.call.op).inputs[index];
      SHUNT_TRY_ASSIGN(const std::vector<std::byte> now, inputs_[index]->read(device_, name));
      if (now != inputs_[index]->content()) return fail(Code::internal, fmt::format("changed its input {}", name));
    }
    return {};
  }

  Result<double> check(std::span<const std::byte> bytes) {
    const std::size_t valid = case_.expected.bytes.size();
    if (std::ranges::any_of(bytes.subspan(valid), [](std::byte byte) { return byte != kCanary; }))
      return fail(Code::internal, "wrote into rows of the result that are not valid");
    const Comparison comparison =
        compare(case_.output.dtype, case_.output.shape.columns(), case_.expected.bytes, bytes.first(valid));
    if (!comparison.mismatch.empty()) return fail(Code::internal, comparison.mismatch);
    const double tolerance = tolerance_of(case_.call, kernel_.arithmetic);
    if (!(comparison.error <= tolerance))
      return fail(Code::internal,
                  fmt::format("normalized mean square error {:.3g} is above {:.3g}", comparison.error, tolerance));
    return comparison.error;
  }

  Device& device_;
  const Case& case_;
  const KernelCandidate kernel_;  // without a name: the device's choice
  const bool in_rows_;
  std::vector<std::optional<Guarded>> inputs_;
  std::optional<Guarded> output_;
};

class Conformance {
 public:
  Conformance(std::span<Device* const> devices, const ConformanceOptions& options)
      : devices_(devices), options_(options), known_failed_(options.known.size()), known_tried_(options.known.size()) {}

  Result<ConformanceReport> run() {
    for (std::size_t index = 0; index < ops().size(); ++index) {
      const Op op = static_cast<Op>(index);
      const bool chosen = options_.ops.empty() || std::ranges::find(options_.ops, op) != options_.ops.end();
      if (!chosen || !info_of(op).can_be_sampled()) continue;
      if (options_.families && !is_first_of_its_family(op)) continue;
      if (auto done = run_op(op); !done) return fail_at(name_of(op), std::move(done).error());
    }
    for (auto& [key, tally] : tallies_) report_.tallies.push_back(std::move(tally));
    for (std::size_t row = 0; row < options_.known.size(); ++row) {
      if (known_failed_[row]) report_.known.push_back(options_.known[row]);
      if (known_tried_[row] && !known_failed_[row]) report_.unexpected_passes.push_back(options_.known[row]);
    }
    return std::move(report_);
  }

 private:
  Status run_op(Op op) {
    if (options_.only) return run_case(op, *options_.only);
    const std::vector<std::uint32_t> options = make_sample(op, {}, options_.seed).options;
    if (takes(Sizes::awkward)) SHUNT_TRY(options_.full ? run_all(op, options) : run_pairs(op, options));
    return run_sizes(op);
  }

  Status run_all(Op op, std::span<const std::uint32_t> options) {
    std::uint64_t count = 1;
    for (const std::uint32_t choices : options) count *= choices;
    Combination choices(options.size(), 0);
    std::uint64_t number = 0;
    do {
      if (!goes_on(op, number++, count)) return {};
      SHUNT_TRY(run_case(op, {.choices = choices}));
    } while (next_combination(choices, options));
    return {};
  }

  Status run_pairs(Op op, std::span<const std::uint32_t> options) {
    const std::vector<Combination> combinations = pairwise(options);
    for (std::size_t number = 0; number < combinations.size(); ++number) {
      if (!goes_on(op, number, combinations.size())) return {};
      SHUNT_TRY(run_case(op, {.choices = combinations[number]}));
    }
    return {};
  }

  [[nodiscard]] bool takes(Sizes sizes) const {
    return std::ranges::find(options_.sizes, sizes) != options_.sizes.end();
  }

  // Runs the other sizes.
  Status run_sizes(Op op) {
    if (!options_.full && !options_.every_op && !is_first_of_its_family(op)) return {};
    const std::vector<std::uint32_t> options = make_sample(op, {}, options_.seed).options;
    std::vector<SampleCase> cases;
    for (std::size_t sizes = 1; sizes < sample_sizes().size(); ++sizes) {
      if (!takes(static_cast<Sizes>(sizes))) continue;
      const bool each = sample_sizes()[sizes].cases == SizeCases::each && !options.empty();
      for (std::uint32_t number = 0; number < (each ? options[0] : 2U); ++number) {
        cases.push_back(
            {.sizes = static_cast<Sizes>(sizes), .choices = Combination(options.size(), each ? 0 : number)});
        if (each) cases.back().choices[0] = number;
      }
    }
    for (std::size_t number = 0; number < cases.size(); ++number) {
      if (!goes_on(op, number, cases.size())) return {};
      SHUNT_TRY(run_case(op, cases[number]));
    }
    return {};
  }

  [[nodiscard]] bool goes_on(Op op, std::uint64_t number, std::uint64_t count) const {
    return !options_.progress || options_.progress(op, number, count);
  }

  Status run_case(Op op, const SampleCase& which) {
    SHUNT_TRY_ASSIGN(Case made, make_case(op, which, options_.seed));
    made.call = {.op = op, .attributes = &made.sample.attributes, .inputs = made.operands, .output = &made.output};
    if (!options_.dtypes.empty() && made.different_dtypes() != options_.dtypes) return {};
    if (which.sizes != Sizes::awkward && !is_soon_computed(made)) return {};
    SHUNT_TRY(compute_expected(made));
    for (std::size_t number = 0; number < devices_.size(); ++number) {
      made.call.numerics = Numerics::exact;
      const Arithmetic exact = try_on(number, made, which);
      made.call.numerics = Numerics::fast;
      const Support fast = devices_[number]->supports(std::span(&made.call, 1));
      if (fast.arithmetic != exact)
        try_on(number, made, which);
      else if (fast)
        try_kernels_that_round(*devices_[number], made, which, exact);
    }
    return {};
  }

  // Returns the kernels to try with weights in rows or in the fastest layout; one without a name if the device has
  // just one.
  [[nodiscard]] std::vector<KernelCandidate> kernels_for(const Device& device, const Case& made, const Support& support,
                                                         bool in_rows) const {
    const Layout layout = in_rows ? Layout::rows : weights_layout(device, made.call);
    std::vector<KernelCandidate> all = device.kernels_for(made.call, layout);
    if (options_.kernel && !options_.kernel->empty())
      std::erase_if(all, [&](const KernelCandidate& kernel) { return kernel.name != *options_.kernel; });
    else if (all.empty() || options_.kernel)
      all.assign(1, {.name = {}, .arithmetic = support.arithmetic});
    return all;
  }
  // The trials of a case: with weights in rows, and in the layout that the device reads fastest if it is another.
  static std::vector<bool> layouts_for(const Device& device, const Case& made) {
    return weights_layout(device, made.call) == Layout::rows ? std::vector{true} : std::vector{true, false};
  }

  [[nodiscard]] bool has_kernel(const Device& device, const Case& made, const Support& support) const {
    return std::ranges::any_of(layouts_for(device, made),
                               [&](bool in_rows) { return !kernels_for(device, made, support, in_rows).empty(); });
  }

  // Tries kernels with another arithmetic than `own`, which the device takes by itself.
  void try_kernels_that_round(Device& device, const Case& made, const SampleCase& which, Arithmetic own) {
    const Support support{.arithmetic = own};
    for (const bool in_rows : layouts_for(device, made))
      for (const KernelCandidate& kernel : kernels_for(device, made, support, in_rows)) {
        if (kernel.arithmetic == own) continue;
        if (auto error = try_kernel(device, made, kernel, in_rows); !error && !note_known(device, made, true))
          add_failure(device, made, which, error.error().message);
      }
  }

  // Returns the arithmetic of the device.
  Arithmetic try_on(std::size_t number, const Case& made, const SampleCase& which) {
    Device& device = *devices_[number];
    const Op op = made.sample.op;
    const Support support = device.supports(std::span(&made.call, 1));
    if (support && !has_kernel(device, made, support)) return support.arithmetic;
    std::string dtypes = made.dtypes() + words_of(support.arithmetic);
    ConformanceTally& tally = tallies_[{op, which.sizes, number, dtypes}];
    tally.device = device.info().id;
    tally.op = op;
    tally.sizes = which.sizes;
    tally.dtypes = std::move(dtypes);
    tally.different_dtypes = made.different_dtypes();
    if (!support) {
      if (tally.declined++ == 0) tally.reason = support.reason;
      if (device.info().id == cpu::kScalarId)
        add_failure(device, made, which, "the reference declines: " + support.reason);
      return support.arithmetic;
    }
    const Result<double> error = try_kernels(device, made, support);
    const bool known = note_known(device, made, !error);
    if (error) {
      ++tally.passed;
      tally.largest_error = std::max(tally.largest_error, *error);
    } else {
      ++tally.failed;
      if (!known) add_failure(device, made, which, error.error().message);
    }
    return support.arithmetic;
  }

  // Returns the largest error of the kernel that the device takes. Errors: also those of its other ones.
  Result<double> try_kernels(Device& device, const Case& made, const Support& support) {
    double largest = 0;
    for (const bool in_rows : layouts_for(device, made)) {
      const std::vector<KernelCandidate> kernels = kernels_for(device, made, support, in_rows);
      for (const KernelCandidate& kernel : kernels) {
        SHUNT_TRY_ASSIGN(const double error, try_kernel(device, made, kernel, in_rows));
        const bool is_own = kernel.name == (in_rows ? kernels.front().name : support.kernel.name);
        if (is_own) largest = std::max(largest, error);
      }
    }
    return largest;
  }

  static Result<double> try_kernel(Device& device, const Case& made, const KernelCandidate& kernel, bool in_rows) {
    auto error = Trial(device, made, kernel, in_rows).run();
    if (error) return error;
    std::string where;
    if (!kernel.name.empty()) where = fmt::format("by {}", kernel.name);
    if (!in_rows)
      where +=
          fmt::format("{}with weights in {}", where.empty() ? "" : " ", name_of(weights_layout(device, made.call)));
    return where.empty() ? std::move(error) : fail_at(where, std::move(error).error());
  }

  void add_failure(const Device& device, const Case& made, const SampleCase& which, std::string words) {
    report_.failures.push_back({.device = device.info().id,
                                .op = made.sample.op,
                                .which = {.sizes = which.sizes, .choices = made.sample.choices},
                                .call = to_string(made.call),
                                .words = std::move(words)});
  }

  // Returns whether the table of known failures has this case.
  bool note_known(const Device& device, const Case& made, bool failed) {
    bool known = false;
    for (std::size_t row = 0; row < options_.known.size(); ++row) {
      const KnownFailure& failure = options_.known[row];
      if (failure.device != device.info().id || failure.op != made.sample.op || !made.has(failure.dtype)) continue;
      known = true;
      known_tried_[row] = true;
      if (failed) known_failed_[row] = true;
    }
    return known;
  }

  std::span<Device* const> devices_;
  const ConformanceOptions& options_;
  std::map<std::tuple<Op, Sizes, std::size_t, std::string>, ConformanceTally> tallies_;
  std::vector<bool> known_failed_;
  std::vector<bool> known_tried_;
  ConformanceReport report_;
};

}  // namespace

std::span<const KnownFailure> known_failures() {
  static const std::vector<KnownFailure> kRows{
#define SHUNT_KNOWN_FAILURE(device, op, dtype, reason) {device, Op::op, dtype, reason},
#include "run/verify/known_failures.def"
  };
  return kRows;
}

Result<ConformanceReport> check_conformance(std::span<Device* const> devices, const ConformanceOptions& options) {
  return Conformance(devices, options).run();
}

}  // namespace shunt
