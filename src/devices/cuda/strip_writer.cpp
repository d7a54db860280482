#include "devices/cuda/strip_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/strips.h"
#include "ops/strips/strip_moves.h"

namespace shunt::cuda {
namespace {

struct LayOut {
  CudaCall call;
  RowsToStripsArgs args;
};
static_assert(sizeof(LayOut) <= StripWriter::kCallBytes);

Result<CudaEntry> rows_to_strips_entry() {
  const auto module = std::ranges::find(cuda_modules(), "rows_to_strips", &CudaModule::name);
  if (module == cuda_modules().end()) return fail(Code::unsupported, "this build has no kernel rows_to_strips");
  return CudaEntry{.module = &*module, .name = "shunt_rows_to_strips"};
}

}  // namespace

Result<FunctionHandle> StripWriter::kernel_for(DType dtype, const Settle& settle) {
  if (const auto known = strips_.find(dtype); known != strips_.end()) return known->second.kernel;
  const StripMoves moves = strip_moves(dtype);
  const std::span<const std::byte> table = std::as_bytes(std::span(moves.table));
  Strips made;
  SHUNT_TRY_ASSIGN(const CudaEntry entry, rows_to_strips_entry());
  SHUNT_TRY_ASSIGN(made.kernel, kernels_.of(entry, 0));
  SHUNT_TRY_ASSIGN(made.moves, CudaBuffer::create(context_, table.size()));
  SHUNT_TRY(transfer_.write(made.moves->address(), table, settle));
  return strips_.emplace(dtype, std::move(made)).first->second.kernel;
}

void StripWriter::write_call(std::span<std::byte> call, Address rows, const MatrixRows& of, Address to) const {
  const StripChunk chunk = strip_chunk(of.dtype);
  const LayOut made{
      .call = {.output = to, .inputs = {rows}, .constants = strips_.at(of.dtype).moves->address()},
      .args = {.part_bytes = chunk.bytes / kStripRows, .chunks = of.columns / chunk.columns, .words = chunk.bytes / 4}};
  std::memcpy(call.data(), &made, sizeof(made));
}

int StripWriter::launch(const DriverFunctions& driver, FunctionHandle kernel, StreamHandle stream, Address call,
                        std::uint64_t bytes, DType dtype) {
  CudaShares shares;
  CudaCopies copies{};  // which that kernel does not read
  void* arguments[] = {&call, &shares, &copies};
  const auto chunks = static_cast<unsigned>(bytes / strip_chunk(dtype).bytes);
  return driver.launch(kernel, chunks, 1, 1, kRowsToStripsThreads, 1, 1, 0, stream, arguments, nullptr);
}

}  // namespace shunt::cuda
