// A simulated Metal: memory is the host's, and kernels run on the CPU, one command buffer after the other.
//
// It keeps the essentials of the real one. A command buffer retains its bindings until it ends, it ends later than
// asked (here: on the second query), and errors come with its status. Beyond this flow of calls it says nothing about
// Metal on Apple's machines.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "simulated/metal_control.h"
#include "simulated/msl_kernel.h"
#include "simulated/objective_c.h"

namespace shunt::simulated {

#define SHUNT_MSL_KERNEL(name) extern const MslKernel name##_msl_kernel;
#include "msl_kernels.def"
#undef SHUNT_MSL_KERNEL

namespace {

using metal::Size;

constexpr std::uint64_t kMemoryBytes = std::uint64_t{2} << 30U;
constexpr std::uint64_t kUnsigned = 33;  // MTLDataTypeUInt
// MTLCommandBufferStatus.
constexpr std::uint64_t kNotEnqueued = 0;
constexpr std::uint64_t kCommitted = 2;
constexpr std::uint64_t kScheduled = 3;
constexpr std::uint64_t kCompleted = 4;
constexpr std::uint64_t kFailed = 5;
// MTLCommandBufferError codes after which the device is gone.
constexpr std::int64_t kAccessRevoked = 4;
constexpr std::int64_t kDeviceRemoved = 11;

// Returns the kernel with this source, or null.
const MslKernel* kernel_of(std::string_view source) {
  static const std::vector<const MslKernel*> kKernels = {
#define SHUNT_MSL_KERNEL(name) &name##_msl_kernel,
#include "msl_kernels.def"
#undef SHUNT_MSL_KERNEL
  };
  const auto found = std::ranges::find(kKernels, source, [](const MslKernel* kernel) { return kernel->source; });
  return found == kKernels.end() ? nullptr : *found;
}

std::atomic<std::uint64_t>& allocated() {
  static std::atomic<std::uint64_t> bytes{0};
  return bytes;
}

struct String : Instance {
  explicit String(std::string_view content) : Instance("NSString"), text(content) {}
  std::string text;
};
struct Array : Instance {
  Array() : Instance("NSArray") {}
  std::vector<Held<Instance>> objects;
};
struct Failure : Instance {
  Failure(std::int64_t number, std::string_view words) : Instance("NSError"), code(number), text(words) {}
  std::int64_t code;
  std::string text;
};
struct Options : Instance {
  Options() : Instance("MTLCompileOptions") {}
  bool fast = true;
  std::uint64_t version = 0;
};
struct Memory : Instance {
  explicit Memory(std::uint64_t size) : Instance("MTLBuffer"), bytes(size, std::byte{0xCD}) { allocated() += size; }
  ~Memory() override { allocated() -= bytes.size(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::vector<std::byte> bytes;
};
struct Constants : Instance {
  Constants() : Instance("MTLFunctionConstantValues") {}
  MslConstants values{};
};
// A library, one of its functions, or a pipeline.
struct Compiled : Instance {
  Compiled(std::string_view of_class, const MslKernel* compiled, const MslConstants& of_function = {})
      : Instance(of_class), kernel(compiled), constants(of_function) {}
  const MslKernel* kernel;
  MslConstants constants;
};

struct Work {
  struct Bound {
    Held<Memory> memory;
    std::uint64_t offset = 0;
  };
  Held<Compiled> pipeline;
  std::vector<Bound> bound;
  Size groups;

  void run() const {
    MslCall call{.constants = pipeline->constants,
                 .width = static_cast<std::uint32_t>(groups.width),
                 .height = static_cast<std::uint32_t>(groups.height)};
    for (std::size_t index = 0; index < bound.size(); ++index)
      if (bound[index].memory.get() != nullptr)
        call.buffers[index] = bound[index].memory->bytes.data() + bound[index].offset;
    run_blocks([&] { pipeline->kernel->run(call); }, groups.width * groups.height);
  }
};
struct Commands : Instance {
  Commands() : Instance("MTLCommandBuffer") {}
  std::vector<Work> work;
  std::uint64_t status = kNotEnqueued;
  std::int64_t error = 0;
  bool encoding = false;
  bool asked = false;  // since it was committed
};
struct Encoder : Instance {
  explicit Encoder(Commands& to) : Instance("MTLComputeCommandEncoder"), commands(&to), bound(kMetalBuffers) {}
  Held<Commands> commands;
  Held<Compiled> pipeline;
  std::vector<Work::Bound> bound;
};

class Driver {
 public:
  std::mutex mutex;
  MetalFault fault = MetalFault::none;
  std::int64_t code = 0;
  std::int64_t lost = 0;  // the error that all command buffers end with from now on
  std::uint64_t commits = 0;
  bool precise = false;
  std::deque<Held<Commands>> committed;

  // Runs committed command buffers up to `last`, or all if null.
  void run_until(const Commands* last) {
    while (!committed.empty()) {
      const Held<Commands> next = std::move(committed.front());
      committed.pop_front();
      run(*next.get());
      if (next.get() == last) return;
    }
  }

 private:
  void run(Commands& commands) {
    if (fault == MetalFault::command_error) {
      fault = MetalFault::none;
      commands.error = code;
      if (code == kAccessRevoked || code == kDeviceRemoved) lost = code;
    }
    if (lost != 0) commands.error = lost;
    commands.status = commands.error == 0 ? kCompleted : kFailed;
    if (commands.error == 0)
      for (const Work& work : commands.work) work.run();
    commands.work.clear();
  }
};

Driver& driver() {
  static Driver* const kDriver = new Driver;  // command buffers may be released at the end of the process
  return *kDriver;
}

// The methods, named as in messages.def.
struct Methods {
  static Id make_string(Id, Selector, const char* text) { return autorelease(new String(text)); }
  static const char* utf8(Id self, Selector) { return as<String>(self).text.c_str(); }
  static std::uint64_t count(Id self, Selector) { return as<Array>(self).objects.size(); }
  static Id object_at(Id self, Selector, std::uint64_t index) { return as<Array>(self).objects.at(index)->id(); }
  static std::int64_t code(Id self, Selector) { return as<Failure>(self).code; }
  static Id description(Id self, Selector) { return autorelease(new String(as<Failure>(self).text)); }

  static Id new_options(Id, Selector) { return (new Options)->id(); }
  static void set_fast_math(Id self, Selector, bool fast) { as<Options>(self).fast = fast; }
  static void set_language_version(Id self, Selector, std::uint64_t version) { as<Options>(self).version = version; }

  static Id new_constants(Id, Selector) { return (new Constants)->id(); }
  static void set_constant(Id self, Selector, const void* value, std::uint64_t type, std::uint64_t index) {
    auto& values = as<Constants>(self).values;
    if (type != kUnsigned || index >= values.size()) refuse("setConstantValue", "kernels have no such constant");
    std::memcpy(&values[index], value, sizeof(values[index]));
  }

  static Id name(Id, Selector) { return autorelease(new String("Metal on the CPU")); }
  static std::uint64_t registry_id(Id, Selector) { return 1; }
  static bool has_unified_memory(Id, Selector) { return true; }
  static std::uint64_t largest_buffer_bytes(Id, Selector) { return kMemoryBytes / 2; }
  static std::uint64_t working_set_bytes(Id, Selector) { return kMemoryBytes; }
  static std::uint64_t allocated_bytes(Id, Selector) { return allocated(); }
  static Id new_queue(Id, Selector) { return (new Instance("MTLCommandQueue"))->id(); }
  static Id new_buffer(Id, Selector, std::uint64_t bytes, std::uint64_t options) {
    if (options != 0) refuse("newBufferWithLength", "only shared storage is simulated");
    const std::scoped_lock lock(driver().mutex);
    if (driver().fault == MetalFault::no_buffer || bytes == 0 || bytes > kMemoryBytes - allocated()) return nullptr;
    return (new Memory(bytes))->id();
  }
  static Id new_library(Id, Selector, Id source, Id options, Id* error) {
    const std::scoped_lock lock(driver().mutex);
    driver().precise = !as<Options>(options).fast;
    const MslKernel* const found = kernel_of(as<String>(source).text);
    if (found != nullptr && driver().fault != MetalFault::no_library) return (new Compiled("MTLLibrary", found))->id();
    *error = autorelease(new Failure(3, "the simulation has no such kernel"));
    return nullptr;
  }
  static Id new_function(Id self, Selector, Id name, Id constants, Id*) {
    if (as<String>(name).text != "main0") return nullptr;
    return (new Compiled("MTLFunction", as<Compiled>(self).kernel, as<Constants>(constants).values))->id();
  }
  static Id new_pipeline(Id, Selector, Id function, Id*) {
    const auto& from = as<Compiled>(function);
    return (new Compiled("MTLComputePipelineState", from.kernel, from.constants))->id();
  }
  static std::uint64_t most_threads(Id, Selector) { return kBlockThreads; }
  static void* contents(Id self, Selector) { return as<Memory>(self).bytes.data(); }

  static Id command_buffer(Id, Selector) { return autorelease(new Commands); }
  static Id encoder(Id self, Selector) {
    as<Commands>(self).encoding = true;
    return autorelease(new Encoder(as<Commands>(self)));
  }
  static void commit(Id self, Selector) {
    auto& commands = as<Commands>(self);
    if (commands.encoding || commands.status != kNotEnqueued) refuse("commit", "it is being encoded, or committed");
    const std::scoped_lock lock(driver().mutex);
    commands.status = kCommitted;
    driver().committed.emplace_back(&commands);
    ++driver().commits;
  }
  static std::uint64_t status(Id self, Selector) {
    auto& commands = as<Commands>(self);
    const std::scoped_lock lock(driver().mutex);
    if (commands.status != kCommitted) return commands.status;
    if (driver().fault == MetalFault::never_done) return kScheduled;
    if (commands.asked) driver().run_until(&commands);
    commands.asked = true;
    return commands.status;
  }
  static Id error(Id self, Selector) {
    const std::int64_t number = as<Commands>(self).error;
    return number == 0 ? nullptr : autorelease(new Failure(number, "simulated error"));
  }

  static void set_pipeline(Id self, Selector, Id pipeline) {
    as<Encoder>(self).pipeline = Held(&as<Compiled>(pipeline));
  }
  static void set_buffer(Id self, Selector, Id buffer, std::uint64_t offset, std::uint64_t index) {
    auto& memory = as<Memory>(buffer);
    if (index >= kMetalBuffers || offset % 4 != 0 || offset >= memory.bytes.size())
      refuse("setBuffer", "there is no such place");
    as<Encoder>(self).bound[index] = {Held(&memory), offset};
  }
  static void dispatch(Id self, Selector, Size groups, Size threads) {
    auto& encoder = as<Encoder>(self);
    if (encoder.pipeline.get() == nullptr || !encoder.commands->encoding) refuse("dispatch", "there is no pipeline");
    if (threads.width != kBlockThreads || threads.height != 1 || threads.depth != 1 || groups.depth != 1)
      refuse("dispatch", "groups have 64 threads in a row, in a grid of two dimensions");
    Work work{.pipeline = Held(encoder.pipeline.get()), .groups = groups};
    for (const Work::Bound& each : encoder.bound) work.bound.push_back({Held(each.memory.get()), each.offset});
    encoder.commands->work.push_back(std::move(work));
  }
  static void end_encoding(Id self, Selector) { as<Encoder>(self).commands->encoding = false; }
};

// Converts a function of the message's type to a Method.
template <class Type>
struct MethodOf;
template <class Result, class... Parameters>
struct MethodOf<Result(Parameters...)> {
  using Pointer = Result (*)(Id, Selector, Parameters...);
  static Method of(Pointer method) { return reinterpret_cast<Method>(method); }
};

}  // namespace

const std::map<std::pair<std::string_view, std::string_view>, Method>& methods() {
  static const std::map<std::pair<std::string_view, std::string_view>, Method> kMethods = {
#define SHUNT_METAL_MESSAGE(name, selector, receiver, type) {{#receiver, selector}, MethodOf<type>::of(&Methods::name)},
#include "devices/metal/messages.def"
  };
  return kMethods;
}

bool has_class(std::string_view name) {
  return name == "NSString" || name == "MTLCompileOptions" || name == "MTLFunctionConstantValues";
}

extern "C" {

void shunt_metal_is_simulated() {}

const MetalControl* shunt_simulated_metal_control() {
  static constexpr MetalControl kControl = {[](MetalFault fault, std::int64_t code) {
                                              const std::scoped_lock lock(driver().mutex);
                                              if (fault == MetalFault::none) driver().run_until(nullptr);
                                              driver().fault = fault;
                                              driver().code = code;
                                              driver().lost = 0;
                                            },
                                            live_objects,
                                            [] {
                                              const std::scoped_lock lock(driver().mutex);
                                              return driver().commits;
                                            },
                                            [] {
                                              const std::scoped_lock lock(driver().mutex);
                                              return driver().precise;
                                            }};
  return &kControl;
}

// NOLINTBEGIN(readability-identifier-naming): the names are the API's
Id MTLCreateSystemDefaultDevice() {
  const std::scoped_lock lock(driver().mutex);
  return driver().fault == MetalFault::no_device ? nullptr : (new Instance("MTLDevice"))->id();
}
Id MTLCopyAllDevices() {
  auto* const all = new Array;
  if (const Id device = MTLCreateSystemDefaultDevice(); device != nullptr) {
    all->objects.emplace_back(&as<Instance>(device));
    release(&as<Instance>(device));
  }
  return all->id();
}
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

}  // namespace shunt::simulated
