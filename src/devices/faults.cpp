#include "devices/faults.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace shunt {
namespace {

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string known_faults() {
  std::string list;
  Faults any;
  visit_faults(any, [&](const char*, std::string_view kind, std::string_view thing, const auto&) {
    list += fmt::format("{}\"{} at {} N\"", list.empty() ? "" : ", ", kind, thing);
  });
  return list;
}

// Returns the position of op number `fault` among `count` ops whose first has number `first`.
std::optional<std::size_t> place_of(const std::optional<std::uint64_t>& fault, std::uint64_t first, std::size_t count) {
  if (!fault || *fault < first || *fault - first >= count) return std::nullopt;
  return static_cast<std::size_t>(*fault - first);
}

}  // namespace

Status FaultCount::strike(const std::optional<std::uint64_t>& lost, const std::optional<std::uint64_t>& error,
                          std::uint64_t number, std::string_view thing) const {
  const auto why = [&] { return fmt::format("{}: injected fault: {} {} fails", device_, thing, number); };
  if (lost == number) return fail(Code::device_lost, why());
  if (error == number) return fail(Code::internal, why());
  return {};
}

Status FaultCount::allocation() {
  const std::uint64_t number = allocations_++;
  if (faults_.allocation_fails && number >= *faults_.allocation_fails)
    return fail(Code::out_of_memory, fmt::format("{}: injected fault: allocation {} fails", device_, number));
  return {};
}

Status FaultCount::program() {
  return strike(faults_.lost_at_program, faults_.error_at_program, programs_++, "program");
}

Status FaultCount::transfer() {
  return strike(faults_.lost_at_transfer, faults_.error_at_transfer, transfers_++, "transfer");
}

FaultCount::Ops FaultCount::ops(std::size_t count) {
  const std::uint64_t first = ops_.fetch_add(count);
  return {.lost = place_of(faults_.lost_at_op, first, count),
          .hangs = place_of(faults_.hangs_at_op, first, count),
          .error = place_of(faults_.error_at_op, first, count),
          .nonfinite = place_of(faults_.nonfinite_at_op, first, count),
          .wrong = faults_.wrong_at_op && *faults_.wrong_at_op < first ? std::optional<std::size_t>(0)
                                                                       : place_of(faults_.wrong_at_op, first, count)};
}

void make_wrong(DType dtype, std::span<std::byte> numbers) {
  constexpr std::byte kSign{0x80};
  const std::uint32_t bytes = info_of(dtype).block_bytes;
  for (std::size_t last = bytes - 1; last < numbers.size(); last += bytes) numbers[last] ^= kSign;
}

Result<FaultTable> faults_from_text(std::string_view text) {
  std::map<std::string, Faults, std::less<>> faults;
  for (const std::string_view item : parts_of(text, ',')) {
    const std::vector<std::string_view> words = parts_of(item, ' ');
    if (words.empty()) continue;
    bool known = false;
    if (words.size() == 5 && (words[2] == "at" || words[2] == "after")) {
      const bool number_first = number_in(words[3]).has_value();
      const auto number = number_in(words[number_first ? 3 : 4]);
      std::string_view named = words[number_first ? 4 : 3];
      if (number_first && named.ends_with('s')) named.remove_suffix(1);
      visit_faults(faults[std::string(words[0])],
                   [&](const char*, std::string_view kind, std::string_view thing, auto& field) {
                     if (kind != words[1] || thing != named || !number) return;
                     field = number;
                     known = true;
                   });
    }
    if (!known)
      return fail(Code::invalid,
                  fmt::format("the fault \"{}\" is not understood; write a device and one of {}, separated by commas",
                              item, known_faults()));
  }
  FaultTable table;
  for (const auto& [device, its_faults] : faults) table[device] = std::make_shared<FaultCount>(device, its_faults);
  return table;
}

}  // namespace shunt
