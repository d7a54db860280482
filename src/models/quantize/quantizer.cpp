#include "models/quantize/quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/system/thread_pool.h"
#include "models/gguf/gguf.h"
#include "models/gguf/gguf_writer.h"
#include "models/quantize/mixture.h"
#include "ops/quantize/blocks.h"
#include "ops/quantize/encode.h"

namespace shunt::models {
namespace {

constexpr std::uint64_t kPiece = 1U << 16;  // elements that a thread converts at a time; whole blocks of any dtype
constexpr std::uint64_t kPiecesAtOnce = 64;
constexpr float kLargestF16 = 65504.0F;

// A tensor to convert. Rows are whole blocks of both dtypes, so the tensor is one long row.
struct Conversion {
  const WeightInfo& info;
  std::span<const std::byte> source;
  DType to;

  // Bytes before element `element` in the source and in the result.
  [[nodiscard]] std::uint64_t source_bytes(std::uint64_t element) const { return bytes_before(info.dtype, element); }
  [[nodiscard]] std::uint64_t result_bytes(std::uint64_t element) const { return bytes_before(to, element); }

 private:
  static std::uint64_t bytes_before(DType dtype, std::uint64_t element) {
    return element / info_of(dtype).block_elements * info_of(dtype).block_bytes;
  }
};

constexpr std::uint64_t kNone = ~std::uint64_t{0};

// Returns the index of the first element that the result cannot hold, or kNone.
std::uint64_t unfit_element(std::span<const float> values, DType to) {
  const float largest = to == DType::F16 ? kLargestF16 : std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i]) <= largest)) return i;
  return kNone;
}

// Converts elements [begin, end) into `out` on all threads. Returns the first element that does not fit.
std::uint64_t convert(const Conversion& conversion, std::uint64_t begin, std::uint64_t end, std::byte* out,
                      ThreadPool& pool) {
  std::atomic<std::uint64_t> next_piece{0};
  std::atomic<std::uint64_t> unfit{kNone};
  pool.run([&](std::uint32_t) {
    std::vector<float> values(std::min(kPiece, end - begin));
    for (;;) {
      const std::uint64_t first = begin + kPiece * next_piece.fetch_add(1);
      if (first >= end) return;
      const std::span<float> piece(values.data(), std::min(kPiece, end - first));
      decode_row(conversion.info.dtype, conversion.source.data() + conversion.source_bytes(first), piece.size(),
                 piece.data());
      if (const std::uint64_t bad = unfit_element(piece, conversion.to); bad != kNone) {
        std::uint64_t seen = unfit.load();
        while (first + bad < seen && !unfit.compare_exchange_weak(seen, first + bad)) {
        }
      }
      encode_row(conversion.to, piece.data(), piece.size(),
                 out + conversion.result_bytes(first) - conversion.result_bytes(begin));
    }
  });
  return unfit.load();
}

Status convert_tensor(const Conversion& conversion, GgufWriter& writer, std::vector<std::byte>& buffer,
                      ThreadPool& pool) {
  const std::uint64_t elements = conversion.info.shape.elements();
  for (std::uint64_t begin = 0; begin < elements; begin += kPiece * kPiecesAtOnce) {
    const std::uint64_t end = std::min(elements, begin + kPiece * kPiecesAtOnce);
    buffer.resize(conversion.result_bytes(end) - conversion.result_bytes(begin));
    const std::uint64_t unfit = convert(conversion, begin, end, buffer.data(), pool);
    if (unfit != kNone)
      return fail(Code::invalid, fmt::format("tensor {}: element {} is not finite or too large for {}",
                                             quoted_name(conversion.info.name), unfit, name_of(conversion.to)));
    SHUNT_TRY(writer.write(buffer));
  }
  return {};
}

Status check_source(const WeightInfo& info, DType to) {
  if (info.dtype == to || info_of(info.dtype).kind != DTypeKind::quantized || info_of(to).kind == DTypeKind::floating)
    return {};
  return fail(Code::invalid, fmt::format("tensor {} is {} already; quantizing it again to {} would lose more than "
                                         "needed: begin from the F16 or F32 file",
                                         quoted_name(info.name), name_of(info.dtype), name_of(to)));
}

Metadata new_metadata(const Metadata& old, const Mixture& mixture) {
  Metadata metadata = old;
  metadata.set("general.file_type", mixture.file_type);
  // The version of the block formats, which other programs expect.
  if (info_of(mixture.base).kind == DTypeKind::quantized)
    metadata.set("general.quantization_version", std::uint32_t{2});
  for (const std::string_view key : {"split.no", "split.count", "split.tensors.count"}) metadata.erase(key);
  return metadata;
}

Result<MixtureModel> mixture_model(const GgufFile& model) {
  const Metadata& metadata = model.metadata();
  const std::string architecture(metadata.string_or("general.architecture", "").value_or(""));
  SHUNT_TRY_ASSIGN(const std::uint32_t layers, metadata.u32_or(architecture + ".block_count", 0));
  SHUNT_TRY_ASSIGN(const std::uint32_t experts, metadata.u32_or(architecture + ".expert_count", 0));
  // Some models have a number of heads per layer; these count as not sharing heads.
  const std::uint32_t heads = metadata.u32_or(architecture + ".attention.head_count", 1).value_or(1);
  const std::uint32_t kv_heads = metadata.u32_or(architecture + ".attention.head_count_kv", heads).value_or(heads);
  return MixtureModel{.layers = layers,
                      .tied = !model.find("output.weight").has_value(),
                      .query_groups = kv_heads == 0 ? 1 : heads / kv_heads,
                      .experts = experts};
}

Status quantize_model(GgufFile& model, const std::string& out, const Mixture& mixture, const QuantizeOptions& options) {
  SHUNT_TRY_ASSIGN(const MixtureModel kind, mixture_model(model));
  std::vector<GgufTensor> tensors;
  std::vector<std::string> notes;
  for (const WeightInfo& info : model.weights()) {
    ChosenDType choice = choose_dtype(mixture, info, kind);
    SHUNT_TRY(check_source(info, choice.dtype));
    tensors.push_back({.name = info.name, .dtype = choice.dtype, .shape = info.shape});
    notes.push_back(std::move(choice.note));
  }
  SHUNT_TRY_ASSIGN(auto writer,
                   GgufWriter::create(out, new_metadata(model.metadata(), mixture), tensors, options.on_write));
  ThreadPool pool(options.threads, {});
  SHUNT_TRY(pool.status());
  std::vector<std::byte> buffer;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const WeightInfo& info = model.weights()[i];
    if (options.on_tensor)
      options.on_tensor({.index = i,
                         .count = tensors.size(),
                         .name = info.name,
                         .shape = info.shape,
                         .from = info.dtype,
                         .to = tensors[i].dtype,
                         .note = notes[i]});
    const std::span<const std::byte> source = model.mapped(i);
    if (info.dtype == tensors[i].dtype)
      SHUNT_TRY(writer->write(source));
    else
      SHUNT_TRY(convert_tensor({info, source, tensors[i].dtype}, *writer, buffer, pool));
    model.release(i, 0, info.bytes);
  }
  SHUNT_TRY(model.health());
  return writer->finish();
}

}  // namespace

Status quantize_file(const std::string& in, const std::string& out, std::string_view type,
                     const QuantizeOptions& options) {
  SHUNT_TRY_ASSIGN(const Mixture mixture, mixture_from_name(type));
  SHUNT_TRY_ASSIGN(auto model, GgufFile::open(in));
  return quantize_model(*model, out, mixture, options);
}

}  // namespace shunt::models
