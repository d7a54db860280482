#include "devices/shaders/shader_compiler.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "base/system/shared_library.h"
#include "base/system/subprocess.h"

namespace shunt {
namespace {

constexpr const char* kLibraryVariable = "SHUNT_SHADERC_LIBRARY";
// Names used by Debian, Ubuntu, other distributions and the Vulkan SDK.
constexpr const char* kCompilers[] = {"libshaderc.so.1", "libshaderc_shared.so.1", "libshaderc_shared.so"};
constexpr const char* kValidators[] = {"libSPIRV-Tools-shared.so", "libshaderc.so.1", "libshaderc_shared.so.1",
                                       "libshaderc_shared.so"};

// shaderc/shaderc.h
constexpr int kComputeShader = 2;
constexpr int kTargetVulkan = 0;
constexpr std::uint32_t kVulkan11 = (1U << 22U) | (1U << 12U);
constexpr int kOptimizeForSpeed = 2;
constexpr int kSuccess = 0;

// X(name, result, parameters)
#define SHUNT_SHADERC_CALLS(X)                                                                        \
  X(compiler_initialize, void*, ())                                                                   \
  X(compiler_release, void, (void*))                                                                  \
  X(compile_options_initialize, void*, ())                                                            \
  X(compile_options_release, void, (void*))                                                           \
  X(compile_options_set_target_env, void, (void*, int, std::uint32_t))                                \
  X(compile_options_set_optimization_level, void, (void*, int))                                       \
  X(compile_into_spv, void*, (void*, const char*, std::size_t, int, const char*, const char*, void*)) \
  X(result_get_compilation_status, int, (void*))                                                      \
  X(result_get_error_message, const char*, (void*))                                                   \
  X(result_get_length, std::size_t, (void*))                                                          \
  X(result_get_bytes, const char*, (void*))                                                           \
  X(result_release, void, (void*))

struct Shaderc {
#define SHUNT_MEMBER(function, result, parameters) result(*function) parameters = nullptr;
  SHUNT_SHADERC_CALLS(SHUNT_MEMBER)
#undef SHUNT_MEMBER
};

Result<Shaderc> open_shaderc() {
  SHUNT_TRY_ASSIGN(const SharedLibrary library,
                   SharedLibrary::open(kCompilers, kLibraryVariable,
                                       "it compiles GLSL: on Debian and Ubuntu install glslc, or give SPIR-V"));
  Shaderc calls;
#define SHUNT_FIND(function, result, parameters)                                 \
  calls.function = library.find<decltype(calls.function)>("shaderc_" #function); \
  if (calls.function == nullptr)                                                 \
    return fail(Code::io,                                                        \
                fmt::format("{} has no shaderc_{}; on Debian and Ubuntu install glslc", library.name(), #function));
  SHUNT_SHADERC_CALLS(SHUNT_FIND)
#undef SHUNT_FIND
  return calls;
}

using Handle = std::unique_ptr<void, void (*)(void*)>;

// spirv-tools/libspirv.h
struct Diagnostic {
  std::size_t line;
  std::size_t column;
  std::size_t index;
  char* error;
  bool is_text;
};
struct Validator {
  void* (*create)(int environment) = nullptr;
  void (*destroy)(void*) = nullptr;
  bool (*environment_of)(const char* name, int* environment) = nullptr;
  int (*validate)(const void* context, const std::uint32_t* words, std::size_t count, Diagnostic** why) = nullptr;
  void (*forget)(Diagnostic*) = nullptr;

  [[nodiscard]] bool is_whole() const {
    return create != nullptr && destroy != nullptr && environment_of != nullptr && validate != nullptr &&
           forget != nullptr;
  }
};

Validator open_validator() {
  for (const char* name : kValidators) {
    const auto library = SharedLibrary::open(name, kLibraryVariable, "");
    if (!library) continue;
    const Validator validator{.create = library->find<decltype(Validator::create)>("spvContextCreate"),
                              .destroy = library->find<decltype(Validator::destroy)>("spvContextDestroy"),
                              .environment_of = library->find<decltype(Validator::environment_of)>("spvParseTargetEnv"),
                              .validate = library->find<decltype(Validator::validate)>("spvValidateBinary"),
                              .forget = library->find<decltype(Validator::forget)>("spvDiagnosticDestroy")};
    if (validator.is_whole()) return validator;
  }
  return {};
}

std::unexpected<Error> refuse_lines(std::string lines) {
  while (lines.ends_with('\n')) lines.pop_back();
  return fail(Code::invalid, std::move(lines));
}

std::vector<std::uint32_t> words_of(std::string_view bytes) {
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
  return words;
}

Result<std::vector<std::uint32_t>> compile_with(const Shaderc& call, const std::string& text, const std::string& name) {
  const Handle compiler(call.compiler_initialize(), call.compiler_release);
  const Handle options(call.compile_options_initialize(), call.compile_options_release);
  if (compiler == nullptr || options == nullptr) return fail(Code::internal, "libshaderc does not start");
  call.compile_options_set_target_env(options.get(), kTargetVulkan, kVulkan11);
  call.compile_options_set_optimization_level(options.get(), kOptimizeForSpeed);
  const Handle result(call.compile_into_spv(compiler.get(), text.data(), text.size(), kComputeShader, name.c_str(),
                                            "main", options.get()),
                      call.result_release);
  if (result == nullptr) return fail(Code::internal, "libshaderc gives no result");
  if (call.result_get_compilation_status(result.get()) != kSuccess)
    return refuse_lines(call.result_get_error_message(result.get()));
  return words_of({call.result_get_bytes(result.get()), call.result_get_length(result.get())});
}

Result<std::vector<std::uint32_t>> compile_with_glslc(const std::string& text, const std::string& name) {
  constexpr const char* kArguments[] = {"glslc", "-fshader-stage=compute", "--target-env=vulkan1.1", "-O", "-o", "-",
                                        "-"};
  SHUNT_TRY_ASSIGN(ToolResult result, run_tool(kArguments, text));
  if (result.exit == 0) return words_of(result.output);
  constexpr std::string_view kInput = "<stdin>:";
  for (std::size_t at = 0; (at = result.errors.find(kInput, at)) != std::string::npos; at += name.size())
    result.errors.replace(at, kInput.size(), name + ":");
  return refuse_lines(std::move(result.errors));
}

Status validate_with(const Validator& call, std::span<const std::uint32_t> words) {
  int environment = 0;
  if (!call.environment_of("vulkan1.1", &environment)) return {};
  const Handle context(call.create(environment), call.destroy);
  if (context == nullptr) return {};
  Diagnostic* why = nullptr;
  const int outcome = call.validate(context.get(), words.data(), words.size(), &why);
  std::string text = why == nullptr || why->error == nullptr ? "no reason given" : why->error;
  if (why != nullptr) call.forget(why);
  return outcome == 0 ? Status{} : refuse_lines("SPIR-V does not pass validation: " + std::move(text));
}

Status validate_with_spirv_val(std::span<const std::uint32_t> words) {
  constexpr const char* kArguments[] = {"spirv-val", "--target-env", "vulkan1.1", "-"};
  const auto bytes = std::as_bytes(words);
  const auto result = run_tool(kArguments, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!result || result->exit == 0) return {};
  return refuse_lines("SPIR-V does not pass validation: " + result->errors + result->output);
}

}  // namespace

Result<std::vector<std::uint32_t>> compile_glsl(const std::string& text, const std::string& name) {
  const auto library = open_shaderc();
  if (library) return compile_with(*library, text, name);
  if (SharedLibrary::named_by(kLibraryVariable) == nullptr)
    if (auto words = compile_with_glslc(text, name); words || words.error().code != Code::io) return words;
  return std::unexpected(library.error());
}

Status validate_spirv(std::span<const std::uint32_t> words) {
  const Validator library = open_validator();
  return library.is_whole() ? validate_with(library, words) : validate_with_spirv_val(words);
}

}  // namespace shunt
