#include "shunt/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "arrays/choice.h"
#include "arrays/prepared.h"
#include "devices/cpu/device.h"
#include "devices/discovery/registry.h"
#include "run/opened_devices.h"
#include "run/pool/backoff.h"

namespace shunt {
namespace {

using arrays::Bucket;
using arrays::Chosen;
using arrays::Contender;
using arrays::Prepared;
using arrays::SizeClass;
using arrays::Task;
using Nanoseconds = std::chrono::nanoseconds;

// Smaller calls prefer the CPU to GPUs, and use only the caller's thread there. They need a few microseconds, and
// waking other threads can take tens.
constexpr std::uint64_t kTinyBytes = 16U << 10U;

Nanoseconds machine_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

double us_of(Nanoseconds time) { return std::chrono::duration<double, std::micro>(time).count(); }

bool is_cpu(const Device& device) { return device.info().is_host_cpu(); }

bool is_tiny(const Task& work) { return work.bytes() < kTinyBytes; }

SizeClass size_of(const Task& work) {
  return {static_cast<std::uint32_t>(work.function), static_cast<std::uint32_t>(std::bit_width(work.units()))};
}

// Returns whether a result is not a number although no sum or product of such inputs can overflow.
bool is_unexplained(const Task& work, std::span<const float> results) {
  constexpr float kOrdinary = 1e14F;
  const auto is_ordinary = [](float value) { return std::fabs(value) <= kOrdinary; };
  return std::ranges::any_of(results, [](float value) { return std::isnan(value); }) &&
         std::ranges::all_of(work.a, is_ordinary) && std::ranges::all_of(work.b, is_ordinary);
}

// When a call must have ended; empty: never.
using CallDeadline = std::optional<Nanoseconds>;

Status late(const Task& work, Nanoseconds timeout) {
  return fail(Code::timed_out, fmt::format("{} did not end in the {:g} us it was given", work.text(), us_of(timeout)));
}

}  // namespace

std::string_view name_of(ArrayReason reason) {
  constexpr std::string_view kNames[] = {
#define SHUNT_ARRAY_REASON(name, words) #name,
      SHUNT_ARRAY_REASONS(SHUNT_ARRAY_REASON)
#undef SHUNT_ARRAY_REASON
  };
  return kNames[static_cast<std::size_t>(reason)];
}

std::string_view words_of(ArrayReason reason) {
  constexpr std::string_view kWords[] = {
#define SHUNT_ARRAY_REASON(name, words) words,
      SHUNT_ARRAY_REASONS(SHUNT_ARRAY_REASON)
#undef SHUNT_ARRAY_REASON
  };
  return kWords[static_cast<std::size_t>(reason)];
}

struct Arrays::Parts {
  // The state of a device for calls of one size.
  struct Slot {
    double predicted_us = 0;
    std::string lacks;  // why it cannot compute them; empty: it can
    Backoff backoff;    // for example out of memory for them
  };
  struct Method {
    Device* device;
    const DeviceCost& cost;
    std::unique_ptr<Device> alone;  // the same on the caller's thread, for tiny calls; null if there is none
    std::unique_ptr<arrays::DeviceMemory> memory = std::make_unique<arrays::DeviceMemory>();
    Backoff backoff;
    bool is_lost = false;  // must be reopened before it is tried again
    std::map<SizeClass, Slot> slots;
  };
  struct Entry {
    std::size_t method;
    Device* device;
    Bucket bucket;
    std::uint64_t used;  // the last call that used it
    std::unique_ptr<Prepared> program;
  };
  // One call on its way along the chain of devices.
  struct Attempt {
    const Task& work;
    SizeClass size;
    std::optional<Nanoseconds> timeout;
    Nanoseconds start;
    std::vector<Contender> left;  // to be tried, in chain order

    [[nodiscard]] CallDeadline deadline() const {
      if (!timeout) return std::nullopt;
      return *timeout > Nanoseconds::max() - start ? Nanoseconds::max() : start + *timeout;
    }
  };

  Parts(const Runtime& its_runtime, ArraysOptions its_options)
      : handle(its_runtime.share()),
        runtime(*handle),
        options(std::move(its_options)),
        choices(options.margin, options.exploring_share) {}

  Result<ArrayRun> run(const Result<Task>& work, const ArrayCall& call);
  Result<std::vector<std::size_t>> named(std::string_view list) const;
  Result<std::vector<Contender>> candidates(const Task& work, std::span<const std::size_t> named);
  Slot& slot_of(Method& method, const Task& work);
  Chosen first_choice(const Attempt& attempt, std::optional<Nanoseconds> given);
  Status try_device(std::size_t index, const Attempt& attempt, double& us);
  Status open_again(std::size_t index);
  Status compute(std::size_t index, const Attempt& attempt, Nanoseconds& begin);
  Result<Prepared*> prepare(std::size_t index, const Task& work);
  void set_back(std::size_t index, const Attempt& attempt, const Error& why);
  [[nodiscard]] std::optional<Nanoseconds> given_to(std::size_t index, const Attempt& attempt) const;

  const std::unique_ptr<const Runtime> handle;  // the members below end before it
  const Runtime& runtime;
  ArraysOptions options;
  arrays::Choices choices;
  std::vector<Method> methods;  // in the order of opened(runtime).handles()
  std::shared_ptr<cpu::Engine> alone = std::make_shared<cpu::Engine>(1, std::span<const std::uint32_t>());
  std::vector<Entry> programs;
  std::vector<float> staging;
  std::uint64_t calls = 0;
};

Arrays::Arrays(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Arrays::~Arrays() = default;

Result<std::unique_ptr<Arrays>> Arrays::create(const Runtime& runtime, ArraysOptions options) {
  if (!(options.margin >= 1)) return fail(Code::invalid, fmt::format("margin {} must be 1 or more", options.margin));
  if (!(options.exploring_share >= 0 && options.exploring_share <= 1))
    return fail(Code::invalid, fmt::format("exploring_share {} must be from 0 to 1", options.exploring_share));
  if (options.most_prepared == 0) return fail(Code::invalid, "most_prepared must be 1 or more");
  if (opened(runtime).handles().empty()) return fail(Code::invalid, "the runtime has no devices");
  if (!options.now) options.now = machine_now;
  auto parts = std::make_unique<Parts>(runtime, std::move(options));
  for (std::size_t index = 0; index < opened(runtime).handles().size(); ++index) {
    Device* const device = opened(runtime).current(index);
    parts->methods.push_back({.device = device,
                              .cost = opened(runtime).costs()[index],
                              .alone = cpu::over(parts->alone, *device),
                              .backoff = {},
                              .slots = {}});
  }
  return std::unique_ptr<Arrays>(new Arrays(std::move(parts)));
}

// Returns the methods that a list names, in its order; all if it is empty.
Result<std::vector<std::size_t>> Arrays::Parts::named(std::string_view list) const {
  std::vector<std::size_t> found;
  if (list.empty()) {
    for (std::size_t index = 0; index < methods.size(); ++index) found.push_back(index);
    return found;
  }
  SHUNT_TRY_ASSIGN(const std::vector<Device*> devices, select_devices(opened(runtime).registry(), list));
  for (Device* device : devices) {
    // Compare with the devices that the runtime was opened with; others may have replaced them by now.
    const auto known = std::ranges::find(opened(runtime).handles(), device);
    if (known != opened(runtime).handles().end())
      found.push_back(static_cast<std::size_t>(known - opened(runtime).handles().begin()));
  }
  if (found.empty())
    return fail(Code::unsupported,
                fmt::format("\"{}\" is not among the devices that the runtime was opened with", list));
  return found;
}

Arrays::Parts::Slot& Arrays::Parts::slot_of(Method& method, const Task& work) {
  const auto [place, is_new] = method.slots.try_emplace(size_of(work));
  Slot& slot = place->second;
  if (!is_new) return slot;
  if (const auto predicted = arrays::predict_us(work, *method.device, method.cost))
    slot.predicted_us = *predicted;
  else
    slot.lacks = predicted.error().message;
  return slot;
}

// Returns those of `named` that can compute the call, in chain order.
Result<std::vector<Contender>> Arrays::Parts::candidates(const Task& work, std::span<const std::size_t> named) {
  std::vector<Contender> found;
  Error why{.code = Code::unsupported, .message = {}};
  const auto refuse = [&](std::size_t index, Code code, std::string_view reason) {
    if (!why.message.empty()) why.message += "; ";
    why.message += fmt::format("{}: {}", methods[index].device->info().id, reason);
    if (code != Code::unsupported) why.code = code;
  };
  for (const std::size_t index : named) {
    Method& method = methods[index];
    if (method.backoff.holds(calls)) {
      refuse(index, method.backoff.why().code, fmt::format("set aside: {}", method.backoff.why().message));
      continue;
    }
    Slot& slot = slot_of(method, work);
    if (!slot.lacks.empty())
      refuse(index, Code::unsupported, slot.lacks);
    else if (slot.backoff.holds(calls))
      refuse(index, slot.backoff.why().code, slot.backoff.why().message);
    else
      found.push_back({index, slot.predicted_us});
  }
  if (found.empty()) return std::unexpected(fail_at(work.text(), std::move(why)).error());
  return found;
}

Chosen Arrays::Parts::first_choice(const Attempt& attempt, std::optional<Nanoseconds> given) {
  std::vector<Contender> among;
  // Tiny calls stay on the CPU if there is one.
  if (is_tiny(attempt.work))
    std::ranges::copy_if(attempt.left, std::back_inserter(among),
                         [&](const Contender& each) { return is_cpu(*methods[each.device].device); });
  return choices.choose(attempt.size, among.empty() ? attempt.left : among,
                        given ? us_of(*given) : std::numeric_limits<double>::infinity());
}

// A GPU may hang. The CPU does not, so it gets all the time that is left.
std::optional<Nanoseconds> Arrays::Parts::given_to(std::size_t index, const Attempt& attempt) const {
  if (!attempt.timeout) return std::nullopt;
  const Nanoseconds left = *attempt.deadline() - options.now();
  return attempt.left.empty() || is_cpu(*methods[index].device) ? left : left / 2;
}

Result<Prepared*> Arrays::Parts::prepare(std::size_t index, const Task& work) {
  const Method& method = methods[index];
  Device* const device = is_tiny(work) && method.alone != nullptr ? method.alone.get() : method.device;
  for (Entry& entry : programs)
    if (entry.device == device && entry.bucket == work.bucket()) {
      entry.used = calls;
      return entry.program.get();
    }
  if (programs.size() == options.most_prepared) programs.erase(std::ranges::min_element(programs, {}, &Entry::used));
  SHUNT_TRY_ASSIGN(auto program, Prepared::create(work.bucket(), *device, *method.memory, &opened(runtime).recorder()));
  programs.push_back({index, device, work.bucket(), calls, std::move(program)});
  return programs.back().program.get();
}

// Writes the result where the caller wants it, or leaves everything as it was. `begin`: when the measured time began.
Status Arrays::Parts::compute(std::size_t index, const Attempt& attempt, Nanoseconds& begin) {
  const Task& work = attempt.work;
  Device& device = *methods[index].device;
  // Once the CPU has begun, only a timeout can keep it from finishing.
  const bool straight = is_cpu(device) && !is_reduction(work.function);
  if (!straight) staging.resize(work.results());
  const std::span<float> results = straight ? work.out : std::span(staging).first(work.results());
  Status done = fail(Code::unsupported, "");
  begin = options.now();
  if (!attempt.timeout && can_run_in_place(device, work)) {
    if (!straight) results.back() = 0;
    done = run_in_place(device, work, results);
  }
  if (!done && done.error().code == Code::unsupported) {
    SHUNT_TRY_ASSIGN(Prepared* const program, prepare(index, work));
    begin = options.now();
    const auto given = given_to(index, attempt);
    if (given && *given <= Nanoseconds(0)) return late(work, *attempt.timeout);
    SHUNT_TRY(program->run(work, given));
    if (attempt.timeout && options.now() > *attempt.deadline()) return late(work, *attempt.timeout);
    done = program->read(work, results);
  }
  SHUNT_TRY(done);
  if (!is_cpu(device) && is_unexplained(work, results))
    return fail(Code::internal, "a result is not a number, and all inputs are ordinary ones");
  if (!straight) arrays::commit(work, results);
  return {};
}

// Opens a device in place of a lost one.
Status Arrays::Parts::open_again(std::size_t index) {
  Method& method = methods[index];
  SHUNT_TRY_ASSIGN(method.device, opened(runtime).revive(index));
  method.alone = cpu::over(alone, *method.device);
  method.is_lost = false;
  return {};
}

Status Arrays::Parts::try_device(std::size_t index, const Attempt& attempt, double& us) {
  if (methods[index].is_lost) SHUNT_TRY(open_again(index));
  SHUNT_TRY(methods[index].device->health().status);
  Nanoseconds begin{};
  SHUNT_TRY(compute(index, attempt, begin));
  us = us_of(options.now() - begin);
  return {};
}

void Arrays::Parts::set_back(std::size_t index, const Attempt& attempt, const Error& why) {
  Method& method = methods[index];
  if (is_cpu(*method.device) && why.code == Code::timed_out) return;
  const bool is_of_size =
      why.code == Code::out_of_memory || why.code == Code::unsupported || why.code == Code::timed_out;
  const bool lives = method.device->health().status.has_value();
  method.is_lost = method.is_lost || !lives;
  (lives && is_of_size ? method.slots[attempt.size].backoff : method.backoff).add(why, calls);
  // Prepared programs may be lost, or may take memory from other calls.
  std::erase_if(programs, [&](const Entry& entry) { return entry.method == index; });
  method.memory = std::make_unique<arrays::DeviceMemory>();
}

Result<ArrayRun> Arrays::Parts::run(const Result<Task>& wanted, const ArrayCall& call) {
  if (!wanted) return std::unexpected(wanted.error());
  Task work = *wanted;
  work.numerics = options.numerics;
  SHUNT_TRY_ASSIGN(const std::vector<std::size_t> chain, named(call.devices));
  if (fill_if_empty(work)) return ArrayRun{};
  ++calls;
  Attempt attempt{.work = work, .size = size_of(work), .timeout = call.timeout, .start = options.now(), .left = {}};
  SHUNT_TRY_ASSIGN(attempt.left, candidates(work, chain));
  Chosen choice = first_choice(attempt, call.timeout);
  ArrayRun result;
  for (;;) {
    // Next come the devices that follow in the chain, then those before.
    const auto place = std::ranges::find(attempt.left, choice.device, &Contender::device);
    std::ranges::rotate(attempt.left, place);
    attempt.left.erase(attempt.left.begin());
    Device& device = *methods[choice.device].device;
    const Status done = try_device(choice.device, attempt, result.us);
    if (done) {
      choices.record(attempt.size, choice.device, result.us);
      methods[choice.device].backoff.end();
      methods[choice.device].slots[attempt.size].backoff.end();
      result.device = device.info().id;
      result.reason = choice.reason;
      return result;
    }
    set_back(choice.device, attempt, done.error());
    if (!result.failures.empty()) result.failures += "; ";
    result.failures += fmt::format("{}: {}", device.info().id, done.error().message);
    const bool is_late = call.timeout && options.now() >= *attempt.deadline();
    if (attempt.left.empty() || is_late)
      return fail_at(work.text(), {is_late ? Code::timed_out : done.error().code, std::move(result.failures)});
    choice = {attempt.left.front().device, ArrayReason::fallback};
  }
}

Result<ArrayRun> Arrays::add(std::span<const float> a, std::span<const float> b, std::span<float> out,
                             const ArrayCall& call) {
  return parts_->run(arrays::elementwise(arrays::Function::add, a, b, out), call);
}

Result<ArrayRun> Arrays::multiply(std::span<const float> a, std::span<const float> b, std::span<float> out,
                                  const ArrayCall& call) {
  return parts_->run(arrays::elementwise(arrays::Function::multiply, a, b, out), call);
}

Result<ArrayRun> Arrays::matmul(std::span<const float> a, std::span<const float> b, const ProductExtents& extents,
                                std::span<float> out, const ArrayCall& call) {
  return parts_->run(arrays::product(a, b, extents.rows, extents.inner, extents.columns, out), call);
}

Result<ArrayRun> Arrays::dot(std::span<const float> a, std::span<const float> b, float& out, const ArrayCall& call) {
  return parts_->run(arrays::reduction(arrays::Function::dot, a, b, out), call);
}

Result<ArrayRun> Arrays::sum(std::span<const float> x, float& out, const ArrayCall& call) {
  return parts_->run(arrays::reduction(arrays::Function::sum, x, {}, out), call);
}

Result<ArrayRun> Arrays::softmax(std::span<const float> x, std::size_t columns, std::span<float> out,
                                 const ArrayCall& call) {
  return parts_->run(arrays::softmax(x, columns, out), call);
}

std::size_t Arrays::prepared() const { return parts_->programs.size(); }

std::string Arrays::explain() const {
  std::string text;
  const Parts& parts = *parts_;
  for (const Parts::Method& method : parts.methods) {
    const auto index = static_cast<std::size_t>(&method - parts.methods.data());
    text += method.device->info().id;
    text += method.backoff.holds(parts.calls) ? fmt::format(": set aside: {}\n", method.backoff.why().message) : ":\n";
    for (const auto& [size, slot] : method.slots) {
      const auto function = static_cast<arrays::Function>(size.function);
      text += fmt::format("  {} below 2^{} {}: ", name_of(function), size.log2,
                          function == arrays::Function::matmul ? "products" : "elements");
      const arrays::Timing* timing = parts.choices.find(size, index);
      if (!slot.lacks.empty())
        text += slot.lacks;
      else if (timing == nullptr)
        text += fmt::format("{:.1f} us predicted", slot.predicted_us);
      else
        text += fmt::format("{:.1f} us measured, {:.1f} us predicted", timing->median_us(), slot.predicted_us);
      if (slot.backoff.holds(parts.calls)) text += fmt::format("; set aside: {}", slot.backoff.why().message);
      text += '\n';
    }
  }
  return text;
}

}  // namespace shunt
