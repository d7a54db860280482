#include "plan/costs/cost_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace shunt {
namespace {

void append(std::vector<std::uint64_t>& key, const Operand* operand) {
  key.push_back(operand != nullptr ? 1 : 0);
  if (operand == nullptr) return;
  key.insert(key.end(), {static_cast<std::uint64_t>(operand->dtype), static_cast<std::uint64_t>(operand->kind),
                         static_cast<std::uint64_t>(operand->extent), operand->shape.rank()});
  for (std::uint32_t axis = 0; axis < operand->shape.rank(); ++axis)
    key.insert(key.end(), {operand->shape[axis], operand->strides[axis]});
}

}  // namespace

std::size_t CostCache::HashOfKey::operator()(const Key& key) const {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const std::uint64_t word : key) hash = (hash ^ word ^ (hash >> 32U)) * 0x100000001B3U;
  return hash;
}

const OpCost& CostCache::of(const OpCall& call, std::uint32_t device) {
  key_.assign({static_cast<std::uint64_t>(call.op), device, static_cast<std::uint64_t>(call.numerics)});
  append(key_, call.output);
  for (const Operand* input : call.inputs) append(key_, input);
  std::vector<std::unique_ptr<Entry>>& alike = entries_[key_];
  const auto known =
      std::ranges::find_if(alike, [&](const auto& entry) { return entry->attributes == *call.attributes; });
  if (known != alike.end()) return (*known)->cost;
  return alike.emplace_back(std::make_unique<Entry>(*call.attributes, ask(call, device)))->cost;
}

const Support& CostCache::of_program(std::span<const OpCall> calls, std::uint32_t device) {
  Key key;
  for (const OpCall& call : calls) key.push_back(std::bit_cast<std::uintptr_t>(&of(call, device)));
  const auto [program, is_new] = programs_.try_emplace(std::move(key));
  if (is_new) program->second = devices_[device]->supports(calls);
  return program->second;
}

OpCost CostCache::ask(const OpCall& call, std::uint32_t device) const {
  if (const std::string_view wrong = costs_[device].refusal(call.op); !wrong.empty())
    return {.support = {.reason = fmt::format("{}: it was wrong when it was measured: {}", name_of(call.op), wrong)},
            .compute = {}};
  OpCost cost{.support = devices_[device]->supports(std::span(&call, 1)), .compute = {}};
  if (cost.support) cost.compute = costs_[device].compute(call, cost.support.arithmetic);
  return cost;
}

}  // namespace shunt
