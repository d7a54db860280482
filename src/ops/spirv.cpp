#include "ops/spirv.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shunt {
namespace {

// Numbers from the SPIR-V specification 1.3.
constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::uint32_t kFirstVersion = 0x00010000;
constexpr std::uint32_t kLastVersion = 0x00010300;
constexpr std::size_t kHeaderWords = 5;
constexpr std::size_t kMaxWords = std::size_t{1} << 22U;
constexpr std::uint32_t kLargestGroupSide = 1U << 16U;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 40U;  // sizes stop growing here
enum Instruction : std::uint32_t {
  kMemoryModel = 14,
  kEntryPoint = 15,
  kExecutionMode = 16,
  kCapability = 17,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeMatrix = 24,
  kTypeArray = 28,
  kTypeRuntimeArray = 29,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kConstantComposite = 44,
  kSpecConstantTrue = 48,
  kSpecConstantFalse = 49,
  kSpecConstant = 50,
  kSpecConstantComposite = 51,
  kVariable = 59,
  kDecorate = 71,
  kMemberDecorate = 72,
};
enum Decoration : std::uint32_t {
  kSpecId = 1,
  kBufferBlock = 3,
  kArrayStride = 6,
  kBuiltIn = 11,
  kBinding = 33,
  kSet = 34,
  kOffset = 35,
};
enum StorageClass : std::uint32_t {
  kUniformConstant = 0,
  kUniform = 2,
  kWorkgroup = 4,
  kPushConstant = 9,
  kStorageBuffer = 12,
};
constexpr std::uint32_t kComputeModel = 5;  // GLCompute
constexpr std::uint32_t kLogical = 0;
constexpr std::uint32_t kGlsl450 = 1;
constexpr std::uint32_t kLocalSize = 17;
constexpr std::uint32_t kLocalSizeId = 38;
constexpr std::uint32_t kWorkgroupSize = 25;  // the built-in constant

// X(number, name, the field of SpirvNeeds that it sets)
#define SHUNT_SPIRV_CAPABILITIES(X)                 \
  X(0, Matrix, none)                                \
  X(1, Shader, none)                                \
  X(9, Float16, f16)                                \
  X(61, GroupNonUniform, subgroups)                 \
  X(63, GroupNonUniformArithmetic, subgroups)       \
  X(65, GroupNonUniformShuffle, subgroups)          \
  X(4433, StorageBuffer16BitAccess, f16)            \
  X(6018, DotProductInput4x8BitPacked, integer_dot) \
  X(6019, DotProduct, integer_dot)

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, "SPIR-V: " + std::move(message)); }

class Module {
 public:
  explicit Module(std::uint32_t inputs) : inputs_(inputs) {}

  Result<SpirvNeeds> read(std::span<const std::uint32_t> words) {
    SHUNT_TRY(check_header(words));
    for (std::size_t at = kHeaderWords; at < words.size();) {
      const std::uint32_t count = words[at] >> 16U;
      if (count == 0 || count > words.size() - at)
        return invalid(
            fmt::format("the instruction at word {} has {} words, and {} are left", at, count, words.size() - at));
      at_ = at;
      operands_ = words.subspan(at + 1, count - 1);
      SHUNT_TRY(read(words[at] & 0xFFFFU));
      at += count;
    }
    SHUNT_TRY(finish());
    return needs_;
  }

 private:
  struct Variable {
    std::uint32_t id = 0;
    std::uint32_t type = 0;  // what it points to
    std::uint32_t storage = 0;
  };
  struct Pointer {
    std::uint32_t storage = 0;
    std::uint32_t type = 0;
  };

  static Status check_header(std::span<const std::uint32_t> words) {
    if (words.size() < kHeaderWords || words.size() > kMaxWords)
      return invalid(fmt::format("{} words; a module has {} to {}", words.size(), kHeaderWords, kMaxWords));
    if (words[0] != kMagic)
      return invalid(fmt::format("it begins with {:#010x}, must begin with {:#010x}", words[0], kMagic));
    if (words[1] < kFirstVersion || words[1] > kLastVersion)
      return invalid(fmt::format("version {}.{}; Vulkan 1.1 takes 1.0 to 1.3: compile with --target-env=vulkan1.1",
                                 words[1] >> 16U & 0xFFU, words[1] >> 8U & 0xFFU));
    return {};
  }

  Status need(std::size_t count) const {
    if (operands_.size() >= count) return {};
    return invalid(
        fmt::format("the instruction at word {} has {} operands, must have {}", at_, operands_.size(), count));
  }

  Status read(std::uint32_t instruction) {
    switch (instruction) {
      case kCapability:
        SHUNT_TRY(need(1));
        return read_capability(operands_[0]);
      case kMemoryModel:
        SHUNT_TRY(need(2));
        if (operands_[0] != kLogical || operands_[1] != kGlsl450)
          return invalid("its memory model is not Logical GLSL450");
        return {};
      case kEntryPoint:
        return read_entry_point();
      case kExecutionMode:
        return read_execution_mode();
      case kDecorate:
        return read_decoration();
      case kMemberDecorate:
        SHUNT_TRY(need(3));
        if (operands_[2] != kOffset) return {};
        SHUNT_TRY(need(4));
        member_offsets_[{operands_[0], operands_[1]}] = operands_[3];
        return {};
      case kVariable:
        return read_variable();
      default:
        return read_type_or_constant(instruction);
    }
  }

  Status read_capability(std::uint32_t capability) {
    switch (capability) {
#define SHUNT_CAPABILITY(number, name, field) \
  case number:                                \
    mark_##field();                           \
    return {};
      SHUNT_SPIRV_CAPABILITIES(SHUNT_CAPABILITY)
#undef SHUNT_CAPABILITY
      default:
        break;
    }
    std::string known;
#define SHUNT_CAPABILITY(number, name, field) \
  known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", #name, number);
    SHUNT_SPIRV_CAPABILITIES(SHUNT_CAPABILITY)
#undef SHUNT_CAPABILITY
    return fail(Code::unsupported,
                fmt::format("SPIR-V: it needs capability {}; kernels may need {}", capability, known));
  }
  static void mark_none() {}
  void mark_f16() { needs_.f16 = true; }
  void mark_integer_dot() { needs_.integer_dot = true; }
  void mark_subgroups() { needs_.subgroups = true; }

  Status read_entry_point() {
    SHUNT_TRY(need(3));
    if (operands_[0] != kComputeModel)
      return invalid(
          fmt::format("an entry point is of execution model {}, must be GLCompute ({})", operands_[0], kComputeModel));
    if (entry_point_) return invalid("it has more than one entry point");
    entry_point_ = operands_[1];
    constexpr std::uint32_t kMain[] = {0x6E69616D, 0};  // "main" in words
    if (operands_.size() < 4 || operands_[2] != kMain[0] || operands_[3] != kMain[1])
      return invalid("its entry point is not called main");
    return {};
  }

  Status read_execution_mode() {
    SHUNT_TRY(need(2));
    if (operands_[1] == kLocalSizeId) return invalid("its workgroup has a size by ids; write numbers");
    if (operands_[1] != kLocalSize) return {};
    SHUNT_TRY(need(5));
    std::ranges::copy(operands_.subspan(2, 3), needs_.group.begin());
    return {};
  }

  Status read_decoration() {
    SHUNT_TRY(need(2));
    const std::uint32_t id = operands_[0];
    if (operands_[1] == kBufferBlock) storage_blocks_.insert(id);
    for (const auto& [decoration, numbers] : {std::pair{kBinding, &bindings_},
                                              {kSet, &sets_},
                                              {kSpecId, &spec_ids_},
                                              {kBuiltIn, &built_ins_},
                                              {kArrayStride, &strides_}}) {
      if (operands_[1] != decoration) continue;
      SHUNT_TRY(need(3));
      (*numbers)[id] = operands_[2];
    }
    return {};
  }

  Status read_variable() {
    SHUNT_TRY(need(3));
    const auto pointer = pointers_.find(operands_[0]);
    if (pointer == pointers_.end() || pointer->second.storage != operands_[2])
      return invalid(fmt::format("the variable at word {} has no type before it", at_));
    variables_.push_back({.id = operands_[1], .type = pointer->second.type, .storage = operands_[2]});
    return {};
  }

  // A type is declared before its uses, so its size is known.
  [[nodiscard]] std::uint64_t size_of(std::uint32_t type) const {
    const auto size = sizes_.find(type);
    return size == sizes_.end() ? kHuge : size->second;
  }
  [[nodiscard]] static std::uint64_t times(std::uint64_t size, std::uint64_t count) {
    return count != 0 && size > kHuge / count ? kHuge : size * count;
  }

  Status read_type_or_constant(std::uint32_t instruction) {
    switch (instruction) {
      case kTypeBool:
        SHUNT_TRY(need(1));
        sizes_[operands_[0]] = 4;
        return {};
      case kTypeInt:
      case kTypeFloat:
        SHUNT_TRY(need(2));
        sizes_[operands_[0]] = operands_[1] / 8;
        return {};
      case kTypeVector:
      case kTypeMatrix:
        SHUNT_TRY(need(3));
        // A column of a matrix in a block begins at a multiple of 16 bytes.
        sizes_[operands_[0]] = instruction == kTypeVector
                                   ? times(size_of(operands_[1]), operands_[2])
                                   : times(std::max<std::uint64_t>(16, size_of(operands_[1])), operands_[2]);
        return {};
      case kTypeArray:
        return read_array();
      case kTypeRuntimeArray:
        SHUNT_TRY(need(2));
        sizes_[operands_[0]] = 0;
        return {};
      case kTypeStruct:
        return read_struct();
      case kTypePointer:
        SHUNT_TRY(need(3));
        pointers_[operands_[0]] = {.storage = operands_[1], .type = operands_[2]};
        return {};
      case kConstant:
      case kSpecConstant:
      case kSpecConstantTrue:
      case kSpecConstantFalse:
      case kConstantComposite:
      case kSpecConstantComposite:
        return read_constant(instruction);
      default:
        return {};
    }
  }

  Status read_array() {
    SHUNT_TRY(need(3));
    const auto length = number(constants_, operands_[2]);
    const auto stride = number(strides_, operands_[0]);
    sizes_[operands_[0]] = times(stride ? *stride : size_of(operands_[1]), length ? *length : kHuge);
    return {};
  }

  Status read_struct() {
    SHUNT_TRY(need(1));
    std::uint64_t end = 0;
    for (std::uint32_t member = 0; member + 1 < operands_.size(); ++member) {
      const auto offset = member_offsets_.find({operands_[0], member});
      const std::uint64_t begin = offset == member_offsets_.end() ? end : offset->second;
      end = std::min(kHuge, std::max(end, begin + size_of(operands_[member + 1])));
    }
    sizes_[operands_[0]] = end;
    return {};
  }

  Status read_constant(std::uint32_t instruction) {
    SHUNT_TRY(need(2));
    const std::uint32_t id = operands_[1];
    if (instruction == kConstantComposite || instruction == kSpecConstantComposite) {
      const auto built_in = built_ins_.find(id);
      if (built_in == built_ins_.end() || built_in->second != kWorkgroupSize) return {};
      SHUNT_TRY(need(5));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto size = constants_.find(operands_[2 + axis]);
        if (size == constants_.end()) return invalid("its workgroup's size is no number");
        needs_.group[axis] = size->second;
      }
      return {};
    }
    const bool is_bool = instruction == kSpecConstantTrue || instruction == kSpecConstantFalse;
    if (!is_bool) SHUNT_TRY(need(3));
    const std::uint32_t value = is_bool ? (instruction == kSpecConstantTrue ? 1U : 0U) : operands_[2];
    constants_[id] = value;
    const auto spec_id = spec_ids_.find(id);
    if (instruction == kConstant || spec_id == spec_ids_.end() || spec_id->second >= kSpecializationConstants)
      return {};
    if (!is_bool && size_of(operands_[0]) != 4)
      return invalid(fmt::format("constant {} is not of 32 bits", spec_id->second));
    needs_.defaults[spec_id->second] = value;
    return {};
  }

  [[nodiscard]] static std::optional<std::uint32_t> number(const std::map<std::uint32_t, std::uint32_t>& numbers,
                                                           std::uint32_t id) {
    const auto place = numbers.find(id);
    return place == numbers.end() ? std::nullopt : std::optional(place->second);
  }

  Status finish() {
    if (!entry_point_) return invalid("it has no entry point");
    for (const Variable& variable : variables_) SHUNT_TRY(check(variable));
    if (!bound_.contains(kOutputBinding))
      return invalid(fmt::format("it binds nothing at binding {}, which is the result", kOutputBinding));
    if (std::ranges::any_of(needs_.group, [](std::uint32_t size) { return size == 0 || size > kLargestGroupSide; }))
      return invalid(
          fmt::format("its workgroup has {} x {} x {} invocations", needs_.group[0], needs_.group[1], needs_.group[2]));
    return {};
  }

  Status check(const Variable& variable) {
    switch (variable.storage) {
      case kWorkgroup:
        needs_.shared_bytes = std::min(kHuge, needs_.shared_bytes + size_of(variable.type));
        return {};
      case kPushConstant:
        return invalid("it has push constants; arguments stand in the block at binding 0");
      case kUniformConstant:
        return invalid("it has images or samplers; operands are buffers");
      case kUniform:
      case kStorageBuffer:
        return check_binding(variable);
      default:
        return {};
    }
  }

  Status check_binding(const Variable& variable) {
    const auto set = number(sets_, variable.id);
    const auto binding = number(bindings_, variable.id);
    if (!binding || set.value_or(0) != 0)
      return invalid(fmt::format("buffer %{} is at {}; all are at bindings of set 0", variable.id,
                                 binding ? fmt::format("set {}, binding {}", *set, *binding) : "no binding"));
    const bool is_storage = variable.storage == kStorageBuffer || storage_blocks_.contains(variable.type);
    if (is_storage && (*binding < kOutputBinding || *binding >= kFirstInputBinding + inputs_))
      return invalid(fmt::format("it binds a buffer at {}; the result is at {} and {} input{} from {} on", *binding,
                                 kOutputBinding, inputs_, inputs_ == 1 ? "" : "s", kFirstInputBinding));
    if (!is_storage && *binding >= kOutputBinding)
      return invalid(fmt::format("it binds a uniform block at {}; the call is at {} and its parameters at {}", *binding,
                                 kCallBinding, kParametersBinding));
    const std::uint64_t most = *binding == kCallBinding ? kCallBlockBytes : sizeof(Parameters);
    if (!is_storage && size_of(variable.type) > most)
      return invalid(fmt::format("the block at binding {} has more than {} bytes", *binding, most));
    bound_.insert(*binding);
    return {};
  }

  std::uint32_t inputs_;
  SpirvNeeds needs_;
  std::size_t at_ = 0;  // the word of the current instruction
  std::span<const std::uint32_t> operands_;
  std::optional<std::uint32_t> entry_point_;
  // By id:
  std::map<std::uint32_t, std::uint32_t> bindings_;
  std::map<std::uint32_t, std::uint32_t> sets_;
  std::map<std::uint32_t, std::uint32_t> spec_ids_;
  std::map<std::uint32_t, std::uint32_t> built_ins_;
  std::map<std::uint32_t, std::uint32_t> strides_;
  std::map<std::uint32_t, std::uint32_t> constants_;
  std::map<std::uint32_t, std::uint64_t> sizes_;  // of types, in bytes
  std::map<std::uint32_t, Pointer> pointers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> member_offsets_;
  std::set<std::uint32_t> storage_blocks_;
  std::vector<Variable> variables_;
  std::set<std::uint32_t> bound_;
};

}  // namespace

Result<SpirvNeeds> check_spirv(std::span<const std::uint32_t> words, std::uint32_t inputs) {
  return Module(inputs).read(words);
}

std::string needs_refusal(const SpirvNeeds& needs, const ShaderLimits& limits) {
  constexpr std::uint32_t kLargestDepth = 64;  // of a workgroup; guaranteed by Vulkan
  if (needs.group_size() > limits.largest_group || needs.group[2] > kLargestDepth)
    return fmt::format("its workgroup has {} x {} x {} invocations, and {} fit", needs.group[0], needs.group[1],
                       needs.group[2], limits.largest_group);
  if (needs.shared_bytes > limits.shared_bytes)
    return fmt::format("a workgroup shares {} bytes, and {} fit", needs.shared_bytes, limits.shared_bytes);
  if (needs.f16 && !limits.has_f16) return "it computes in F16, which the device does not support";
  if (needs.integer_dot && !limits.has_integer_dot)
    return "it uses integer dot products, which the device does not support";
  if (needs.subgroups && limits.smallest_subgroup == 0) return "it uses subgroups, which the device does not support";
  return {};
}

}  // namespace shunt
