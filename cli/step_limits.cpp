#include "step_limits.h"

#include <fmt/format.h>

#include "attached.h"
#include "base/field_json.h"

namespace shunt::cli {

void visit_fields(field_json::FieldsOf<StepLimits> auto& limits, const auto& visit) {
  visit("weight_bytes", limits.weight_bytes);
  visit("host_weight_bytes", limits.host_weight_bytes);
  visit("least_host_weight_bytes", limits.least_host_weight_bytes);
  visit("weight_elements", limits.weight_elements);
  visit("read_bytes_per_s", limits.read_bytes_per_s);
  visit("read_bytes_per_s_beside_weights", limits.read_bytes_per_s_beside_weights);
  visit("link_bytes_per_s", limits.link_bytes_per_s);
  visit("link_bytes_per_s_beside_reads", limits.link_bytes_per_s_beside_reads);
  visit("gpu_bytes_per_s", limits.gpu_bytes_per_s);
  visit("gpu_flops_per_s", limits.gpu_flops_per_s);
  visit("prompt_tokens", limits.prompt_tokens);
}

namespace {

constexpr std::string_view kLimits = "limits";

double us_for(double amount, double per_s) { return per_s <= 0 ? 0 : amount / per_s * 1e6; }

double arithmetic_us(const StepLimits& limits, double tokens) {
  return us_for(2 * limits.weight_elements * tokens, limits.gpu_flops_per_s);
}

double link_us(const StepLimits& limits) {
  return us_for(static_cast<double>(limits.least_host_weight_bytes), limits.link_bytes_per_s);
}

}  // namespace

std::vector<StepPart> parts_of_reading(const StepLimits& limits, double processor_us, double traveled_bytes) {
  const double both = limits.read_bytes_per_s_beside_weights + limits.link_bytes_per_s_beside_reads;
  const auto on_host = static_cast<double>(limits.host_weight_bytes);
  const auto least = static_cast<double>(limits.least_host_weight_bytes);
  const double read_us = us_for(on_host - traveled_bytes, limits.read_bytes_per_s_beside_weights);
  return {{"host memory, by the processor and the link", us_for(least, both)},
          {"budget that holds no weights", us_for(on_host - least, both)},
          {"more for the processor than its share", read_us - us_for(on_host, both)},
          {"processor slower than it reads memory", processor_us - read_us}};
}

std::vector<StepPart> parts_of_arithmetic(const StepLimits& limits, double tokens, double gpu_us) {
  const double bound_us = arithmetic_us(limits, tokens);
  return {{"arithmetic of the GPU", bound_us}, {"GPU slower than its peak", gpu_us - bound_us}};
}

std::vector<StepPart> parts_of_link(const StepLimits& limits, double weights_us, double traveled_bytes) {
  const double bytes_us = us_for(traveled_bytes, limits.link_bytes_per_s);
  return {{"the link", link_us(limits)},
          {"more or fewer weights on it than that", bytes_us - link_us(limits)},
          {"link slower than alone", weights_us - bytes_us}};
}

bool is_bound_by_arithmetic(const StepLimits& limits, double tokens) {
  return arithmetic_us(limits, tokens) > link_us(limits);
}

Json to_json(const StepLimits& limits) { return field_json::json_of(limits); }

std::string to_text(const StepLimits& limits) {
  return fmt::format(
      "{} of {} of weights stay in host memory\n"
      "the processor reads {:.1f} GB/s, {:.1f} while weights travel; these come at {:.1f} GB/s, {:.1f} while it "
      "reads\n",
      in_units(limits.host_weight_bytes), in_units(limits.weight_bytes), limits.read_bytes_per_s / 1e9,
      limits.read_bytes_per_s_beside_weights / 1e9, limits.link_bytes_per_s / 1e9,
      limits.link_bytes_per_s_beside_reads / 1e9);
}

void attach(trace::Recorder& recorder, const StepLimits& limits) { attach_as(recorder, kLimits, limits); }

std::optional<StepLimits> limits_in(const trace::Recording& recording) {
  return find_attached<StepLimits>(recording, kLimits);
}

}  // namespace shunt::cli
