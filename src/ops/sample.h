// Concrete uses of an op on awkward operands, made from its row: what conformance runs on every device.
//
// The rule of an op (OpRule::sample) asks a SampleBuilder to pick dtypes, shapes and views and to add operands. Which
// option each pick takes is a list of numbers, so that combinations can be walked through and a case can be made
// again; the elements depend on these numbers, the sizes and the seed alone. Elements outside of a view and in invalid
// rows of a bucket are NaN, or indices that lead nowhere: what reads them shows. Plain values, one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace shunt {

// How an operand lies in its storage.
enum class View : std::uint8_t {
  contiguous,
  offset,  // begins inside its storage
  padded,  // its rows are longer than what is seen of them
  turned,  // the two innermost axes are swapped in memory
};

// Which numbers a tensor holds.
enum class Values : std::uint8_t {
  ordinary,  // from a quarter to two, one in four negative: sums do not come to next to nothing
  special,   // some of them zero, huge, tiny, infinite or not a number; none subnormal, which devices may read as zero
  extreme,   // the same but for the huge
  ties,      // few different ones
  mask,      // zero or minus infinity, zero first in every row
};

// The rows of sample_sizes.def.
enum class Sizes : std::uint8_t {
#define SHUNT_SAMPLE_SIZES(name, columns, entries, weight_rows, context) name,
#include "ops/sample_sizes.def"
};
struct SizesInfo {
  std::string_view name;
  std::uint32_t columns, entries, weight_rows, context;
};
[[nodiscard]] std::span<const SizesInfo> sample_sizes();

// Which sample of an op.
struct SampleCase {
  Sizes sizes = Sizes::awkward;
  std::vector<std::uint32_t> choices;  // the option that each pick takes; picks beyond the end take their first
  friend bool operator==(const SampleCase&, const SampleCase&) = default;
};
// "3.0.1", and of sizes that are not awkward "wide:3.0.1".
[[nodiscard]] std::string to_string(const SampleCase& which);

// Elements of all operands of a sample whose sizes are not awkward.
inline constexpr std::uint64_t kMostSampleElements = std::uint64_t{9} << 20U;

struct SampleTensor {
  Operand operand;
  std::uint64_t offset = 0;  // elements into the storage
  std::vector<std::byte> storage;
};

struct Sample {
  Op op{};
  Attributes attributes;
  std::vector<std::optional<SampleTensor>> inputs;  // nothing: an absent optional one
  Parameters parameters;
  std::vector<std::uint32_t> choices;  // the option that each pick took
  std::vector<std::uint32_t> options;  // how many each pick had
  bool is_too_large = false;           // its operands have more than kMostSampleElements, and some no storage
};

// Extents of axis 0 and how many of its entries are valid.
struct Entries {
  std::uint32_t count = 1;
  Extent extent = Extent::fixed;
  std::uint32_t valid = 1;
};

class SampleBuilder {
 public:
  SampleBuilder(Op op, const SampleCase& wanted, std::uint64_t seed);

  [[nodiscard]] const OpInfo& row() const { return info_of(sample_.op); }
  // Whether the row takes this attribute.
  [[nodiscard]] bool takes(Attr attr) const;
  void set(Attr attr, AttributeValue value) { sample_.attributes.set(attr, std::move(value)); }

  // How many options a pick has must not depend on other picks.
  template <class T>
  [[nodiscard]] T pick(std::span<const T> options) {
    return options[take(options.size())];
  }
  template <class T>
  [[nodiscard]] T pick(std::initializer_list<T> options) {
    return pick(std::span<const T>(options.begin(), options.size()));
  }
  [[nodiscard]] DType pick_floating();
  [[nodiscard]] DType pick_quantized();
  [[nodiscard]] DType pick_weight();  // floating or quantized
  // One, few and many; none; buckets that are full, half full and empty.
  [[nodiscard]] Entries pick_entries();
  // Axis 0 of `entries`, then up to two more, then columns. With `columns` first the sample of rank 1 is a row,
  // otherwise it is a column of entries.
  [[nodiscard]] Shape pick_shape(const Entries& entries, std::uint32_t columns);
  [[nodiscard]] View pick_view() { return pick({View::contiguous, View::offset, View::padded, View::turned}); }
  // One block, a few, and for plain dtypes odd numbers and more than a tile.
  [[nodiscard]] std::uint32_t pick_columns(DType dtype);
  // The two last extents of images; the columns are what the sizes say.
  [[nodiscard]] Shape pick_pixels(std::initializer_list<Shape> options);
  // Of a weight, unless the sizes say otherwise one of `options`.
  [[nodiscard]] std::uint32_t pick_weight_rows(std::initializer_list<std::uint32_t> options);
  // Positions before the first token of a sequence, unless the sizes say otherwise `least`.
  [[nodiscard]] std::uint32_t context(std::uint32_t least) const;

  struct Request {
    DType dtype = DType::F32;
    Shape shape{};
    Extent extent = Extent::fixed;
    TensorKind kind = TensorKind::value;
    View view = View::contiguous;
    Values values = Values::ordinary;
  };
  // Adds the next operand.
  void add(const Request& request);
  void add_indices(const Shape& shape, Extent extent, std::span<const std::int32_t> values);
  void add_absent() { sample_.inputs.emplace_back(); }
  // Random numbers from 0 to limit - 1.
  [[nodiscard]] std::vector<std::int32_t> indices(std::uint32_t count, std::uint32_t limit);
  [[nodiscard]] std::mt19937_64& random() { return random_; }

  [[nodiscard]] Sample finish() && { return std::move(sample_); }

 private:
  [[nodiscard]] std::size_t take(std::size_t options);
  [[nodiscard]] SampleTensor empty_tensor(const Request& request) const;
  void fill(SampleTensor& tensor, Values values);
  void fill_blocks(SampleTensor& tensor);
  [[nodiscard]] double number(Values values, std::uint64_t index, std::uint32_t columns);

  Sample sample_;
  // Adds so many elements. False: they are too many.
  [[nodiscard]] bool has_room(const Shape& shape);

  SampleCase wanted_;
  const SizesInfo& sizes_;
  std::uint64_t elements_ = 0;
  std::mt19937_64 random_;
};

// REQUIRES: the row of `op` is no layout op.
[[nodiscard]] Sample make_sample(Op op, const SampleCase& wanted, std::uint64_t seed);

}  // namespace shunt
