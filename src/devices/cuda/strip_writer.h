// Lays out rows of weights as strips, by a kernel (rows_to_strips). Owned by one device; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "devices/cuda/program.h"
#include "devices/cuda/transfer.h"

namespace shunt::cuda {

class StripWriter {
 public:
  // The bytes that the kernel's call takes, in memory of the device. They keep what follows aligned for the bus.
  static constexpr std::uint64_t kCallBytes = 256;

  // `kernels` and `transfer` must outlive it.
  StripWriter(std::shared_ptr<Context> context, Kernels& kernels, Transfer& transfer)
      : context_(std::move(context)), kernels_(kernels), transfer_(transfer) {}

  // Gets the kernel ready for a dtype, and returns it. Errors: unsupported; those of the driver.
  [[nodiscard]] Result<FunctionHandle> kernel_for(DType dtype, const Settle& settle);
  // Writes the call that lays out `rows` of the device's memory. REQUIRES: kernel_for() was called for their dtype.
  void write_call(std::span<std::byte> call, Address rows, const MatrixRows& of, Address to) const;
  // Makes the stream lay out `bytes` of rows by a call that is in the device's memory by then. Returns the driver's
  // answer. Any thread.
  [[nodiscard]] static int launch(const DriverFunctions& driver, FunctionHandle kernel, StreamHandle stream,
                                  Address call, std::uint64_t bytes, DType dtype);

 private:
  struct Strips {
    FunctionHandle kernel = nullptr;
    std::unique_ptr<CudaBuffer> moves;  // the table of StripMoves
  };

  std::shared_ptr<Context> context_;
  Kernels& kernels_;
  Transfer& transfer_;
  std::map<DType, Strips> strips_;
};

}  // namespace shunt::cuda
