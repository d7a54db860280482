#include "ops/strips.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "ops/quantize/blocks.h"

namespace shunt {
namespace {

using Byte = std::uint8_t;
using Half = std::uint16_t;
using Word = std::uint32_t;

// The content of a row in a chunk, whatever its order.
struct RowPart {
  std::array<Half, 256> quants{};  // unsigned; of Q8_0 128 too large
  std::array<Half, 4> scales{};    // of each block; MXFP4: exponents
  std::array<Half, 4> minima{};
  std::array<Byte, 16> group_scales{};  // of Q6_K 128 too large
  std::array<Byte, 16> group_minima{};
};

struct Plane {
  Word bits = 0;   // of an element
  Word at = 0;     // offset in the chunk
  Word lower = 0;  // bits of an element in the plane before
};

struct ChunkForm {
  StripChunk chunk;
  std::array<Plane, 2> planes{};
  Word headers = 0;  // offset of what follows the planes
};

constexpr ChunkForm form_of(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
      return {{64, 1024}, {{{16, 0, 0}}}, 1024};
    case DType::Q8_0:
      return {{128, 1088}, {{{8, 0, 0}}}, 1024};
    case DType::Q4_0:
    case DType::IQ4_NL:
      return {{128, 576}, {{{4, 0, 0}}}, 512};
    case DType::MXFP4:
      return {{128, 544}, {{{4, 0, 0}}}, 512};
    case DType::Q4_1:
      return {{128, 640}, {{{4, 0, 0}}}, 512};
    case DType::Q5_0:
      return {{128, 704}, {{{4, 0, 0}, {1, 512, 4}}}, 640};
    case DType::Q5_1:
      return {{128, 768}, {{{4, 0, 0}, {1, 512, 4}}}, 640};
    case DType::Q4_K:
      return {{256, 1152}, {{{4, 0, 0}}}, 1024};
    case DType::Q5_K:
      return {{256, 1408}, {{{4, 0, 0}, {1, 1024, 4}}}, 1280};
    case DType::Q6_K:
      return {{256, 1680}, {{{4, 0, 0}, {2, 1024, 4}}}, 1536};
    case DType::Q2_K:
      return {{256, 672}, {{{2, 0, 0}}}, 512};
    case DType::Q3_K:
      return {{256, 880}, {{{2, 0, 0}, {1, 512, 2}}}, 768};
    case DType::IQ4_XS:
      return {{256, 1088}, {{{4, 0, 0}}}, 1024};
    default:
      return {};
  }
}

#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind)                                \
  static_assert(form_of(DType::name).chunk.bytes ==                                                  \
                form_of(DType::name).chunk.columns / (block_elements) * (block_bytes) * kStripRows); \
  static_assert(form_of(DType::name).chunk.bytes % 16 == 0, "copies of whole chunks are in units of 16 bytes");
#include "ops/dtypes.def"

// ---- A row of blocks, to and from its part of a chunk.

void set_bits(Byte& byte, std::size_t shift, Word bits, Word value) {
  byte = static_cast<Byte>((byte & ~(((1U << bits) - 1U) << shift)) | value << shift);
}

// Nibbles of a block whose byte j holds elements j and j + 16.
void read_nibbles(const Byte (&quants)[16], Half* to) {
  for (std::size_t j = 0; j < 16; ++j) {
    to[j] = quants[j] & 15U;
    to[j + 16] = quants[j] >> 4U;
  }
}
void write_nibbles(const Half* from, Byte (&quants)[16]) {
  for (std::size_t j = 0; j < 16; ++j) quants[j] = static_cast<Byte>((from[j] & 15U) | (from[j + 16] & 15U) << 4U);
}
void read_fifth_bits(const Byte (&high)[4], Half* to) {
  for (std::size_t j = 0; j < 32; ++j) to[j] |= static_cast<Half>((high[j / 8] >> j % 8U & 1U) << 4U);
}
void write_fifth_bits(const Half* from, Byte (&high)[4]) {
  for (std::size_t j = 0; j < 32; ++j) set_bits(high[j / 8], j % 8U, 1, from[j] >> 4U & 1U);
}

template <class Block>
void read_block(const Block& block, RowPart& part, std::size_t i) {
  Half* const quants = &part.quants[32 * i];
  if constexpr (std::is_same_v<Block, Q8_0Block>) {
    for (std::size_t j = 0; j < 32; ++j) quants[j] = static_cast<Byte>(block.quants[j]) ^ 0x80U;
  } else {
    read_nibbles(block.quants, quants);
  }
  if constexpr (requires { block.high_bits; }) read_fifth_bits(block.high_bits, quants);
  if constexpr (requires { block.min; }) part.minima[i] = block.min;
  if constexpr (requires { block.exponent; }) {
    part.scales[i] = block.exponent;
  } else {
    part.scales[i] = block.scale;
  }
}
template <class Block>
void write_block(const RowPart& part, std::size_t i, Block& block) {
  const Half* const quants = &part.quants[32 * i];
  if constexpr (std::is_same_v<Block, Q8_0Block>) {
    for (std::size_t j = 0; j < 32; ++j) block.quants[j] = static_cast<std::int8_t>(quants[j] ^ 0x80U);
  } else {
    write_nibbles(quants, block.quants);
  }
  if constexpr (requires { block.high_bits; }) write_fifth_bits(quants, block.high_bits);
  if constexpr (requires { block.min; }) block.min = part.minima[i];
  if constexpr (requires { block.exponent; }) {
    block.exponent = static_cast<Byte>(part.scales[i]);
  } else {
    block.scale = part.scales[i];
  }
}

void read_block(const F16Block& block, RowPart& part, std::size_t i) { part.quants[i] = block.bits; }
void write_block(const RowPart& part, std::size_t i, F16Block& block) { block.bits = part.quants[i]; }
void read_block(const BF16Block& block, RowPart& part, std::size_t i) { part.quants[i] = block.bits; }
void write_block(const RowPart& part, std::size_t i, BF16Block& block) { block.bits = part.quants[i]; }

// The low two bits of Q2_K and Q3_K.
void read_pairs(const Byte (&quants)[64], RowPart& part) {
  for (std::size_t i = 0; i < 256; ++i) part.quants[i] = quants[i / 128 * 32 + i % 32] >> i % 128U / 32U * 2U & 3U;
}
void write_pairs(const RowPart& part, Byte (&quants)[64]) {
  for (std::size_t i = 0; i < 256; ++i)
    set_bits(quants[i / 128 * 32 + i % 32], i % 128U / 32U * 2U, 2, part.quants[i] & 3U);
}

void read_block(const Q2_KBlock& block, RowPart& part, std::size_t) {
  read_pairs(block.quants, part);
  for (std::size_t i = 0; i < 16; ++i) {
    part.group_scales[i] = block.group_scales[i] & 15U;
    part.group_minima[i] = block.group_scales[i] >> 4U;
  }
  part.scales[0] = block.scale;
  part.minima[0] = block.min;
}
void write_block(const RowPart& part, std::size_t, Q2_KBlock& block) {
  write_pairs(part, block.quants);
  for (std::size_t i = 0; i < 16; ++i)
    block.group_scales[i] = static_cast<Byte>(part.group_scales[i] | part.group_minima[i] << 4U);
  block.scale = part.scales[0];
  block.min = part.minima[0];
}

void read_block(const Q3_KBlock& block, RowPart& part, std::size_t) {
  read_pairs(block.quants, part);
  for (std::size_t i = 0; i < 256; ++i)
    part.quants[i] |= static_cast<Half>((block.high_bits[i % 32] >> i / 32U & 1U) << 2U);
  for (std::size_t i = 0; i < 16; ++i) part.group_scales[i] = q3_group_scale(block.group_scales, i);
  part.scales[0] = block.scale;
}
void write_block(const RowPart& part, std::size_t, Q3_KBlock& block) {
  write_pairs(part, block.quants);
  for (std::size_t i = 0; i < 256; ++i) set_bits(block.high_bits[i % 32], i / 32U, 1, part.quants[i] >> 2U & 1U);
  for (std::size_t i = 0; i < 16; ++i) {
    set_bits(block.group_scales[i % 8], i / 8U * 4U, 4, part.group_scales[i] & 15U);
    set_bits(block.group_scales[8 + i % 4], i / 4U * 2U, 2, part.group_scales[i] >> 4U & 3U);
  }
  block.scale = part.scales[0];
}

// Q4_K and Q5_K.
template <class Block>
void read_superblock(const Block& block, RowPart& part) {
  for (std::size_t g = 0; g < 8; ++g) {
    for (std::size_t l = 0; l < 32; ++l) part.quants[32 * g + l] = block.quants[32 * (g / 2) + l] >> g % 2U * 4U & 15U;
    const KGroup group = k_group(block.group_scales, g);
    part.group_scales[g] = group.scale;
    part.group_minima[g] = group.min;
  }
  part.scales[0] = block.scale;
  part.minima[0] = block.min;
}
template <class Block>
void write_superblock(const RowPart& part, Block& block) {
  for (std::size_t g = 0; g < 8; ++g)
    for (std::size_t l = 0; l < 32; ++l)
      set_bits(block.quants[32 * (g / 2) + l], g % 2U * 4U, 4, part.quants[32 * g + l] & 15U);
  for (std::size_t g = 0; g < 4; ++g) {
    const Word scale = part.group_scales[g + 4];
    const Word min = part.group_minima[g + 4];
    block.group_scales[g] = static_cast<Byte>(part.group_scales[g] | (scale >> 4U) << 6U);
    block.group_scales[g + 4] = static_cast<Byte>(part.group_minima[g] | (min >> 4U) << 6U);
    block.group_scales[g + 8] = static_cast<Byte>((scale & 15U) | (min & 15U) << 4U);
  }
  block.scale = part.scales[0];
  block.min = part.minima[0];
}
void read_block(const Q4_KBlock& block, RowPart& part, std::size_t) { read_superblock(block, part); }
void write_block(const RowPart& part, std::size_t, Q4_KBlock& block) { write_superblock(part, block); }
void read_block(const Q5_KBlock& block, RowPart& part, std::size_t) {
  read_superblock(block, part);
  for (std::size_t i = 0; i < 256; ++i)
    part.quants[i] |= static_cast<Half>((block.high_bits[i % 32] >> i / 32U & 1U) << 4U);
}
void write_block(const RowPart& part, std::size_t, Q5_KBlock& block) {
  write_superblock(part, block);
  for (std::size_t i = 0; i < 256; ++i) set_bits(block.high_bits[i % 32], i / 32U, 1, part.quants[i] >> 4U & 1U);
}

void read_block(const Q6_KBlock& block, RowPart& part, std::size_t) {
  for (std::size_t i = 0; i < 256; ++i) {
    const Word low = Word{block.low_bits[i / 128 * 64 + i % 64]} >> i % 128U / 64U * 4U & 15U;
    const Word high = Word{block.high_bits[i / 128 * 32 + i % 32]} >> i % 128U / 32U * 2U & 3U;
    part.quants[i] = static_cast<Half>(low | high << 4U);
  }
  for (std::size_t i = 0; i < 16; ++i) part.group_scales[i] = static_cast<Byte>(block.group_scales[i]) ^ 0x80U;
  part.scales[0] = block.scale;
}
void write_block(const RowPart& part, std::size_t, Q6_KBlock& block) {
  for (std::size_t i = 0; i < 256; ++i) {
    set_bits(block.low_bits[i / 128 * 64 + i % 64], i % 128U / 64U * 4U, 4, part.quants[i] & 15U);
    set_bits(block.high_bits[i / 128 * 32 + i % 32], i % 128U / 32U * 2U, 2, part.quants[i] >> 4U & 3U);
  }
  for (std::size_t i = 0; i < 16; ++i) block.group_scales[i] = static_cast<std::int8_t>(part.group_scales[i] ^ 0x80U);
  block.scale = part.scales[0];
}

void read_block(const IQ4_XSBlock& block, RowPart& part, std::size_t) {
  for (std::size_t g = 0; g < 8; ++g) {
    for (std::size_t l = 0; l < 32; ++l) part.quants[32 * g + l] = block.quants[16 * g + l % 16] >> l / 16U * 4U & 15U;
    part.group_scales[g] = iq4_group_scale(block, g);
  }
  part.scales[0] = block.scale;
}
void write_block(const RowPart& part, std::size_t, IQ4_XSBlock& block) {
  block.scales_high = 0;
  for (std::size_t g = 0; g < 8; ++g) {
    for (std::size_t l = 0; l < 32; ++l)
      set_bits(block.quants[16 * g + l % 16], l / 16U * 4U, 4, part.quants[32 * g + l] & 15U);
    set_bits(block.scales_low[g / 2], g % 2U * 4U, 4, part.group_scales[g] & 15U);
    block.scales_high = static_cast<Half>(block.scales_high | (part.group_scales[g] >> 4U) << 2U * g);
  }
  block.scale = part.scales[0];
}

// ---- A row's part of a chunk, to and from its bits there.

// One row in a chunk. Its functions say where bits are, and read and write them.
struct ChunkRow {
  std::byte* chunk;
  Word row;

  [[nodiscard]] Word word(Word at) const {
    Word value = 0;
    std::memcpy(&value, chunk + at, sizeof(value));
    return value;
  }
  void set_word(Word at, Word value) const { std::memcpy(chunk + at, &value, sizeof(value)); }
  // Of one element in a plane.
  [[nodiscard]] Word word_at(const Plane& plane, Word columns, Word column) const {
    const Word step = column / 16;
    const Word element = column % 4;
    Word word = step;
    if (plane.bits == 16) word = step * 2 + element / 2;
    if (plane.bits < 8) word = step / 2 * plane.bits / 4;
    const Word words = columns / 4 * plane.bits / 32;
    const Word lane = row * 4 + column % 16 / 4;
    if (words > 4) return plane.at + word / 4 * 512 + lane * 16 + word % 4 * 4;
    return plane.at + (lane * words + word) * 4;
  }
  static Word bit_at(const Plane& plane, Word column) {
    const Word step = column / 16;
    const Word element = column % 4;
    if (plane.bits == 16) return element % 2 * 16;
    if (plane.bits == 8) return element * 8;
    const Word groups = 4 / plane.bits;  // in a word
    return (plane.lower + 4 * (step % 2) + plane.bits * (step / 2 % groups) + 8 * (element / 2) + 16 * (element % 2)) %
           32;
  }
  [[nodiscard]] Word bits(const Plane& plane, Word columns, Word column) const {
    return word(word_at(plane, columns, column)) >> bit_at(plane, column) & ((1U << plane.bits) - 1U);
  }
  void set_bits(const Plane& plane, Word columns, Word column, Word value) const {
    const Word at = word_at(plane, columns, column);
    const Word shift = bit_at(plane, column);
    const Word mask = ((1U << plane.bits) - 1U) << shift;
    set_word(at, (word(at) & ~mask) | (value << shift & mask));
  }
};

void put_quants(const ChunkForm& form, const RowPart& part, const ChunkRow& to) {
  for (const Plane& plane : form.planes)
    for (Word c = 0; plane.bits != 0 && c < form.chunk.columns; ++c)
      to.set_bits(plane, form.chunk.columns, c, Word{part.quants[c]} >> plane.lower);
}
void get_quants(const ChunkForm& form, const ChunkRow& from, RowPart& part) {
  for (Word c = 0; c < form.chunk.columns; ++c) {
    Word value = 0;
    for (const Plane& plane : form.planes)
      if (plane.bits != 0) value |= from.bits(plane, form.chunk.columns, c) << plane.lower;
    part.quants[c] = static_cast<Half>(value);
  }
}

// A field of the headers: `bits` of a value at `bit` of the word at `at`. Fields of 16 bits and fewer do not cross
// words.
struct Field {
  Word at;
  Word bit;
  Word bits;
};

// Calls field(value, field, shift) for each field: it holds the bits of `value` from `shift` on.
template <class Part, class Visit>
void each_header(DType dtype, Word headers, Word row, Part& part, Visit visit) {
  // A pair's first and second value are in the lower and in the upper half of a word.
  const auto pair = [&](auto& values, Word number, Word at, Word bit, Word bits, Word shift) {
    visit(values[2 * number], Field{at, bit, bits}, shift);
    visit(values[2 * number + 1], Field{at, bit + 16, bits}, shift);
  };
  const auto half = [&](auto& value, Word at) { visit(value, Field{at / 4 * 4, at % 4 * 8, 16}, Word{0}); };
  switch (dtype) {
    case DType::Q8_0:
    case DType::Q4_0:
    case DType::Q5_0:
    case DType::IQ4_NL:
      for (Word i = 0; i < 4; ++i) half(part.scales[i], headers + row * 8 + i * 2);
      break;
    case DType::Q4_1:
    case DType::Q5_1:
      for (Word i = 0; i < 4; ++i) half(part.scales[i], headers + row * 16 + i * 2);
      for (Word i = 0; i < 4; ++i) half(part.minima[i], headers + row * 16 + 8 + i * 2);
      break;
    case DType::MXFP4:
      for (Word i = 0; i < 4; ++i) visit(part.scales[i], Field{headers + row * 4, i * 8, 8}, Word{0});
      break;
    case DType::Q4_K:
    case DType::Q5_K: {
      const Word at = headers + row * 16;
      half(part.scales[0], at);
      half(part.minima[0], at + 2);
      for (Word p = 0; p < 4; ++p) {
        const Word word = at + 4 + p / 2 * 4;
        pair(part.group_scales, p, word, p % 2 * 6, 6, 0);
        pair(part.group_minima, p, word, 12 + p % 2 * 2, 2, 4);
        pair(part.group_minima, p, at + 12, p * 4, 4, 0);
      }
      break;
    }
    case DType::Q6_K:
      for (Word p = 0; p < 8; ++p) pair(part.group_scales, p, headers + row * 16 + p % 4 * 4, p / 4 * 8, 8, 0);
      half(part.scales[0], headers + 128 + row * 2);
      break;
    case DType::Q2_K:
      for (Word p = 0; p < 8; ++p) {
        pair(part.group_scales, p, headers + row * 16 + p / 4 * 4, p % 4 * 4, 4, 0);
        pair(part.group_minima, p, headers + row * 16 + 8 + p / 4 * 4, p % 4 * 4, 4, 0);
      }
      half(part.scales[0], headers + 128 + row * 4);
      half(part.minima[0], headers + 128 + row * 4 + 2);
      break;
    case DType::Q3_K: {
      const Word at = headers + row * 12;
      for (Word p = 0; p < 3; ++p) {
        pair(part.group_scales, p, at + p * 4, 0, 6, 0);
        pair(part.group_scales, p + 4, at + p * 4, 6, 6, 0);
      }
      for (Word i = 0; i < 2; ++i) {
        pair(part.group_scales, 3 + 4 * i, at + i * 4, 12, 4, 0);
        pair(part.group_scales, 3 + 4 * i, at + 8, 12 + i * 2, 2, 4);
      }
      half(part.scales[0], headers + 96 + row * 2);
      break;
    }
    case DType::IQ4_XS: {
      const Word at = headers + row * 8;
      half(part.scales[0], at);
      pair(part.group_scales, 0, at + 4, 0, 6, 0);
      pair(part.group_scales, 1, at + 4, 6, 6, 0);
      for (Word i = 0; i < 2; ++i) {
        visit(part.group_scales[4 + i], Field{at, 16 + i * 8, 6}, Word{0});
        visit(part.group_scales[6 + i], Field{at, 22 + i * 8, 2}, Word{0});
      }
      pair(part.group_scales, 3, at + 4, 12, 4, 2);
      break;
    }
    default:
      break;
  }
}

void put_part(DType dtype, const ChunkForm& form, const RowPart& part, const ChunkRow& to) {
  put_quants(form, part, to);
  each_header(dtype, form.headers, to.row, part, [&](const auto& value, Field field, Word shift) {
    const Word mask = ((1U << field.bits) - 1U) << field.bit;
    to.set_word(field.at, (to.word(field.at) & ~mask) | (Word{value} >> shift << field.bit & mask));
  });
}
void get_part(DType dtype, const ChunkForm& form, const ChunkRow& from, RowPart& part) {
  get_quants(form, from, part);
  each_header(dtype, form.headers, from.row, part, [&](auto& value, Field field, Word shift) {
    const Word bits = from.word(field.at) >> field.bit & ((1U << field.bits) - 1U);
    value = static_cast<std::remove_reference_t<decltype(value)>>(value | bits << shift);
  });
}

// ---- Whole matrices.

template <class Block>
void read_row(const std::byte* row, Word blocks, RowPart& part) {
  for (Word i = 0; i < blocks; ++i) {
    Block block;
    std::memcpy(&block, row + std::size_t{i} * sizeof(Block), sizeof(Block));
    read_block(block, part, i);
  }
}
template <class Block>
void write_row(const RowPart& part, Word blocks, std::byte* row) {
  for (Word i = 0; i < blocks; ++i) {
    Block block{};
    write_block(part, i, block);
    std::memcpy(row + std::size_t{i} * sizeof(Block), &block, sizeof(Block));
  }
}

using RowReader = void (*)(const std::byte* row, Word blocks, RowPart& part);
using RowWriter = void (*)(const RowPart& part, Word blocks, std::byte* row);
struct RowAccess {
  RowReader read;
  RowWriter write;
};

RowAccess row_access(DType dtype) {
  switch (dtype) {
#define SHUNT_ROWS_OF(name) \
  case DType::name:         \
    return {read_row<name##Block>, write_row<name##Block>};
    SHUNT_ROWS_OF(F16)
    SHUNT_ROWS_OF(BF16)
#define SHUNT_EACH_quantized(name) SHUNT_ROWS_OF(name)
#define SHUNT_EACH_floating(name)
#define SHUNT_EACH_integer(name)
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) SHUNT_EACH_##kind(name)
#include "ops/dtypes.def"
#undef SHUNT_EACH_quantized
#undef SHUNT_EACH_floating
#undef SHUNT_EACH_integer
#undef SHUNT_ROWS_OF
    default:
      return {};
  }
}

// Calls visit(row, first byte of its part of a chunk among rows, chunk among strips) for each row and chunk.
template <class Visit>
void each_part(const ChunkForm& form, std::uint64_t columns, std::uint64_t bytes, Visit visit) {
  const std::uint64_t chunks = columns / form.chunk.columns;
  const std::uint64_t part_bytes = form.chunk.bytes / kStripRows;
  for (std::uint64_t at = 0; at < bytes; at += part_bytes) {
    const std::uint64_t row = at / part_bytes / chunks;
    const std::uint64_t chunk = row / kStripRows * chunks + at / part_bytes % chunks;
    visit(static_cast<Word>(row % kStripRows), at, chunk * form.chunk.bytes);
  }
}

}  // namespace

StripChunk strip_chunk(DType dtype) { return form_of(dtype).chunk; }

bool has_strips(DType dtype, std::uint64_t rows, std::uint64_t columns) {
  const StripChunk chunk = strip_chunk(dtype);
  return chunk.columns != 0 && columns != 0 && columns % chunk.columns == 0 && rows % kStripRowsTogether == 0;
}

void rows_to_strips(DType dtype, std::uint64_t columns, std::span<const std::byte> rows, std::span<std::byte> strips) {
  const ChunkForm form = form_of(dtype);
  const Word blocks = form.chunk.columns / info_of(dtype).block_elements;
  const RowAccess access = row_access(dtype);
  each_part(form, columns, rows.size(), [&](Word row, std::uint64_t at, std::uint64_t chunk) {
    RowPart part;
    access.read(rows.data() + at, blocks, part);
    put_part(dtype, form, part, {strips.data() + chunk, row});
  });
}

void strips_to_rows(DType dtype, std::uint64_t columns, std::span<const std::byte> strips, std::span<std::byte> rows) {
  const ChunkForm form = form_of(dtype);
  const Word blocks = form.chunk.columns / info_of(dtype).block_elements;
  const RowAccess access = row_access(dtype);
  each_part(form, columns, rows.size(), [&](Word row, std::uint64_t at, std::uint64_t chunk) {
    RowPart part;
    // ChunkRow also writes, but not here.
    get_part(dtype, form, {const_cast<std::byte*>(strips.data() + chunk), row}, part);
    access.write(part, blocks, rows.data() + at);
  });
}

}  // namespace shunt
