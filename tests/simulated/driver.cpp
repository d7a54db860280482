// A simulated driver of CUDA and HIP: memory is the host's, and kernels run on the CPU, one after the other.
//
// Built as libsimulated_amd.so, it has no kernels, and its GPU is the one of AMD's that SHUNT_SIMULATED_GFX names.
// SHUNT_SIMULATED_GPUS is the number of GPUs, 1 by default: each copies from the others what these share with it.
// It keeps the essentials of the real ones. Streams advance later than asked (here: on the second query) and wait for
// each other, and graphs are recorded and launched. Kernel faults show up late, and then in every call. Handles must be
// destroyed, and copies must stay within allocations.
#include "devices/cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/cuda_call.h"
#include "simulated/block.h"
#include "simulated/control.h"

namespace shunt::simulated {
namespace {

using KernelFunction = void (*)(const CudaCall* call, CudaShares shares, CudaCopies copies);

using namespace cuda;  // handles and addresses

// Any of the driver's handles, as what it points to here.
using Handle = void*;

constexpr int kOk = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidImage = 200;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kNotSupported = 801;
constexpr int kAlreadyRegistered = 712;
constexpr int kUnjoined = 904;
constexpr std::uint64_t kMemoryBytes = std::uint64_t{2} << 30U;

struct Work {
  enum class Kind : std::uint8_t { copy, fill, kernel, wait } kind;
  Address to = 0;
  Address from = 0;
  std::uint64_t bytes = 0;
  unsigned char value = 0;
  std::uint32_t threads = 0;  // of a block
  KernelFunction kernel = nullptr;
  CudaShares shares;
  CudaCopies copies;
  Handle stream = nullptr;                                          // to wait for
  std::uint64_t position = 0;                                       // in that stream
  std::shared_ptr<const std::vector<std::byte>> content = nullptr;  // of memory that is not pinned, at the call
};
struct Graph {
  std::vector<Work> work;
};
struct Stream {
  int device = 0;
  std::deque<Work> waiting;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
  bool asked = false;  // since work was last submitted
  Graph* recording = nullptr;
  std::uint64_t recorded = 0;  // of this recording
  std::uint64_t joined = 0;    // how much of it another stream of the recording waited for
};
struct Recorded {
  Stream* stream = nullptr;
  std::uint64_t position = 0;
  Graph* recording = nullptr;
  std::uint64_t recorded = 0;
};
struct Module {
  std::string_view image;
};
struct Allocation {
  int device = 0;
  std::vector<std::byte> content;
};

constexpr int kMostDevices = 8;
// The device of the context that this thread has entered.
thread_local int current_device = 0;

int device_count() {
  const char* const count = std::getenv("SHUNT_SIMULATED_GPUS");
  return count == nullptr ? 1 : std::clamp(count[0] - '0', 1, kMostDevices);
}

template <class T>
T* pointer(Address address) {
  return reinterpret_cast<T*>(address);  // the driver API passes addresses as numbers
}
Address address(const void* memory) { return reinterpret_cast<Address>(memory); }

class Driver {
 public:
  std::mutex mutex;
  Fault fault = Fault::none;
  int broken = kOk;
  std::uint64_t contexts = 0;
  std::uint64_t launches = 0;
  std::uint64_t graphs_made = 0;
  std::uint64_t kernels = 0;
  std::array<char, kMostDevices> devices{};  // whose addresses are the contexts
  std::set<std::pair<int, int>> shared;      // the device that has the memory, and the one that may read it
  std::map<Address, Allocation> memory;
  std::map<Handle, std::unique_ptr<Stream>> streams;
  std::map<Handle, std::unique_ptr<Recorded>> events;
  std::map<Handle, std::unique_ptr<Graph>> graphs;
  std::map<Handle, std::unique_ptr<Graph>> executables;
  std::map<Handle, std::unique_ptr<Module>> modules;
  std::map<Address, std::vector<std::byte>> pinned;
  std::map<Address, std::uint64_t> registered;  // bytes

  [[nodiscard]] bool is_pinned(Address begin, std::uint64_t bytes) const {
    const auto in = [&](const auto& ranges, const auto& size_of) {
      const auto after = ranges.upper_bound(begin);
      return after != ranges.begin() && begin + bytes <= std::prev(after)->first + size_of(std::prev(after)->second);
    };
    return in(pinned, [](const std::vector<std::byte>& content) { return content.size(); }) ||
           in(registered, [](std::uint64_t size) { return size; });
  }
  [[nodiscard]] std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const auto& [begin, allocation] : memory) bytes += allocation.content.size();
    return bytes;
  }
  [[nodiscard]] bool holds(Address begin, std::uint64_t bytes) const {
    auto after = memory.upper_bound(begin);
    if (after == memory.begin()) return false;
    const auto& [first, allocation] = *std::prev(after);
    return begin - first + bytes <= allocation.content.size();
  }
  // REQUIRES: holds() the address.
  [[nodiscard]] bool may_use(int device, Address begin) const {
    const int owner = std::prev(memory.upper_bound(begin))->second.device;
    return owner == device || shared.contains({owner, device});
  }

  int give(Stream& stream, const Work& work) {
    if (stream.recording != nullptr) {
      stream.recording->work.push_back(work);
      ++stream.recorded;
      return kOk;
    }
    stream.waiting.push_back(work);
    ++stream.given;
    stream.asked = false;
    return kOk;
  }

  // Runs what all streams were given, as freeing memory does.
  void finish() {
    if (fault == Fault::never_done) return;
    for (const auto& [handle, stream] : streams) run_to(*stream, stream->given);
  }

  // Returns whether the stream has passed a position; runs it up to there if it was queried before.
  int query(Stream& stream, std::uint64_t position) {
    if (broken != kOk) return broken;
    if (stream.done >= position) return kOk;
    if (fault == Fault::never_done) return kNotReady;
    if (!stream.asked) {
      stream.asked = true;
      return kNotReady;
    }
    run_to(stream, stream.given);
    return broken;
  }

 private:
  void run_to(Stream& stream, std::uint64_t position) {
    while (stream.done < position && broken == kOk) {
      const Work work = stream.waiting.front();
      stream.waiting.pop_front();
      run(work);
      ++stream.done;
    }
  }
  void run(const Work& work) {
    switch (work.kind) {
      case Work::Kind::fill:
        std::memset(pointer<void>(work.to), work.value, work.bytes);
        return;
      case Work::Kind::copy:
        std::memcpy(pointer<void>(work.to), work.content ? work.content->data() : pointer<const void>(work.from),
                    work.bytes);
        return;
      case Work::Kind::wait:
        if (const auto other = streams.find(work.stream); other != streams.end()) run_to(*other->second, work.position);
        return;
      case Work::Kind::kernel:
        if (fault == Fault::illegal_address || !holds(work.from, sizeof(CudaCall))) {
          fault = Fault::none;
          broken = kIllegalAddress;
          return;
        }
        ++kernels;
        run_blocks([&work] { work.kernel(pointer<const CudaCall>(work.from), work.shares, work.copies); }, work.bytes,
                   work.threads);
    }
  }
};

Driver& driver() {
  static Driver instance;
  return instance;
}

// Each driver call holds the lock and first checks that the context still works.
class Call {
 public:
  Call() : lock_(driver().mutex) {}
  [[nodiscard]] int state() const { return driver().broken; }

 private:
  std::scoped_lock<std::mutex> lock_;
};

template <class T>
T* find(std::map<Handle, std::unique_ptr<T>>& objects, Handle handle) {
  const auto found = objects.find(handle);
  return found == objects.end() ? nullptr : found->second.get();
}
template <class T>
Handle keep(std::map<Handle, std::unique_ptr<T>>& objects, std::unique_ptr<T> object) {
  T* const handle = object.get();
  objects.emplace(handle, std::move(object));
  return handle;
}
template <class T>
int destroy(std::map<Handle, std::unique_ptr<T>>& objects, Handle handle) {
  return objects.erase(handle) == 1 ? kOk : kInvalidHandle;
}

KernelFunction kernel_named(const char* name) {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&kernel_named), &self) == 0) return nullptr;
  void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const symbol = dlsym(library, name);
  static_cast<void>(dlclose(library));
  return reinterpret_cast<KernelFunction>(symbol);
}

std::uint64_t live_objects() {
  const Call call;
  const Driver& all = driver();
  return all.contexts + all.memory.size() + all.streams.size() + all.events.size() + all.graphs.size() +
         all.executables.size() + all.modules.size() + all.pinned.size() + all.registered.size();
}

}  // namespace

extern "C" {

void shunt_driver_is_simulated() {}
#if !defined(SHUNT_SIMULATED_AMD)
void shunt_driver_takes_ptx() {}
#endif

const Control* shunt_simulated_control() {
  static constexpr Control kControl = {[](Fault fault) {
                                         const Call call;
                                         driver().fault = fault;
                                       },
                                       live_objects,
                                       [] {
                                         const Call call;
                                         return driver().launches;
                                       },
                                       [] {
                                         const Call call;
                                         return driver().graphs_made;
                                       },
                                       [] {
                                         const Call call;
                                         return driver().kernels;
                                       }};
  return &kControl;
}

int simulated_init(unsigned) {
  const Call call;
  return driver().fault == Fault::no_device ? kNoDevice : kOk;
}
int simulated_driver_version(int* version) {
  *version = 12000;
  return kOk;
}
int simulated_device_count(int* count) {
  *count = device_count();
  return kOk;
}
int simulated_device(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < device_count() ? kOk : kInvalidValue;
}
int simulated_device_name(char* name, int bytes, int) {
  std::strncpy(name, "simulated on the CPU", static_cast<std::size_t>(bytes));
  return kOk;
}
int simulated_device_uuid(std::uint8_t* uuid, int device) {
  for (std::uint8_t i = 0; i < 16; ++i) uuid[i] = i;
  uuid[0] = static_cast<std::uint8_t>(device);
  return kOk;
}
int simulated_device_memory(std::size_t* bytes, int) {
  *bytes = kMemoryBytes;
  return kOk;
}
// Numbers of CUDA's and HIP's attributes: a GPU of compute capability 9.0 with few multiprocessors.
int simulated_device_attribute(int* value, int attribute, int) {
  constexpr int kMultiprocessors[] = {16, 63};
  constexpr int kCapabilityMajor[] = {75, 23};
  constexpr int kCapabilityMinor[] = {76, 61};
  constexpr int kMostSharedBytes[] = {97, 74};
  constexpr int kSharedBytes[] = {8};
  const auto is_one_of = [attribute](std::span<const int> numbers) {
    return std::ranges::find(numbers, attribute) != numbers.end();
  };
  *value = is_one_of(kMostSharedBytes)   ? 227 * 1024
           : is_one_of(kSharedBytes)     ? 48 * 1024
           : is_one_of(kMultiprocessors) ? 5
           : is_one_of(kCapabilityMajor) ? 9
           : is_one_of(kCapabilityMinor) ? 0
                                         : 1;
  return kOk;
}
int simulated_properties(void* properties, int) {
  const char* const gfx = std::getenv("SHUNT_SIMULATED_GFX");
  if (gfx == nullptr) return kNotFound;
  auto& known = *static_cast<HipProperties*>(properties);
  std::strncpy(known.gfx, gfx, sizeof(known.gfx) - 1);
  return kOk;
}
int simulated_context_retain(ContextHandle* context, int device) {
  const Call call;
  ++driver().contexts;
  *context = reinterpret_cast<ContextHandle>(&driver().devices[static_cast<std::size_t>(device)]);
  return kOk;
}
int simulated_context_release(int) {
  const Call call;
  Driver& all = driver();
  if (all.contexts == 0) return kInvalidHandle;
  if (--all.contexts == 0) {  // a new context works again
    all.broken = kOk;
    all.memory.clear();
    all.shared.clear();
    all.modules.clear();
    all.executables.clear();
  }
  return kOk;
}
int simulated_context_enter(ContextHandle context) {
  const std::ptrdiff_t device = reinterpret_cast<const char*>(context) - driver().devices.data();
  if (device < 0 || device >= device_count()) return kInvalidHandle;
  current_device = static_cast<int>(device);
  return kOk;
}

int simulated_memory_info(std::size_t* available, std::size_t* total) {
  const Call call;
  *total = kMemoryBytes;
  *available = kMemoryBytes - driver().used();
  return call.state();
}
int simulated_memory_allocate(Address* memory, std::size_t bytes) {
  const Call call;
  Driver& all = driver();
  if (call.state() != kOk) return call.state();
  if (bytes == 0) return kInvalidValue;
  if (all.fault == Fault::out_of_memory || all.used() + bytes > kMemoryBytes) return kOutOfMemory;
  std::vector<std::byte> content(bytes, std::byte{0xCD});
  *memory = address(content.data());
  all.memory.emplace(*memory, Allocation{.device = current_device, .content = std::move(content)});
  return kOk;
}
int simulated_memory_free(Address memory) {
  const Call call;
  if (call.state() != kOk) return call.state();
  driver().finish();
  return driver().memory.erase(memory) == 1 ? kOk : kInvalidValue;
}
int simulated_pool_allocate(Address* memory, std::size_t bytes, StreamHandle) {
  return simulated_memory_allocate(memory, bytes);
}
int simulated_pool_free(Address memory, StreamHandle) {
  const Call call;
  if (call.state() != kOk) return call.state();
  return driver().memory.erase(memory) == 1 ? kOk : kInvalidValue;
}
int simulated_default_pool(PoolHandle* pool, int device) {
  *pool = reinterpret_cast<PoolHandle>(&driver().devices[static_cast<std::size_t>(device)]);
  return kOk;
}
int simulated_pool_share(PoolHandle pool, const PoolAccess* access, std::size_t count) {
  const Call call;
  if (driver().fault == Fault::cannot_share) return kNotSupported;
  const std::ptrdiff_t owner = reinterpret_cast<const char*>(pool) - driver().devices.data();
  for (std::size_t i = 0; i < count; ++i) driver().shared.emplace(static_cast<int>(owner), access[i].device);
  return call.state();
}
int simulated_can_access_peer(int* can, int device, int peer) {
  *can = device != peer ? 1 : 0;
  return kOk;
}

int simulated_host_register(void* memory, std::size_t bytes, unsigned) {
  const Call call;
  if (call.state() != kOk) return call.state();
  if (driver().fault == Fault::cannot_register) return kNotSupported;
  const Address begin = address(memory);
  auto& all = driver().registered;
  const auto next = all.lower_bound(begin);
  const bool overlaps = (next != all.end() && next->first < begin + bytes) ||
                        (next != all.begin() && std::prev(next)->first + std::prev(next)->second > begin);
  if (overlaps) return kAlreadyRegistered;
  all.emplace(begin, bytes);
  return kOk;
}
int simulated_host_unregister(void* memory) {
  const Call call;
  return driver().registered.erase(address(memory)) == 1 ? kOk : kInvalidValue;
}
int simulated_host_allocate(void** memory, std::size_t bytes, unsigned) {
  const Call call;
  if (call.state() != kOk) return call.state();
  std::vector<std::byte> content(bytes, std::byte{0xCD});
  *memory = content.data();
  driver().pinned.emplace(address(*memory), std::move(content));
  return kOk;
}
int simulated_host_free(void* memory) {
  const Call call;
  driver().finish();
  return driver().pinned.erase(address(memory)) == 1 ? kOk : kInvalidValue;
}

int simulated_fill(Address to, unsigned char value, std::size_t bytes, StreamHandle stream) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || !driver().holds(to, bytes)) return kInvalidValue;
  return driver().give(*found, {.kind = Work::Kind::fill, .to = to, .bytes = bytes, .value = value});
}
int simulated_copy_to_device(Address to, const void* from, std::size_t bytes, StreamHandle stream) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || !driver().holds(to, bytes)) return kInvalidValue;
  Work work{.kind = Work::Kind::copy, .to = to, .from = address(from), .bytes = bytes};
  if (!driver().is_pinned(work.from, bytes)) {
    const auto* const begin = static_cast<const std::byte*>(from);
    work.content = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
  }
  return driver().give(*found, work);
}
int simulated_copy_to_host(void* to, Address from, std::size_t bytes, StreamHandle stream) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || !driver().holds(from, bytes)) return kInvalidValue;
  return driver().give(*found, {.kind = Work::Kind::copy, .to = address(to), .from = from, .bytes = bytes});
}

int simulated_copy_within(Address to, Address from, std::size_t bytes, StreamHandle stream) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || !driver().holds(from, bytes) || !driver().holds(to, bytes)) return kInvalidValue;
  if (!driver().may_use(found->device, from) || !driver().may_use(found->device, to)) return kInvalidValue;
  return driver().give(*found, {.kind = Work::Kind::copy, .to = to, .from = from, .bytes = bytes});
}

int simulated_stream_create(StreamHandle* stream, unsigned, int) {
  const Call call;
  *stream = static_cast<StreamHandle>(keep(driver().streams, std::make_unique<Stream>(current_device)));
  return call.state();
}
int simulated_stream_destroy(StreamHandle stream) {
  const Call call;
  return destroy(driver().streams, stream);
}
int simulated_stream_query(StreamHandle stream) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  return found == nullptr ? kInvalidHandle : driver().query(*found, found->given);
}

int simulated_stream_wait(StreamHandle stream, EventHandle event, unsigned) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  const Recorded* const recorded = find(driver().events, event);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || recorded == nullptr) return kInvalidHandle;
  if (recorded->recording == nullptr)
    return driver().give(*found,
                         {.kind = Work::Kind::wait, .stream = recorded->stream, .position = recorded->position});
  if (found->recording == nullptr) {
    found->recording = recorded->recording;
    found->recorded = 0;
    found->joined = 0;
  }
  if (found->recording != recorded->recording) return kInvalidValue;
  recorded->stream->joined = std::max(recorded->stream->joined, recorded->recorded);
  return kOk;
}
int simulated_capture_begin(StreamHandle stream, int) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || found->recording != nullptr) return kInvalidValue;
  auto graph = std::make_unique<Graph>();
  found->recording = graph.get();
  keep(driver().graphs, std::move(graph));
  return kOk;
}
int simulated_capture_end(StreamHandle stream, GraphHandle* graph) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (found == nullptr || found->recording == nullptr) return kInvalidValue;
  Graph* const recorded = std::exchange(found->recording, nullptr);
  *graph = reinterpret_cast<GraphHandle>(recorded);
  for (const auto& [handle, other] : driver().streams) {
    if (other->recording != recorded) continue;
    other->recording = nullptr;
    if (other->joined < other->recorded) return kUnjoined;
  }
  return call.state();
}
int simulated_graph_instantiate(ExecutableHandle* executable, GraphHandle graph, unsigned long long) {
  const Call call;
  const Graph* const found = find(driver().graphs, graph);
  if (call.state() != kOk) return call.state();
  if (found == nullptr) return kInvalidHandle;
  *executable = static_cast<ExecutableHandle>(keep(driver().executables, std::make_unique<Graph>(*found)));
  ++driver().graphs_made;
  return kOk;
}
int simulated_graph_launch(ExecutableHandle executable, StreamHandle stream) {
  const Call call;
  const Graph* const found = find(driver().executables, executable);
  Stream* const on = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || on == nullptr || on->recording != nullptr) return kInvalidHandle;
  for (const Work& work : found->work) static_cast<void>(driver().give(*on, work));
  ++driver().launches;
  return kOk;
}
int simulated_graph_destroy(GraphHandle graph) {
  const Call call;
  return destroy(driver().graphs, graph);
}
int simulated_executable_destroy(ExecutableHandle executable) {
  const Call call;
  return destroy(driver().executables, executable);
}

int simulated_module_load(ModuleHandle* module, const void* image) {
  const Call call;
  if (call.state() != kOk) return call.state();
  const std::string_view text(static_cast<const char*>(image));
  if (driver().fault == Fault::bad_image || text.find(".target sm_") == std::string_view::npos) return kInvalidImage;
  *module = static_cast<ModuleHandle>(keep(driver().modules, std::make_unique<Module>(Module{text})));
  return kOk;
}
int simulated_module_unload(ModuleHandle module) {
  const Call call;
  if (call.state() != kOk) return call.state();
  return destroy(driver().modules, module);
}
int simulated_module_function(FunctionHandle* function, ModuleHandle module, const char* name) {
  const Call call;
  const Module* const found = find(driver().modules, module);
  if (call.state() != kOk) return call.state();
  if (found == nullptr) return kInvalidHandle;
  const std::string entry = std::string(".entry ") + name + "(";
  if (found->image.find(entry) == std::string_view::npos) return kNotFound;
  *function = reinterpret_cast<FunctionHandle>(kernel_named(name));
  return *function == nullptr ? kNotFound : kOk;
}
int simulated_function_attribute(FunctionHandle function, int, int) {
  return function == nullptr ? kInvalidHandle : kOk;
}
int simulated_launch(FunctionHandle function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                     unsigned threads_y, unsigned threads_z, unsigned, StreamHandle stream, void** arguments,
                     void** extra) {
  const Call call;
  Stream* const found = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || extra != nullptr || threads == 0 || threads > kMostBlockThreads || threads_y * threads_z != 1)
    return kInvalidValue;
  if (blocks == 0 || blocks > 0x7FFFFFFFU || blocks_y * blocks_z != 1) return kInvalidValue;
  Address block = 0;
  std::memcpy(&block, arguments[0], sizeof(block));
  CudaShares shares;
  std::memcpy(&shares, arguments[1], sizeof(shares));
  CudaCopies copies;
  std::memcpy(&copies, arguments[2], sizeof(copies));
  return driver().give(*found, {.kind = Work::Kind::kernel,
                                .from = block,
                                .bytes = blocks,
                                .threads = threads,
                                .kernel = reinterpret_cast<KernelFunction>(function),
                                .shares = shares,
                                .copies = copies});
}

int simulated_launch_with(const LaunchConfig* config, FunctionHandle function, void** arguments, void** extra) {
  if (config->attribute_count != 1 || config->attributes->id != kStartsEarly) return kInvalidValue;
  return simulated_launch(function, config->blocks, config->blocks_y, config->blocks_z, config->threads,
                          config->threads_y, config->threads_z, config->shared_bytes, config->stream, arguments, extra);
}

int simulated_event_create(EventHandle* event, unsigned) {
  const Call call;
  *event = static_cast<EventHandle>(keep(driver().events, std::make_unique<Recorded>()));
  return call.state();
}
int simulated_event_destroy(EventHandle event) {
  const Call call;
  return destroy(driver().events, event);
}
int simulated_event_record(EventHandle event, StreamHandle stream) {
  const Call call;
  Recorded* const found = find(driver().events, event);
  Stream* const on = find(driver().streams, stream);
  if (call.state() != kOk) return call.state();
  if (found == nullptr || on == nullptr) return kInvalidHandle;
  *found = {on, on->given, on->recording, on->recorded};
  return kOk;
}
int simulated_event_query(EventHandle event) {
  const Call call;
  const Recorded* const found = find(driver().events, event);
  if (found == nullptr) return kInvalidHandle;
  return found->stream == nullptr ? call.state() : driver().query(*found->stream, found->position);
}
// Counts a microsecond for each piece of work between the events.
int simulated_event_elapsed(float* milliseconds, EventHandle begin, EventHandle end) {
  const Call call;
  const Recorded* const from = find(driver().events, begin);
  const Recorded* const to = find(driver().events, end);
  if (call.state() != kOk) return call.state();
  if (from == nullptr || to == nullptr || from->stream == nullptr || from->stream != to->stream) return kInvalidHandle;
  if (to->stream->done < to->position) return kNotReady;
  *milliseconds = static_cast<float>(to->position - from->position) * 1e-3F;
  return kOk;
}

// Exports one function under both names.
// NOLINTBEGIN(readability-identifier-naming): the names are the APIs'
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments) \
  int cuda parameters __attribute__((alias("simulated_" #member))); \
  int hip parameters __attribute__((alias("simulated_" #member)));
#include "devices/cuda/calls.def"
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

}  // namespace shunt::simulated
