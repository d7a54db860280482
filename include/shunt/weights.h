// Sources of constant tensors: model files, memory, or slices in a browser.
//
// A source describes its tensors and gives access to their bytes. It must outlive every WeightStore that reads from it.
// All calls are safe from many threads.
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
  std::uint64_t bytes = 0;  // of the contiguous tensor, rows as in the file
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  [[nodiscard]] virtual std::span<const WeightInfo> weights() const = 0;

  // Copies `out.size()` bytes from `offset` of tensor `index`. Errors: invalid outside the tensor, io.
  [[nodiscard]] virtual Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) = 0;

  // Returns the tensor's bytes if they can be addressed without a copy, else none. The memory stays readable for the
  // life of the source, even if the file shrinks. Missing bytes then read as zero, and health() returns an error.
  [[nodiscard]] virtual std::span<const std::byte> mapped(std::size_t index) = 0;

  // Returns an owner that keeps the bytes of mapped() valid beyond the life of the source; null if there is none. It is
  // for devices that a submission may outlive.
  [[nodiscard]] virtual std::shared_ptr<const void> owner(std::size_t) { return nullptr; }

  // Returns when these bytes of mapped() are in memory, so that reading them does not wait for a disk; a failure only
  // costs time. The default is for sources that are in memory.
  virtual void fetch(std::size_t /*index*/, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}

  // Tells the source that the caller has copied these bytes, so it may release their pages.
  virtual void release(std::size_t index, std::uint64_t offset, std::uint64_t bytes) = 0;

  // Errors: io after mapped bytes were found missing.
  [[nodiscard]] virtual Status health() const = 0;
};

// Constants in the caller's memory, which must stay valid and unchanged for the life of the source.
class MemoryWeights final : public WeightSource {
 public:
  // Adds a tensor. Errors: invalid if the name is taken, or if the size of `bytes` does not fit dtype and shape.
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
