#include "models/context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "devices/device.h"
#include "models/step_planner.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

// The share of free memory that the cache may take.
constexpr double kCacheShare = 0.8;

// Returns how many bytes of a device's memory may be used, or nullopt if unknown.
std::optional<std::uint64_t> memory_of(const Runtime& runtime, std::size_t device) {
  const auto available = opened(runtime).handles()[device]->memory_available();
  const std::uint64_t budget = runtime.budgets()[device];
  if (available) return std::min(*available, budget);
  return budget == kNoBudget ? std::nullopt : std::optional(budget);
}

std::optional<std::uint64_t> memory_of_all(const Runtime& runtime) {
  std::map<std::string, std::uint64_t> memories;
  for (std::size_t device = 0; device < opened(runtime).handles().size(); ++device) {
    const auto bytes = memory_of(runtime, device);
    if (!bytes) return std::nullopt;
    std::uint64_t& most = memories[opened(runtime).handles()[device]->info().memory_resource];
    most = std::max(most, *bytes);
  }
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : memories)
    all = checked_sum(all, bytes).value_or(std::numeric_limits<std::uint64_t>::max());
  return all;
}

// Returns how many tokens per sequence fit beside the weights, or nullopt if the memory is unknown.
std::optional<std::uint64_t> context_that_fits(const Model& model, const SessionOptions& options,
                                               std::optional<std::uint64_t> available) {
  if (!available) return std::nullopt;
  const std::uint64_t weights = model.weight_bytes();
  const double room = *available > weights ? static_cast<double>(*available - weights) * kCacheShare : 0;
  const double page =
      static_cast<double>(cache_page_bytes(model.config(), kPageTokens, options.cache_dtype)) * options.max_sequences;
  return static_cast<std::uint64_t>(room / page) * kPageTokens;
}

std::string count_of_sequences(std::uint32_t count) {
  return count == 1 ? "1 sequence" : fmt::format("{} sequences", count);
}

// Returns the names of the cache dtypes that heads of this size can have.
std::string cache_dtypes_for(std::uint32_t head_dim) {
  std::vector<std::string_view> names;
  for (const DType dtype : cache_dtypes())
    if (head_dim % info_of(dtype).block_elements == 0) names.push_back(name_of(dtype));
  return fmt::format("{}", fmt::join(names, ", "));
}

Status check_cache_dtype(const Model& model, DType dtype) {
  const ModelConfig& config = model.config();
  const auto found = std::ranges::find(cache_dtypes(), dtype);
  if (found == cache_dtypes().end())
    return fail(Code::invalid, fmt::format("the KV cache cannot be {}; choose one of {}", name_of(dtype),
                                           cache_dtypes_for(config.head_dim)));
  if (config.head_dim % info_of(dtype).block_elements == 0) return {};
  const std::string_view name = model.metadata().string_or("general.name", "").value_or("");
  return fail(Code::invalid,
              fmt::format("the KV cache of model \"{}\" cannot be {}: its heads have {} elements, which is not a whole "
                          "number of blocks of {}; choose one of {}",
                          name.empty() ? config.architecture : name, name_of(dtype), config.head_dim,
                          info_of(dtype).block_elements, cache_dtypes_for(config.head_dim)));
}

Status check_options(const Model& model, const SessionOptions& options) {
  if (options.max_sequences == 0 || options.max_sequences > 1024)
    return fail(Code::invalid,
                fmt::format("{} sequences are asked for; 1 to 1024 are possible", options.max_sequences));
  if (options.max_batch_tokens > kMostStepTokens)
    return fail(Code::invalid,
                fmt::format("a batch of {} tokens is asked for; 1 to {} are possible, or 0 to let Shunt choose",
                            options.max_batch_tokens, kMostStepTokens));
  return check_cache_dtype(model, options.cache_dtype);
}

}  // namespace

Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime, const SessionOptions& options) {
  SHUNT_TRY(check_options(model, options));
  SHUNT_TRY(cache_pages(options.context, options.max_sequences));
  // Counts the memory of all devices only if the first one is too small.
  auto fits = context_that_fits(model, options, memory_of(runtime, 0));
  if (fits && *fits < std::max(options.context, 1U)) fits = context_that_fits(model, options, memory_of_all(runtime));
  if (fits && *fits == 0)
    return fail(Code::out_of_memory,
                fmt::format("no room for a cache: the {} MiB of weights and a page of {} tokens in {} need "
                            "more than the {} MiB of memory that are free; use a smaller model or file type",
                            model.weight_bytes() >> 20U, kPageTokens, count_of_sequences(options.max_sequences),
                            memory_of_all(runtime).value_or(0) >> 20U));
  std::uint32_t context = options.context;
  if (context == 0)
    context = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({model.config().context_length, kDefaultContext, fits.value_or(kDefaultContext)}));
  SHUNT_TRY_ASSIGN(const std::uint32_t pages, cache_pages(context, options.max_sequences));
  if (fits && context > *fits) {
    const auto bytes = checked_product(cache_page_bytes(model.config(), kPageTokens, options.cache_dtype), pages);
    return fail(Code::out_of_memory,
                fmt::format("a context of {} tokens in {} does not fit: its cache takes {}, and there is "
                            "room for {} tokens; choose a smaller context (option context, -c)",
                            context, count_of_sequences(options.max_sequences),
                            bytes ? fmt::format("{} MiB", *bytes >> 20U) : "more than 2^64 bytes", *fits));
  }
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();  // positions are 32-bit integers
  if (context > kMost)
    return fail(Code::invalid,
                fmt::format("a context of {} tokens is asked for; at most {} are possible", context, kMost));
  return context;
}

}  // namespace shunt::models
