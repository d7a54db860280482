// A weight in the host's memory that is copied to the simulated CUDA device for the duration of a step; the fixture of
// tests of such copies.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <span>
#include <vector>

#include "devices/cpu/memory.h"
#include "simulated/doubling.h"
#include "simulated/simulated.h"

namespace shunt::simulated {

class WeightCopies : public Doubling {
 protected:
  void SetUp() override { open(Simulation::open("cuda")); }
  void TearDown() override {
    Simulation::control().set_fault(Fault::none);
    weight_.reset();
    close();
    EXPECT_EQ(Simulation::control().live_objects(), before_);
  }

  // Fills the host's memory with bytes of a matrix, which is a weight of the device.
  void make(DType dtype, std::uint32_t rows, std::uint32_t columns) {
    rows_ = {.dtype = dtype, .columns = columns};
    const auto bytes = bytes_of(dtype, {rows, columns});
    ASSERT_TRUE(bytes.has_value());
    content_.resize(*bytes);
    std::mt19937 random(rows + columns);
    for (std::byte& each : content_) each = static_cast<std::byte>(random());
    host_ = cpu::wrap_host(content_, nullptr);
    auto weight = device().allocate(*bytes, BufferUse::values);
    ASSERT_TRUE(weight.has_value());
    weight_ = std::move(*weight);
  }
  [[nodiscard]] Event copy(Layout layout, std::uint64_t offset, std::uint64_t bytes) {
    return device().copy_weight(device(), {.buffer = host_.get(), .offset = offset, .bytes = bytes},
                                {.buffer = weight_.get(), .offset = offset, .bytes = bytes, .layout = layout}, rows_);
  }
  [[nodiscard]] Event copy(Layout layout) { return copy(layout, 0, content_.size()); }
  [[nodiscard]] Result<std::shared_ptr<const void>> pin(std::uint64_t offset, std::uint64_t bytes) {
    return device().pin_host(std::span(content_).subspan(offset, bytes), HostAccess::reads, nullptr);
  }
  // Returns what the device has.
  [[nodiscard]] std::vector<std::byte> came() {
    std::vector<std::byte> bytes(content_.size());
    EXPECT_TRUE(device().read({weight_.get(), 0, bytes.size()}, bytes).wait().has_value());
    return bytes;
  }

  Simulation simulation_;
  std::uint64_t before_ = Simulation::control().live_objects();
  MatrixRows rows_;
  std::vector<std::byte> content_;
  std::unique_ptr<Buffer> host_;
  std::unique_ptr<Buffer> weight_;
};

}  // namespace shunt::simulated
