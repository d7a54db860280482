#include "run/weight_store.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace shunt {

WeightStore::WeightStore(WeightSource* source, trace::Recorder* recorder)
    : source_(source), recorder_(recorder), loader_(source, recorder) {
  if (source_ == nullptr) return;
  read_ahead_.emplace(*source_);
  for (std::size_t index = 0; index < source_->weights().size(); ++index)
    index_of_.emplace(source_->weights()[index].name, index);
}

Result<WeightPart> WeightStore::find(const TensorInfo& weight) const {
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
  return WeightPart{.index = place->second,
                    .offset = row_bytes * weight.first_row,
                    .bytes = bytes,
                    .rows = {info.dtype, shape.columns()},
                    .row_bytes = row_bytes};
}

std::shared_ptr<Buffer> WeightStore::held(const Key& key) const {
  const auto copy = copies_.find(key);
  // Others may still hold a buffer that was lost with its device.
  if (copy == copies_.end() || !copy->second.device->health().status) return nullptr;
  return copy->second.buffer.lock();
}

void WeightStore::expect(const TensorInfo& weight, const Device& device, Layout layout) {
  const auto part = find(weight);
  if (part && held({weight.name, device.info().memory_pool, layout}) == nullptr) expected_[&device] += part->bytes;
}

Status WeightStore::finish() {
  expected_.clear();
  if (const Device* const device = std::exchange(reads_in_place_, nullptr))
    read_ahead_->start(device->memory_available().value_or(std::numeric_limits<std::uint64_t>::max()));
  return loader_.finish();
}

void WeightStore::abandon() noexcept {
  expected_.clear();
  reads_in_place_ = nullptr;
  if (read_ahead_) read_ahead_->forget();
  loader_.abandon();
}

Result<WeightStore::Weight> WeightStore::acquire(const TensorInfo& weight, Device& device, Layout layout, Reads reads) {
  SHUNT_TRY_ASSIGN(const WeightPart part, find(weight));
  const Key key{weight.name, device.info().memory_pool, layout};
  if (std::shared_ptr<Buffer> buffer = held(key)) {
    if (Copy& copy = copies_.at(key); reads == Reads::all && copy.reads == Reads::some_rows) {
      copy.reads = reads;
      if (copy.copied_bytes == 0) read_in_place(part, device);
    }
    return Weight{.buffer = std::move(buffer), .bytes = part.bytes};
  }
  SHUNT_TRY_ASSIGN(Weight loaded, load(weight.name, part, device, layout, reads));
  copies_.insert_or_assign(key, Copy{.buffer = loaded.buffer,
                                     .device = &device,
                                     .copied_bytes = loaded.was_copied ? part.bytes : 0,
                                     .reads = reads});
  return loaded;
}

void WeightStore::read_in_place(const WeightPart& part, Device& device) {
  // Any thread may read any part of other tensors, such as experts.
  const bool is_matrix = source_->weights()[part.index].shape.rank() == 2;
  const std::uint32_t readers = is_matrix && device.info().is_host_cpu() ? device.info().compute_units : 0;
  read_ahead_->add(part.index, part.offset, part.bytes, readers);
  reads_in_place_ = &device;
}

Status WeightStore::read(const TensorInfo& weight, std::uint64_t offset, std::span<std::byte> to) const {
  SHUNT_TRY_ASSIGN(const WeightPart part, find(weight));
  return source_->read(part.index, part.offset + offset, to);
}

std::uint64_t WeightStore::copied_bytes(std::string_view pool) const {
  std::uint64_t bytes = 0;
  for (const auto& [key, copy] : copies_)
    if ((pool.empty() || key.pool == pool) && !copy.buffer.expired()) bytes += copy.copied_bytes;
  return bytes;
}

Result<WeightStore::Weight> WeightStore::load(const std::string& name, const WeightPart& part, Device& device,
                                              Layout layout, Reads reads) {
  if (const auto mapped = source_->mapped(part.index); !mapped.empty() && layout == Layout::rows)
    if (auto imported = device.import_host(mapped.subspan(part.offset, part.bytes), source_->owner(part.index))) {
      if (reads == Reads::all) read_in_place(part, device);
      return Weight{.buffer = std::move(*imported), .bytes = part.bytes};
    }
  if (const auto expected = expected_.extract(&device)) loader_.expect(device, expected.mapped());
  auto buffer = [&] {
    const trace::Span allocating(recorder_, trace::Kind::load, "allocating", device.info().id, part.bytes);
    return device.allocate(part.bytes, BufferUse::weights);
  }();
  if (!buffer) return fail_at(fmt::format("weight \"{}\" on {}", name, device.info().id), std::move(buffer).error());
  SHUNT_TRY(loader_.copy(name, part, device, {.buffer = buffer->get(), .bytes = part.bytes, .layout = layout}));
  return Weight{.buffer = std::move(*buffer), .bytes = part.bytes, .was_copied = true};
}

}  // namespace shunt
