#include "run/weight_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ops/strips.h"

namespace shunt {
namespace {

constexpr std::uint64_t kChunkBytes = 4U << 20U;

}  // namespace

WeightStore::WeightStore(WeightSource* source) : source_(source) {
  if (source_ == nullptr) return;
  for (std::size_t index = 0; index < source_->weights().size(); ++index)
    index_of_.emplace(source_->weights()[index].name, index);
}

Result<WeightStore::Part> WeightStore::find(const TensorInfo& weight) const {
  const std::string& name = weight.rows_of.empty() ? weight.name : weight.rows_of;
  const auto place = index_of_.find(name);
  if (place == index_of_.end()) return fail(Code::invalid, fmt::format("the model has no tensor \"{}\"", name));
  const WeightInfo& info = source_->weights()[place->second];
  const Operand& wanted = weight.operand;
  Shape shape = info.shape;
  if (!weight.rows_of.empty() && std::uint64_t{weight.first_row} + wanted.shape[0] <= shape[0])
    shape.set(0, wanted.shape[0]);
  if (info.dtype != wanted.dtype || shape != wanted.shape)
    return fail(Code::invalid,
                fmt::format("tensor \"{}\" is {}{}, but the graph needs {}{}{}", name, name_of(info.dtype),
                            to_string(info.shape), name_of(wanted.dtype), to_string(wanted.shape),
                            weight.rows_of.empty() ? "" : fmt::format(" from row {} on", weight.first_row)));
  SHUNT_TRY_ASSIGN(const std::uint64_t bytes, bytes_of(info.dtype, shape));
  SHUNT_TRY_ASSIGN(const std::uint64_t row_bytes, bytes_of(info.dtype, {shape.columns()}));
  return Part{.index = place->second,
              .offset = row_bytes * weight.first_row,
              .bytes = bytes,
              .dtype = info.dtype,
              .columns = shape.columns(),
              .row_bytes = row_bytes};
}

Result<WeightStore::Weight> WeightStore::acquire(const TensorInfo& weight, Device& device, Layout layout) {
  SHUNT_TRY_ASSIGN(const Part part, find(weight));
  const Key key{weight.name, device.info().memory_pool, layout};
  if (const auto copy = copies_.find(key); copy != copies_.end()) {
    std::shared_ptr<Buffer> buffer = copy->second.buffer.lock();
    // Others may still hold a buffer that was lost with its device.
    if (buffer != nullptr && copy->second.device->health().status)
      return Weight{.buffer = std::move(buffer), .bytes = part.bytes};
  }
  auto loaded = load(part, device, layout);
  if (!loaded)
    return fail_at(fmt::format("weight \"{}\" on {}", weight.name, device.info().id), std::move(loaded).error());
  copies_.insert_or_assign(
      key, Copy{.buffer = loaded->buffer, .device = &device, .copied_bytes = loaded->was_copied ? part.bytes : 0});
  return loaded;
}

Status WeightStore::read(const TensorInfo& weight, std::uint64_t offset, std::span<std::byte> to) const {
  SHUNT_TRY_ASSIGN(const Part part, find(weight));
  return source_->read(part.index, part.offset + offset, to);
}

std::uint64_t WeightStore::copied_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [key, copy] : copies_)
    if (!copy.buffer.expired()) bytes += copy.copied_bytes;
  return bytes;
}

void WeightStore::lay_out(const Part& part, std::span<const std::byte> rows, std::span<std::byte> strips) {
  if (!threads_) threads_.emplace(usable_cores(), std::span<const std::uint32_t>());
  const std::uint64_t strip_bytes = kStripRows * part.row_bytes;
  const std::uint64_t count = rows.size() / strip_bytes;
  threads_->run([&](std::uint32_t thread) {
    const std::uint64_t begin = count * thread / threads_->threads() * strip_bytes;
    const std::uint64_t bytes = count * (thread + 1) / threads_->threads() * strip_bytes - begin;
    if (bytes != 0) rows_to_strips(part.dtype, part.columns, rows.subspan(begin, bytes), strips.subspan(begin, bytes));
  });
}

Result<WeightStore::Weight> WeightStore::load(const Part& part, Device& device, Layout layout) {
  if (const auto mapped = source_->mapped(part.index); !mapped.empty() && layout == Layout::rows)
    if (auto imported = device.import_host(mapped.subspan(part.offset, part.bytes), source_->owner(part.index)))
      return Weight{.buffer = std::move(*imported), .bytes = part.bytes};
  SHUNT_TRY_ASSIGN(std::unique_ptr<Buffer> buffer, device.allocate(part.bytes, BufferUse::weights));
  const std::uint64_t whole = layout == Layout::strips ? kStripRows * part.row_bytes : 1;  // what is laid out at a time
  std::vector<std::byte> chunk(std::min(part.bytes, std::max(kChunkBytes / whole, std::uint64_t{1}) * whole));
  std::vector<std::byte> strips(layout == Layout::strips ? chunk.size() : 0);
  for (std::uint64_t done = 0; done < part.bytes; done += chunk.size()) {
    const std::span<std::byte> piece(chunk.data(), std::min<std::uint64_t>(chunk.size(), part.bytes - done));
    SHUNT_TRY(source_->read(part.index, part.offset + done, piece));
    std::span<const std::byte> content = piece;
    if (layout == Layout::strips) {
      const std::span<std::byte> laid_out = std::span(strips).first(piece.size());
      lay_out(part, piece, laid_out);
      content = laid_out;
    }
    SHUNT_TRY(device.write({.buffer = buffer.get(), .offset = done, .bytes = content.size()}, content).wait());
    source_->release(part.index, part.offset + done, piece.size());
  }
  return Weight{.buffer = std::move(buffer), .bytes = part.bytes, .was_copied = true};
}

}  // namespace shunt
