// Concrete uses of an op on awkward operands, made from its row; the conformance test runs them on every device.
//
// The rule of an op (OpRule::sample) asks a SampleBuilder to pick dtypes, shapes and views and to add operands. A list
// of numbers says which option each pick takes, so that tests can walk through combinations and repeat a case. The
// elements depend only on these numbers, the sizes and the seed. Elements outside of a view and in invalid rows of a
// bucket are NaN or invalid indices, so that reading them shows. Plain values, one thread.
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

// The layout of an operand in its storage.
enum class View : std::uint8_t {
  contiguous,
  offset,  // begins after the start of its storage
  padded,  // its rows are longer in storage than in the view
  turned,  // the two innermost axes are swapped in memory
};

// The numbers that a tensor holds.
enum class Values : std::uint8_t {
  ordinary,  // magnitudes from 1/4 to 2, one in four negative, so that sums do not nearly cancel
  special,   // some are zero, huge, tiny, infinite or NaN; none is subnormal, as devices may read those as zero
  extreme,   // the same without huge ones
  ties,      // few distinct ones
  mask,      // zero or minus infinity; every row begins with zero
};

// The rows of sample_sizes.def.
enum class Sizes : std::uint8_t {
#define SHUNT_SAMPLE_SIZES(name, columns, entries, weight_rows, context, cases) name,
#include "ops/sample_sizes.def"
};
enum class SizeCases : std::uint8_t { two, each };
struct SizesInfo {
  std::string_view name;
  std::uint32_t columns, entries, weight_rows, context;
  SizeCases cases;
};
[[nodiscard]] std::span<const SizesInfo> sample_sizes();
[[nodiscard]] std::vector<Sizes> all_sizes();

// Identifies a sample of an op.
struct SampleCase {
  Sizes sizes = Sizes::awkward;
  std::vector<std::uint32_t> choices;  // the option that each pick takes; further picks take their first option
  friend bool operator==(const SampleCase&, const SampleCase&) = default;
};
// Returns "3.0.1", or "wide:3.0.1" if the sizes are not awkward.
[[nodiscard]] std::string to_string(const SampleCase& which);

// The most elements that all operands of a sample may have together, unless its sizes are awkward.
inline constexpr std::uint64_t kMostSampleElements = std::uint64_t{9} << 20U;

struct SampleTensor {
  Operand operand;
  std::uint64_t offset = 0;  // elements into the storage
  std::vector<std::byte> storage;
};

struct Sample {
  Op op{};
  Attributes attributes;
  std::vector<std::optional<SampleTensor>> inputs;  // nullopt: an optional input that is absent
  Parameters parameters;
  std::vector<std::uint32_t> choices;  // the option that each pick took
  std::vector<std::uint32_t> options;  // how many options each pick had
  bool is_too_large = false;           // has more than kMostSampleElements; some operands have no storage
};

// The extent of axis 0, and how many of its entries are valid.
struct Entries {
  std::uint32_t count = 1;
  Extent extent = Extent::fixed;
  std::uint32_t valid = 1;
};

class SampleBuilder {
 public:
  SampleBuilder(Op op, const SampleCase& wanted, std::uint64_t seed);

  [[nodiscard]] const OpInfo& row() const { return info_of(sample_.op); }
  // Returns whether the row takes this attribute.
  [[nodiscard]] bool takes(Attr attr) const;
  void set(Attr attr, AttributeValue value) { sample_.attributes.set(attr, std::move(value)); }

  // REQUIRES: the number of options does not depend on other picks.
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
  // Picks one, few, many or no entries, or a bucket that is full, half full or empty.
  [[nodiscard]] Entries pick_entries();
  // Picks a shape: axis 0 of `entries`, up to two more axes, then columns.
  [[nodiscard]] Shape pick_shape(const Entries& entries, std::uint32_t columns);
  [[nodiscard]] View pick_view() { return pick({View::contiguous, View::offset, View::padded, View::turned}); }
  // Picks one block or a few; for plain dtypes also odd numbers and more than a tile.
  [[nodiscard]] std::uint32_t pick_columns(DType dtype);
  // Picks the last two extents of images; the sizes may override the number of columns.
  [[nodiscard]] Shape pick_pixels(std::initializer_list<Shape> options);
  // Picks the rows of a weight from `options`, unless the sizes give them.
  [[nodiscard]] std::uint32_t pick_weight_rows(std::initializer_list<std::uint32_t> options);
  // Returns how many positions precede the first token of a sequence: `least`, or more if the sizes say so.
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
  // Returns random numbers from 0 to limit - 1.
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
  // Counts the elements of an operand; returns false if the sample has too many.
  [[nodiscard]] bool has_room(const Shape& shape);

  SampleCase wanted_;
  const SizesInfo& sizes_;
  std::uint64_t elements_ = 0;
  std::mt19937_64 random_;
};

// REQUIRES: info_of(op).can_be_sampled().
[[nodiscard]] Sample make_sample(Op op, const SampleCase& wanted, std::uint64_t seed);

}  // namespace shunt
