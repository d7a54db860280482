#include "models/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/units.h"
#include "models/quantize/mixture.h"

namespace shunt::models {
namespace {

std::string with_bytes(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  return fmt::format("{}... ({} bytes)", first_characters(text, most), text.size());
}

struct Abbreviate {
  std::size_t most;

  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return with_bytes(value, 32 * most); }
  template <class T>
    requires std::is_arithmetic_v<T>
  std::string operator()(T value) const {
    return fmt::format("{}", value);
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (std::size_t i = 0; i < std::min(most, list.size()); ++i) {
      if (i != 0) text += ", ";
      if constexpr (std::is_same_v<T, std::string>)
        text += quoted_name(list[i]);
      else
        text += (*this)(static_cast<T>(list[i]));
    }
    return text + (list.size() > most ? ", ...]" : "]");
  }
};

MetadataLine line_of(const Metadata::Entry& entry) {
  MetadataLine line{.key = entry.first, .type = type_name(entry.second), .value = &entry.second};
  line.is_array = line.type.starts_with("array");
  if (!line.is_array) return line;
  std::visit(
      [&](const auto& list) {
        if constexpr (requires { list.size(); }) line.elements = list.size();
      },
      entry.second);
  return line;
}

std::string file_type_of(const Metadata& metadata) {
  const auto number = metadata.u32("general.file_type");
  if (!number) return "";
  const std::string_view name = mixture_name(*number);
  return name.empty() ? fmt::format("type {}", *number) : std::string(name);
}

}  // namespace

std::string abbreviated(const MetadataValue& value, std::size_t most) { return std::visit(Abbreviate{most}, value); }

ModelSummary summarize(const GgufFile& model) {
  ModelSummary summary{.architecture = std::string(model.metadata().string("general.architecture").value_or("")),
                       .name = std::string(model.metadata().string("general.name").value_or("")),
                       .file_type = file_type_of(model.metadata()),
                       .file_bytes = model.total_bytes(),
                       .version = model.version(),
                       .alignment = model.alignment(),
                       .parts = model.part_count(),
                       .dtypes = {},
                       .metadata = {},
                       .tensors = {}};
  std::vector<DTypeShare> shares;
  for (const auto& dtype : dtypes()) shares.push_back({.dtype = std::string(dtype.name)});
  const auto add = [&](std::size_t share, TensorLine line) {
    shares[share].tensors += 1;
    shares[share].parameters += line.shape.elements();
    shares[share].bytes += line.bytes;
    summary.parameters += line.shape.elements();
    summary.tensor_bytes += line.bytes;
    summary.tensors.push_back(std::move(line));
  };
  for (const WeightInfo& info : model.weights())
    add(static_cast<std::size_t>(info.dtype),
        {.name = info.name, .dtype = std::string(name_of(info.dtype)), .shape = info.shape, .bytes = info.bytes});
  std::map<std::string_view, std::size_t> foreign_shares;
  for (const ForeignTensor& tensor : model.foreign()) {
    const auto [place, is_new] = foreign_shares.try_emplace(tensor.type, shares.size());
    if (is_new) shares.push_back({.dtype = tensor.type, .is_foreign = true});
    const std::size_t share = place->second;
    add(share, {.name = tensor.name, .dtype = tensor.type, .shape = tensor.shape, .bytes = tensor.bytes});
  }
  std::ranges::copy_if(shares, std::back_inserter(summary.dtypes), [](const DTypeShare& s) { return s.tensors != 0; });
  for (const Metadata::Entry& entry : model.metadata().all()) summary.metadata.push_back(line_of(entry));
  return summary;
}

}  // namespace shunt::models
