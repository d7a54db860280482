// y = x + x on one device, as a program over two buffers; the fixture of tests of failing simulated devices.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt::simulated {

class Doubling : public testing::Test {
 protected:
  static constexpr std::uint32_t kElements = 100;
  static constexpr std::uint64_t kBytes = kElements * sizeof(float);

  // Takes the device that a simulation's open() found and fills x with ones. Fatal unless there is exactly one.
  void open(BackendReport report) {
    report_ = std::move(report);
    ASSERT_EQ(report_.devices.size(), 1U) << report_.absent_because;
    x_ = allocate();
    y_ = allocate();
    ASSERT_NE(x_, nullptr);
    ASSERT_NE(y_, nullptr);
    std::vector<float> ones(kElements, 1.0F);
    ASSERT_TRUE(device().write({x_.get(), 0, kBytes}, std::as_bytes(std::span(ones))).wait().has_value());
    auto program = prepare();
    ASSERT_TRUE(program.has_value()) << program.error().message;
    program_ = std::move(*program);
  }
  void close() {
    program_.reset();
    x_.reset();
    y_.reset();
    report_ = {};
  }

  [[nodiscard]] Device& device() const { return *report_.devices[0]; }
  [[nodiscard]] std::unique_ptr<Buffer> allocate() const {
    auto buffer = device().allocate(kBytes, BufferUse::values);
    EXPECT_TRUE(buffer.has_value());
    return buffer ? std::move(*buffer) : nullptr;
  }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare() {
    const Binding x{x_.get(), 0, kBytes};
    const ProgramOp op{.call = {.op = Op::add, .attributes = &attributes_, .inputs = operands_, .output = &operand_},
                       .inputs = {x, x},
                       .output = {y_.get(), 0, kBytes},
                       .name = "sum"};
    return device().prepare({.name = "sums", .ops = std::span(&op, 1)});
  }
  [[nodiscard]] Event submit(std::optional<std::chrono::nanoseconds> timeout = {}) {
    return device().submit(*program_, {.parameters = {.tokens = kElements}, .timeout = timeout});
  }
  [[nodiscard]] float sum_of_result() {
    std::vector<float> values(kElements);
    EXPECT_TRUE(device().read({y_.get(), 0, kBytes}, std::as_writable_bytes(std::span(values))).wait().has_value());
    return std::accumulate(values.begin(), values.end(), 0.0F);
  }

  BackendReport report_;
  Attributes attributes_;
  Operand operand_ = Operand::contiguous(DType::F32, {kElements, 1}, TensorKind::value, Extent::tokens);
  std::vector<const Operand*> operands_ = {&operand_, &operand_};
  std::unique_ptr<Buffer> x_;
  std::unique_ptr<Buffer> y_;
  std::unique_ptr<Program> program_;
};

}  // namespace shunt::simulated
