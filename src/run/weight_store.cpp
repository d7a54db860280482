#include "run/weight_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shunt {
namespace {

constexpr std::uint64_t kChunkBytes = 4U << 20U;

}  // namespace

WeightStore::WeightStore(WeightSource* source) : source_(source) {
  if (source_ == nullptr) return;
  for (std::size_t index = 0; index < source_->weights().size(); ++index)
    index_of_.emplace(source_->weights()[index].name, index);
}

Result<Binding> WeightStore::acquire(const TensorInfo& weight, Device& device) {
  const auto place = index_of_.find(weight.name);
  if (place == index_of_.end()) return fail(Code::invalid, fmt::format("the model has no tensor \"{}\"", weight.name));
  const WeightInfo& info = source_->weights()[place->second];
  if (info.dtype != weight.operand.dtype || info.shape != weight.operand.shape)
    return fail(Code::invalid,
                fmt::format("tensor \"{}\" is {}{}, the graph wants {}{}", weight.name, name_of(info.dtype),
                            to_string(info.shape), name_of(weight.operand.dtype), to_string(weight.operand.shape)));
  if (weight.operand.layout != Layout::rows)
    return fail(Code::unsupported,
                fmt::format("weight \"{}\" is wanted in layout {}; weights can be loaded as rows only", weight.name,
                            static_cast<unsigned>(weight.operand.layout)));
  Key key{weight.name, device.info().memory_pool, weight.operand.layout};
  auto copy = copies_.find(key);
  if (copy == copies_.end()) {
    auto loaded = load(place->second, device);
    if (!loaded)
      return fail_at(fmt::format("weight \"{}\" on {}", weight.name, device.info().id), std::move(loaded).error());
    copy = copies_.emplace(std::move(key), std::move(*loaded)).first;
  }
  return Binding{.buffer = copy->second.get(), .offset = 0, .bytes = info.bytes};
}

Status WeightStore::read(std::string_view weight, std::uint64_t offset, std::span<std::byte> to) const {
  return source_->read(index_of_.find(weight)->second, offset, to);
}

void WeightStore::clear() {
  copies_.clear();
  copied_bytes_ = 0;
}

Result<std::unique_ptr<Buffer>> WeightStore::load(std::size_t index, Device& device) {
  const WeightInfo& info = source_->weights()[index];
  if (const auto mapped = source_->mapped(index); !mapped.empty())
    if (auto imported = device.import_host(mapped)) return imported;
  SHUNT_TRY_ASSIGN(std::unique_ptr<Buffer> buffer, device.allocate(info.bytes, BufferUse::weights));
  std::vector<std::byte> chunk(std::min(info.bytes, kChunkBytes));
  for (std::uint64_t offset = 0; offset < info.bytes; offset += chunk.size()) {
    const std::span<std::byte> part(chunk.data(), std::min<std::uint64_t>(chunk.size(), info.bytes - offset));
    SHUNT_TRY(source_->read(index, offset, part));
    SHUNT_TRY(device.write({.buffer = buffer.get(), .offset = offset, .bytes = part.size()}, part).wait());
    source_->release(index, offset, part.size());
  }
  copied_bytes_ += info.bytes;
  return buffer;
}

}  // namespace shunt
