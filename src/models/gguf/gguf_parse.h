// Reads the header of one GGUF file (versions 2 and 3, little-endian): metadata and tensor records.
//
// Nothing in the file is trusted. Every count, length and offset is checked against the available bytes before any
// allocation. Thus a header takes at most about four times its size in memory. Format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. A pure function; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf/metadata.h"
#include "shunt/weights.h"

namespace shunt::models {

inline constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF" as a little-endian number
inline constexpr std::uint32_t kGgufArrayType = 9;
inline constexpr std::uint32_t kGgufDefaultAlignment = 32;
inline constexpr std::uint32_t kGgufMaxAlignment = 1U << 20;
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";

// How to treat tensors of a type that is not in ops/dtypes.def: as an error, or in a list of their own.
enum class ForeignTypes : std::uint8_t { refuse, list };

struct ForeignTensor {
  std::string name;
  std::string type;  // "IQ2_XXS", or "type 99" for an unknown number
  Shape shape;
  std::uint64_t bytes = 0;  // 0 if unknown
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint32_t alignment = kGgufDefaultAlignment;
  std::uint64_t data_offset = 0;  // of the first byte of tensor data, from the start of the file
  Metadata metadata;
  std::vector<WeightInfo> tensors;
  std::vector<std::uint64_t> offsets;  // of each tensor, from the start of the file
  std::vector<ForeignTensor> foreign;
};

// Errors: invalid (not a GGUF file, damaged, truncated), unsupported (another version, byte order or tensor type).
// Messages give offsets; the caller adds the file's name.
[[nodiscard]] Result<GgufHeader> parse_gguf(std::span<const std::byte> file,
                                            ForeignTypes foreign = ForeignTypes::refuse);

// Returns a power of two that keeps elements of every dtype aligned. Errors: invalid.
[[nodiscard]] Result<std::uint32_t> gguf_alignment(const Metadata& metadata);

// Makes a name from a file safe to print: quoted, escaped and not too long.
[[nodiscard]] std::string quoted_name(std::string_view name);
[[nodiscard]] std::unexpected<Error> invalid(std::string message);

// Parses the layer's number, 12, from the name of a tensor or node: "blk.12.ffn_down.weight".
[[nodiscard]] std::optional<std::uint32_t> layer_of(std::string_view name);

}  // namespace shunt::models
