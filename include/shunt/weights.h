// Where constant tensors come from: a model file, several of them, memory, or slices in a browser.
//
// A source describes its tensors and hands out their bytes. It must outlive every WeightStore that reads
// from it. All calls are safe from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/tensor.h"

namespace shunt {

struct WeightInfo {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;              // outermost first
  std::uint64_t bytes = 0;  // contiguous, rows as in the file
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  [[nodiscard]] virtual std::span<const WeightInfo> weights() const = 0;

  // Copies `out.size()` bytes from `offset` of tensor `index`. Errors: invalid outside the tensor, io.
  [[nodiscard]] virtual Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) = 0;

  // The tensor's bytes where they can be addressed without a copy, else empty. The memory stays valid
  // and readable for the life of the source, also when the file shrinks: the bytes that are gone then
  // read as zero and health() says so.
  [[nodiscard]] virtual std::span<const std::byte> mapped(std::size_t index) = 0;

  // What keeps the bytes of mapped() valid beyond the life of the source, for devices that a submission may outlive;
  // null: nothing does.
  [[nodiscard]] virtual std::shared_ptr<const void> owner(std::size_t) { return nullptr; }

  // The caller has its own copy of these bytes; the source may let their pages go.
  virtual void release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) = 0;

  // Errors: io once mapped bytes were found missing.
  [[nodiscard]] virtual Status health() const = 0;
};

// Constants that lie in the caller's memory, which must stay as it is for the life of the source.
class MemoryWeights final : public WeightSource {
 public:
  // Errors: invalid where the name is taken, or `bytes` are not those of a contiguous tensor of that dtype and shape.
  [[nodiscard]] Status add(std::string_view name, DType dtype, const Shape& shape, std::span<const std::byte> bytes);

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return infos_; }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override;
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override { return bytes_[index]; }
  void release(std::size_t, std::uint64_t, std::uint64_t) override {}
  [[nodiscard]] Status health() const override { return {}; }

 private:
  std::vector<WeightInfo> infos_;
  std::set<std::string, std::less<>> names_;
  std::vector<std::span<const std::byte>> bytes_;
};

}  // namespace shunt
