#include "models/gguf/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <utility>

namespace shunt::models {
namespace {

constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitNumber = "split.no";
constexpr std::string_view kSplitTensors = "split.tensors.count";
constexpr std::string_view kExtension = ".gguf";

constexpr std::uint32_t kMostParts = 1000;

std::string part_suffix(std::uint32_t part, std::uint32_t count) {
  return fmt::format("-{:05}-of-{:05}{}", part + 1, count, kExtension);
}

Result<GgufHeader> parse_mapped(const MappedFile& file, ForeignTypes foreign) {
  auto header = parse_gguf(file.bytes(), foreign);
  // If reading the file failed, report that and not a bad format.
  SHUNT_TRY(file.health());
  if (!header) return fail_at(file.path(), std::move(header).error());
  return header;
}

// Returns how many parts the metadata says the model has; 1 if it is not split.
Result<std::uint32_t> split_count(const Metadata& metadata) {
  SHUNT_TRY_ASSIGN(const std::uint32_t count, metadata.u32_or(kSplitCount, 0));
  if (count > kMostParts)
    return invalid(fmt::format("{} is {}, at most {} are possible", kSplitCount, count, kMostParts));
  return std::max(count, 1U);
}

Status check_part(const Metadata& metadata, std::uint32_t part, std::uint32_t count) {
  SHUNT_TRY_ASSIGN(const std::uint32_t found_count, metadata.u32(kSplitCount));
  SHUNT_TRY_ASSIGN(const std::uint32_t found_part, metadata.u32(kSplitNumber));
  if (found_part != part || found_count != count)
    return invalid(fmt::format("says it is part {} of {}, its name says part {} of {}", found_part + 1, found_count,
                               part + 1, count));
  return {};
}

// Parses the number of a part's name; 0 if `text` is not a number.
std::uint32_t number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

std::vector<std::string> files_of_model(const std::string& path) {
  constexpr std::size_t kDigits = 5;
  const std::size_t length = part_suffix(0, 1).size();
  if (path.size() < length) return {path};
  const std::string_view suffix = std::string_view(path).substr(path.size() - length);
  const std::uint32_t part = number_in(suffix.substr(1, kDigits));
  const std::uint32_t count = number_in(suffix.substr(length - kExtension.size() - kDigits, kDigits));
  if (part == 0 || part > count || count > kMostParts || suffix != part_suffix(part - 1, count)) return {path};
  std::vector<std::string> files;
  for (std::uint32_t each = 0; each < count; ++each)
    files.push_back(path.substr(0, path.size() - length) + part_suffix(each, count));
  return files;
}

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path, ForeignTypes foreign) {
  SHUNT_TRY_ASSIGN(auto file, MappedFile::open(path));
  SHUNT_TRY_ASSIGN(auto header, parse_mapped(*file, foreign));
  auto model = std::make_unique<GgufFile>(Empty{});
  auto count = split_count(header.metadata);
  if (!count) return fail_at(path, std::move(count).error());
  if (*count > 1) {
    auto given = header.metadata.u32(kSplitNumber);
    if (!given) return fail_at(path, std::move(given).error());
    SHUNT_TRY(model->open_parts(path, *given, *count, foreign));
  } else {
    const std::span<const std::byte> bytes = file->bytes();
    model->append({.file = std::move(file), .bytes = bytes, .data_offset = header.data_offset}, header);
  }
  if (auto indexed = model->index_names(); !indexed) return fail_at(path, std::move(indexed).error());
  return model;
}

Result<std::unique_ptr<GgufFile>> GgufFile::from_memory(std::span<const std::byte> bytes) {
  SHUNT_TRY_ASSIGN(auto header, parse_gguf(bytes));
  SHUNT_TRY_ASSIGN(const std::uint32_t count, split_count(header.metadata));
  if (count > 1)
    return invalid(fmt::format("these bytes are one of {} parts of a split model; open the files by path", count));
  auto model = std::make_unique<GgufFile>(Empty{});
  model->append({.file = nullptr, .bytes = bytes, .data_offset = header.data_offset}, header);
  SHUNT_TRY(model->index_names());
  return model;
}

Status GgufFile::open_parts(const std::string& path, std::uint32_t given, std::uint32_t count, ForeignTypes foreign) {
  const std::string suffix = part_suffix(given, count);
  if (given >= count || !path.ends_with(suffix))
    return invalid(
        fmt::format("{}: this is part {} of {} of a split model; its name must end in {}, and all parts must "
                    "stand beside it",
                    path, given + 1, count, suffix));
  const std::string stem = path.substr(0, path.size() - suffix.size());
  std::optional<std::uint32_t> expected_tensors;
  for (std::uint32_t part = 0; part < count; ++part) {
    SHUNT_TRY_ASSIGN(auto file, MappedFile::open(stem + part_suffix(part, count)));
    SHUNT_TRY_ASSIGN(auto header, parse_mapped(*file, foreign));
    if (auto checked = check_part(header.metadata, part, count); !checked)
      return fail_at(file->path(), std::move(checked).error());
    if (part == 0 && header.metadata.find(kSplitTensors) != nullptr) {
      auto tensors = header.metadata.u32(kSplitTensors);
      if (!tensors) return fail_at(file->path(), std::move(tensors).error());
      expected_tensors = *tensors;
    }
    const std::span<const std::byte> bytes = file->bytes();
    append({.file = std::move(file), .bytes = bytes, .data_offset = header.data_offset}, header);
  }
  const std::size_t tensors = weights_.size() + foreign_.size();
  if (expected_tensors && *expected_tensors != tensors)
    return invalid(fmt::format("{}: the {} parts hold {} tensors, {} says {}", path, count, tensors, kSplitTensors,
                               *expected_tensors));
  return {};
}

void GgufFile::append(Part part, GgufHeader& header) {
  const auto number = static_cast<std::uint32_t>(parts_.size());
  if (number == 0) {
    metadata_ = std::move(header.metadata);
    version_ = header.version;
    alignment_ = header.alignment;
    weights_ = std::move(header.tensors);
  } else {
    std::ranges::move(header.tensors, std::back_inserter(weights_));
  }
  std::ranges::move(header.foreign, std::back_inserter(foreign_));
  locations_.reserve(weights_.size());
  for (const std::uint64_t offset : header.offsets) locations_.push_back({.part = number, .offset = offset});
  parts_.push_back(std::move(part));
}

Status GgufFile::index_names() {
  const auto name = [this](std::uint32_t index) -> std::string_view { return weights_[index].name; };
  by_name_.resize(weights_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::ranges::sort(by_name_, {}, name);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name);
  if (twice != by_name_.end()) return invalid(fmt::format("tensor {} occurs twice", quoted_name(name(*twice))));
  return {};
}

std::uint64_t GgufFile::total_bytes() const {
  std::uint64_t total = 0;
  for (const Part& part : parts_) total += part.bytes.size();
  return total;
}

std::optional<std::size_t> GgufFile::find(std::string_view name) const {
  const auto place = std::ranges::lower_bound(
      by_name_, name, {}, [this](std::uint32_t index) -> std::string_view { return weights_[index].name; });
  if (place == by_name_.end() || weights_[*place].name != name) return std::nullopt;
  return *place;
}

Status GgufFile::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  if (index >= weights_.size()) return invalid(fmt::format("tensor {} of {} does not exist", index, weights_.size()));
  const WeightInfo& info = weights_[index];
  if (offset > info.bytes || out.size() > info.bytes - offset)
    return invalid(fmt::format("tensor {}: {} bytes from byte {} run past its {}", quoted_name(info.name), out.size(),
                               offset, info.bytes));
  const Part& part = parts_[locations_[index].part];
  const std::uint64_t begin = locations_[index].offset + offset;
  if (part.file == nullptr) {
    if (!out.empty()) std::memcpy(out.data(), part.bytes.data() + begin, out.size());
    return {};
  }
  auto done = part.file->read(begin, out);
  if (!done) return fail_at(fmt::format("tensor {}", quoted_name(info.name)), std::move(done).error());
  return {};
}

std::span<const std::byte> GgufFile::mapped(std::size_t index) {
  if (index >= weights_.size()) return {};
  return parts_[locations_[index].part].bytes.subspan(locations_[index].offset, weights_[index].bytes);
}

std::optional<GgufFile::Stretch> GgufFile::stretch_of(std::size_t index, std::uint64_t offset,
                                                      std::uint64_t bytes) const {
  if (index >= weights_.size() || offset > weights_[index].bytes) return std::nullopt;
  const Location& location = locations_[index];
  const MappedFile* const file = parts_[location.part].file.get();
  if (file == nullptr) return std::nullopt;
  return Stretch{file, location.offset + offset, std::min(bytes, weights_[index].bytes - offset)};
}

void GgufFile::fetch(std::size_t index, std::uint64_t offset, std::uint64_t bytes) {
  if (const auto stretch = stretch_of(index, offset, bytes)) stretch->file->fetch(stretch->offset, stretch->bytes);
}

void GgufFile::release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) {
  if (const auto stretch = stretch_of(index, offset, bytes)) stretch->file->release(stretch->offset, stretch->bytes);
}

Status GgufFile::health() const {
  for (const Part& part : parts_)
    if (part.file != nullptr) SHUNT_TRY(part.file->health());
  return {};
}

}  // namespace shunt::models
