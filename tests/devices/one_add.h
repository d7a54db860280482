// The smallest program: one addition of four floats on a device.
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
  // `first`: the summand 1, 2, 3, 4 unless another is bound. `brings`: the program declares that its sum will be read.
  explicit OneAdd(Device& device, const Binding& first = {}, bool brings = false)
      : device_(device), first_(first), status_(prepare(brings)) {}

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] Status run(std::optional<std::chrono::nanoseconds> timeout = {}) {
    return start({.timeout = timeout}).wait();
  }
  [[nodiscard]] Event start(const Submission& submission = {}) {
    if (!status_) return Event(status_);
    return device_.submit(*program_, submission);
  }
  [[nodiscard]] Binding sum() { return of(2); }
  [[nodiscard]] std::vector<float> result() {
    std::vector<float> sums(4);
    status_ = device_.read(of(2), std::as_writable_bytes(std::span(sums))).wait();
    return sums;
  }

 private:
  // Operands are spaced by a multiple of every alignment in use.
  static constexpr std::uint64_t kApart = 256;

  [[nodiscard]] Binding of(std::size_t operand) { return {buffer_.get(), operand * kApart, 16}; }

  Status prepare(bool brings) {
    SHUNT_TRY_ASSIGN(buffer_, device_.allocate(3 * kApart, BufferUse::values));
    const std::array<float, 4> a = {1, 2, 3, 4};
    const std::array<float, 4> b = {10, 20, 30, 40};
    SHUNT_TRY(device_.write(of(0), std::as_bytes(std::span(a))).wait());
    SHUNT_TRY(device_.write(of(1), std::as_bytes(std::span(b))).wait());
    const ProgramOp op{.call = {Op::add, &attributes_, inputs_, &operand_},
                       .inputs = {first_.buffer == nullptr ? of(0) : first_, of(1)},
                       .output = of(2),
                       .name = "sum"};
    const Binding result = sum();
    const std::span<const Binding> results(&result, brings ? 1 : 0);
    SHUNT_TRY_ASSIGN(program_, device_.prepare({.name = "one add", .ops = {&op, 1}, .results = results}));
    return {};
  }

  Device& device_;
  Binding first_;
  Attributes attributes_;
  Operand operand_ = Operand::contiguous(DType::F32, Shape{4});
  std::array<const Operand*, 2> inputs_{&operand_, &operand_};
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<Program> program_;
  Status status_;
};

}  // namespace shunt::test
