// The smallest program: four sums on a device.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "devices/device.h"

namespace shunt::test {

class OneAdd {
 public:
  explicit OneAdd(Device& device) : device_(device), status_(prepare()) {}

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] Status run(std::optional<std::chrono::nanoseconds> timeout = {}) {
    if (!status_) return status_;
    return device_.submit(*program_, {.timeout = timeout}).wait();
  }
  [[nodiscard]] std::vector<float> result() {
    std::vector<float> sums(4);
    status_ = device_.read(of(2), std::as_writable_bytes(std::span(sums))).wait();
    return sums;
  }

 private:
  // Each of the operands begins at a multiple of every alignment there is.
  static constexpr std::uint64_t kApart = 256;

  [[nodiscard]] Binding of(std::size_t operand) { return {buffer_.get(), operand * kApart, 16}; }

  Status prepare() {
    SHUNT_TRY_ASSIGN(buffer_, device_.allocate(3 * kApart, BufferUse::values));
    const std::array<float, 4> a = {1, 2, 3, 4};
    const std::array<float, 4> b = {10, 20, 30, 40};
    SHUNT_TRY(device_.write(of(0), std::as_bytes(std::span(a))).wait());
    SHUNT_TRY(device_.write(of(1), std::as_bytes(std::span(b))).wait());
    const ProgramOp op{
        .call = {Op::add, &attributes_, inputs_, &operand_}, .inputs = {of(0), of(1)}, .output = of(2), .name = "sum"};
    SHUNT_TRY_ASSIGN(program_, device_.prepare({.name = "one add", .ops = {&op, 1}}));
    return {};
  }

  Device& device_;
  Attributes attributes_;
  Operand operand_ = Operand::contiguous(DType::F32, Shape{4});
  std::array<const Operand*, 2> inputs_{&operand_, &operand_};
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Program> program_;
  Status status_;
};

}  // namespace shunt::test
