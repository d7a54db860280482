#include "devices/gl/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "devices/shaders/gl_names.h"

namespace shunt::gl {
namespace {

// A lost context may return errors endlessly.
constexpr int kMostErrors = 16;
constexpr GLuint kUuidBytes = 16;

struct ApiRow {
  std::string_view name;  // for messages
  EglEnum egl;
  int version;  // the least required, as 10 * major + minor
};
const ApiRow& row_of(Api api) {
  static constexpr ApiRow kRows[] = {{"OpenGL", kEglOpenGl, 43}, {"OpenGL ES", kEglOpenGlEs, 31}};
  return kRows[static_cast<std::size_t>(api)];
}

std::string text_of(const GLubyte* text) {
  return text == nullptr ? "unknown" : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace

std::string_view name_of(Api api) { return api == Api::gl ? "gl" : "gles"; }

ShaderLanguage language_of(Api api) { return api == Api::gl ? ShaderLanguage::glsl430 : ShaderLanguage::essl310; }

std::string_view source_of(const Shader& shader, Api api) { return api == Api::gl ? shader.glsl430 : shader.essl310; }

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<const Egl> egl, const Display& display, Api api,
                                                 const Adjust& adjust) {
  std::shared_ptr<Context> context(new Context(std::move(egl), display.handle, api));
  if (Status started = context->start(); !started)
    return fail(Code::unsupported, fmt::format("{}: {}", display.name, started.error().message));
  if (adjust) adjust(context->functions_);
  return context;
}

Status Context::start() {
  const EglFunctions& egl = egl_->call();
  if (egl.Initialize(display_, nullptr, nullptr) == 0)
    return egl_error(egl, "a driver is needed (libgl1-mesa-dri or the vendor's); eglInitialize");
  const char* const extensions = egl.QueryString(display_, kEglExtensions);
  if (!lists(extensions, "EGL_KHR_no_config_context") && !lists(extensions, "EGL_MESA_configless_context"))
    return fail(Code::unsupported, "it has no contexts without a configuration (EGL_KHR_no_config_context)");
  if (!lists(extensions, "EGL_KHR_surfaceless_context"))
    return fail(Code::unsupported, "it has no contexts without a surface (EGL_KHR_surfaceless_context)");
  SHUNT_TRY(create_handle());
  SHUNT_TRY_ASSIGN(functions_, egl_->functions());
  const Current current(*this);
  SHUNT_TRY(current.status());
  return describe();
}

Status Context::create_handle() {
  const EglFunctions& egl = egl_->call();
  const ApiRow& row = row_of(api_);
  const EglEnum api_before = egl.QueryAPI();
  if (egl.BindAPI(row.egl) == 0) return egl_error(egl, fmt::format("this EGL has no {}: eglBindAPI", row.name));
  std::vector<EglInt> attributes = {kEglContextMajorVersion, row.version / 10, kEglContextMinorVersion,
                                    row.version % 10};
  if (api_ == Api::gl) attributes.insert(attributes.end(), {kEglContextProfileMask, kEglCoreProfile});
  // Tries first for a context that reports resets, which not every driver supports.
  for (const bool tells : {true, false}) {
    std::vector<EglInt> all = attributes;
    const EglInt notification = api_ == Api::gl ? kEglResetNotificationKhr : kEglResetNotificationExt;
    if (tells) all.insert(all.end(), {notification, kEglLoseContextOnReset});
    all.push_back(kEglNone);
    handle_ = egl.CreateContext(display_, nullptr, nullptr, all.data());
    if (handle_ != nullptr) break;
  }
  Status made;
  if (handle_ == nullptr)
    made = egl_error(egl, fmt::format("{} {}.{} is needed, and eglCreateContext answered", row.name, row.version / 10,
                                      row.version % 10));
  static_cast<void>(egl.BindAPI(api_before));
  return made;
}

Status Context::describe() {
  version_ = 10 * integer(kMajorVersion) + integer(kMinorVersion);
  for (GLint i = 0; i < integer(kExtensionCount); ++i)
    extensions_.push_back(text_of(functions_.GetStringi(kExtensions, static_cast<GLuint>(i))));
  drop_what_is_not_there();
  description_.renderer = text_of(functions_.GetString(kRenderer));
  description_.vendor = text_of(functions_.GetString(kVendor));
  description_.driver = text_of(functions_.GetString(kVersion));
  description_.version = fmt::format("{} {}.{}", row_of(api_).name, version_ / 10, version_ % 10);

  GLint64 block_bytes = 0;
  functions_.GetInteger64v(kStorageBlockBytes, &block_bytes);
  description_.limits.shader.language = language_of(api_);
  description_.limits.shader.on_cpu = is_software_renderer(description_.renderer);
  description_.limits.shader.largest_binding_bytes = static_cast<std::uint64_t>(std::max<GLint64>(0, block_bytes));
  description_.limits.storage_alignment_bytes =
      static_cast<std::uint64_t>(std::max(4, integer(kStorageBufferAlignment)));
  description_.limits.uniform_alignment_bytes =
      static_cast<std::uint64_t>(std::max(16, integer(kUniformBufferAlignment)));
  if (functions_.GetUnsignedBytei_vEXT != nullptr) {
    std::array<GLubyte, kUuidBytes> uuid{};
    functions_.GetUnsignedBytei_vEXT(kDeviceUuid, 0, uuid.data());
    if (functions_.GetError() == kNoError)
      for (const GLubyte byte : uuid) description_.uuid += fmt::format("{:02x}", byte);
  }
  description_.shared_memory_bytes = static_cast<std::uint64_t>(std::max(0, integer(kComputeSharedBytes)));
  description_.largest_workgroup = static_cast<std::uint32_t>(std::max(0, integer(kComputeInvocations)));
  description_.features = {DeviceFeature::atomics, DeviceFeature::shared_memory};
  description_.features.insert(DeviceFeature::fp64, api_ == Api::gl && version_ >= 40);
  description_.features.insert(DeviceFeature::timestamps, api_ == Api::gl || has("GL_EXT_disjoint_timer_query"));
  description_.features.insert(DeviceFeature::subgroups, has("GL_KHR_shader_subgroup"));
  description_.features.insert(DeviceFeature::fp16, has("GL_AMD_gpu_shader_half_float"));
  counts_memory_ = has("GL_NVX_gpu_memory_info");
  if (counts_memory_) {
    description_.has_own_memory = integer(kDedicatedMemoryKib) > 0;
    description_.memory_bytes = static_cast<std::uint64_t>(std::max(0, integer(kTotalMemoryKib))) << 10U;
  }
  SHUNT_TRY(check("asking for limits"));
  const auto blocks = static_cast<std::uint32_t>(std::max(0, integer(kComputeStorageBlocks)));
  const auto bindings = static_cast<std::uint32_t>(std::max(0, integer(kStorageBufferBindings)));
  if (blocks < kMaxShaderOperands || bindings < kShaderBindings)
    return fail(Code::unsupported,
                fmt::format("{} has {} storage blocks at {} bindings, and kernels need {} at {}", description_.renderer,
                            blocks, bindings, kMaxShaderOperands, kShaderBindings));
  return {};
}

bool Context::has(std::string_view extension) const {
  return std::ranges::find(extensions_, extension) != extensions_.end();
}

GLint Context::integer(GLenum name) const {
  GLint value = 0;
  functions_.GetIntegerv(name, &value);
  return value;
}

void Context::drop_what_is_not_there() {
  const bool desktop = api_ == Api::gl;
  if (!desktop) functions_.GetBufferSubData = nullptr;
  if (!desktop) functions_.ClearBufferData = nullptr;
  if (!has("GL_EXT_memory_object")) functions_.GetUnsignedBytei_vEXT = nullptr;
  const char* reset = nullptr;
  if (version_ >= (desktop ? 45 : 32) || (desktop && has("GL_KHR_robustness")))
    reset = "glGetGraphicsResetStatus";
  else if (has("GL_KHR_robustness"))
    reset = "glGetGraphicsResetStatusKHR";
  else if (has("GL_EXT_robustness"))
    reset = "glGetGraphicsResetStatusEXT";
  else if (has("GL_ARB_robustness"))
    reset = "glGetGraphicsResetStatusARB";
  functions_.GetGraphicsResetStatus = reset == nullptr ? nullptr : egl_->function<GLenum (*)()>(reset);
}

Context::~Context() {
  if (handle_ != nullptr) static_cast<void>(egl_->call().DestroyContext(display_, handle_));
}

Status Context::check(std::string_view what) const {
  const GLenum first = functions_.GetError();
  if (first == kNoError) return {};
  for (int i = 0; i < kMostErrors && functions_.GetError() != kNoError; ++i) {
  }
  return gl_error(first, what);
}

Status Context::check_alive() const {
  if (functions_.GetGraphicsResetStatus == nullptr || functions_.GetGraphicsResetStatus() == kNoError) return {};
  return fail(Code::device_lost, fmt::format("{} was reset by its driver", description_.renderer));
}

std::optional<std::uint64_t> Context::memory_available() const {
  if (!counts_memory_) return std::nullopt;
  const Current current(*this);
  if (!current.status()) return std::nullopt;
  return static_cast<std::uint64_t>(std::max(0, integer(kAvailableMemoryKib))) << 10U;
}

Current::Current(const Context& context) : egl_(context.egl_->call()), context_(context) {
  context_before_ = egl_.GetCurrentContext();
  if (context_before_ == context.handle_) return;
  display_before_ = egl_.GetCurrentDisplay();
  draw_before_ = egl_.GetCurrentSurface(kEglDraw);
  read_before_ = egl_.GetCurrentSurface(kEglRead);
  taken_ = egl_.MakeCurrent(context.display_, nullptr, nullptr, context.handle_) != 0;
  if (!taken_) status_ = egl_error(egl_, "eglMakeCurrent");
}

Current::~Current() {
  if (!taken_) return;
  if (context_before_ == nullptr)
    static_cast<void>(egl_.MakeCurrent(context_.display_, nullptr, nullptr, nullptr));
  else
    static_cast<void>(egl_.MakeCurrent(display_before_, draw_before_, read_before_, context_before_));
}

}  // namespace shunt::gl
