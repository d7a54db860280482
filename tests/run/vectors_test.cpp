// Graphs of one op on each CPU device against outside vectors: results of ggml (tests/data/vectors) and, for products,
// sums in double over the same blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/gguf/gguf.h"
#include "ops/each_target.h"
#include "ops/quantize/blocks.h"
#include "plan/planner.h"
#include "run/executable.h"
#include "run/opened_devices.h"
#include "shunt/runtime.h"

namespace shunt {
namespace {

using models::GgufFile;

constexpr const char* kFolder = SHUNT_TEST_DATA "/vectors";

std::string path_of(std::string_view file) { return std::string(kFolder) + "/" + std::string(file) + ".gguf"; }

template <class T>
T take(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    std::abort();
  }
  return std::move(*result);
}

// Returns all values of a tensor of the file, decoded; integers as numbers.
std::vector<float> decoded(GgufFile& file, std::string_view name) {
  const auto index = file.find(name);
  EXPECT_TRUE(index.has_value()) << "no tensor " << name;
  if (!index) return {};
  const WeightInfo& info = file.weights()[*index];
  std::vector<float> values(info.shape.elements());
  decode_row(info.dtype, file.mapped(*index).data(), values.size(), values.data());
  return values;
}

std::vector<std::int32_t> integers(GgufFile& file, std::string_view name) {
  const std::size_t index = file.find(name).value_or(0);
  EXPECT_EQ(file.weights()[index].dtype, DType::I32) << name;
  std::vector<std::int32_t> numbers(file.weights()[index].shape.elements());
  std::memcpy(numbers.data(), file.mapped(index).data(), numbers.size() * sizeof numbers[0]);
  return numbers;
}

enum class Rounding : std::uint8_t { none, F16, Q8_0, Q8_K };

// Rounds each `block` of elements to multiples of a scale, at most 127 of them.
void round_to_8_bits(std::vector<float>& values, std::size_t block, bool half_scale) {
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    float largest = 0;
    for (std::size_t i = begin; i < begin + block; ++i) largest = std::max(largest, std::abs(values[i]));
    const float scale = largest / 127;
    const float stored = half_scale ? f16_to_f32(f32_to_f16(scale)) : scale;
    for (std::size_t i = begin; i < begin + block && scale != 0; ++i)
      values[i] = stored * std::nearbyint(values[i] / scale);
  }
}

std::vector<float> rounded(std::vector<float> values, Rounding rounding) {
  if (rounding == Rounding::F16)
    for (float& value : values) value = f16_to_f32(f32_to_f16(value));
  if (rounding == Rounding::Q8_0) round_to_8_bits(values, 32, true);
  if (rounding == Rounding::Q8_K) round_to_8_bits(values, 256, false);
  return values;
}

// Builds the graph of a case over its file's tensors, and the contents of its inputs.
class CaseBuilder {
 public:
  CaseBuilder(GgufFile& file, Rounding rounding) : file_(file), rounding_(rounding) {}

  // A tensor of the file that the graph reads as stored.
  Tensor stored(std::string_view name) {
    const WeightInfo& info = file_.weights()[file_.find(name).value_or(0)];
    return graph.weight(name, info.dtype, info.shape);
  }
  // A tensor of the file that ggml rounds before multiplying.
  Tensor activation(std::string_view name) {
    return input(name, DType::F32, shape_of(name), rounded(decoded(file_, name), rounding_));
  }
  template <class T>
  Tensor input(std::string_view name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    inputs[std::string(name)].assign(bytes.begin(), bytes.end());
    return graph.input(name, dtype, shape);
  }
  [[nodiscard]] Shape shape_of(std::string_view name) const {
    return file_.weights()[file_.find(name).value_or(0)].shape;
  }
  [[nodiscard]] GgufFile& file() { return file_; }

  GraphBuilder graph;
  std::map<std::string, std::vector<std::byte>> inputs;

 private:
  GgufFile& file_;
  Rounding rounding_;
};

Tensor linear(CaseBuilder& build) { return build.graph.linear(build.activation("src1"), build.stored("src0")); }

Tensor rms_norm(CaseBuilder& build) { return build.graph.rms_norm(build.stored("src0"), {{Attr::epsilon, 1e-5F}}); }

Tensor softmax(CaseBuilder& build) {
  return build.graph.softmax(build.stored("src0"), Tensor{}, {{Attr::scale, 0.125F}});
}

Tensor swiglu(CaseBuilder& build) { return build.graph.swiglu(build.stored("src0"), build.stored("src1")); }

Tensor rotary(CaseBuilder& build, std::uint32_t halves) {
  const Tensor positions = build.input("src1", DType::I32, build.shape_of("src1"), integers(build.file(), "src1"));
  return build.graph.rotary(build.stored("src0"), positions, Tensor{},
                            {{Attr::rotary_dims, 64U}, {Attr::rotary_base, 10000.0F}, {Attr::rotary_halves, halves}});
}
Tensor rotary_of_pairs(CaseBuilder& build) { return rotary(build, 0); }
Tensor rotary_of_halves(CaseBuilder& build) { return rotary(build, 1); }

// Returns how many leading positions each token sees: the zeros in its row of the mask, which must come first.
std::vector<std::int32_t> last_visible(GgufFile& file, std::uint32_t tokens, std::uint32_t positions) {
  const std::vector<float> mask = decoded(file, "mask");
  std::vector<std::int32_t> last;
  for (std::uint32_t token = 0; token < tokens; ++token) {
    const auto row = mask.begin() + static_cast<std::ptrdiff_t>(std::size_t{token} * positions);
    const auto seen = std::find_if(row, row + positions, [](float value) { return value != 0; }) - row;
    EXPECT_TRUE(std::all_of(row + seen, row + positions, [](float value) { return std::isinf(value); }));
    last.push_back(static_cast<std::int32_t>(seen - 1));
  }
  return last;
}

// Writes the file's keys and values [kv_heads, positions, head_dim] through the cache, into scattered pages in another
// order than the positions. The file's query is [heads, tokens, head_dim].
Tensor attention(CaseBuilder& build) {
  constexpr std::uint32_t kPage = 32;
  const Shape keys = build.shape_of("k");
  const Shape query = build.shape_of("q");
  const std::uint32_t page_count = keys[1] / kPage;
  std::vector<std::int32_t> every(keys[1]);
  std::vector<std::int32_t> page_table(page_count);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < page_count; ++i) page_table[i] = static_cast<std::int32_t>(i * 5 % page_count + 1);

  GraphBuilder& graph = build.graph;
  const Tensor positions = build.input("positions", DType::I32, {keys[1]}, every);
  const Tensor sequences = build.input("sequences", DType::I32, {keys[1]}, std::vector<std::int32_t>(keys[1]));
  const Tensor pages = build.input("pages", DType::I32, {1, page_count}, page_table);
  const auto cached = [&](std::string_view name) {
    Tensor x = build.stored(name);
    const bool plain = build.file().weights()[*build.file().find(name)].dtype == DType::F16;
    if (!plain) x = graph.dequantize(x, {{Attr::to, DType::F32}});
    const Tensor state = graph.state(std::string("cache.") + std::string(name), plain ? DType::F16 : DType::F32,
                                     {page_count + 2, kPage, keys[0], keys[2]});
    return graph.cache_write(state, graph.permute(x, {{Attr::axes, Shape{1, 0, 2}}}), positions, sequences, pages);
  };
  const Tensor last = build.input("last", DType::I32, {query[1]}, last_visible(build.file(), query[1], keys[1]));
  const Tensor rows = build.input("rows", DType::I32, {query[1]}, std::vector<std::int32_t>(query[1]));
  const Tensor turned = graph.permute(build.activation("q"), {{Attr::axes, Shape{1, 0, 2}}});
  return graph.attention(turned, cached("k"), cached("v"), last, rows, pages, {}, {{Attr::scale, 0.125F}});
}

// src1 [rows, k] times src0 [m, k], summed in double over the decoded blocks.
std::vector<double> product(GgufFile& file) {
  const std::vector<float> weights = decoded(file, "src0");
  const std::vector<float> x = decoded(file, "src1");
  const std::size_t k = file.weights()[*file.find("src0")].shape.columns();
  std::vector<double> sums;
  for (std::size_t row = 0; row < x.size(); row += k)
    for (std::size_t out = 0; out < weights.size(); out += k) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i)
        sum += static_cast<double>(weights[out + i]) * static_cast<double>(x[row + i]);
      sums.push_back(sum);
    }
  return sums;
}

// Attention in double over the decoded keys and values: a two-pass softmax over what each token sees.
std::vector<double> weighted_mean(GgufFile& file) {
  const std::vector<float> q = decoded(file, "q");
  const std::vector<float> k = decoded(file, "k");
  const std::vector<float> v = decoded(file, "v");
  const Shape query = file.weights()[*file.find("q")].shape;  // [heads, tokens, head_dim]
  const Shape keys = file.weights()[*file.find("k")].shape;   // [kv_heads, positions, head_dim]
  const std::vector<std::int32_t> last = last_visible(file, query[1], keys[1]);
  const std::size_t dim = query[2];
  std::vector<double> result(q.size());  // [tokens, heads, head_dim]
  for (std::size_t head = 0; head < query[0]; ++head)
    for (std::size_t token = 0; token < query[1]; ++token) {
      const float* own = &q[(head * query[1] + token) * dim];
      const std::size_t first = head / (query[0] / keys[0]) * keys[1] * dim;  // of this group's keys
      double* out = &result[(token * query[0] + head) * dim];
      double total = 0;
      for (std::size_t position = 0; position <= static_cast<std::size_t>(last[token]); ++position) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i)
          score += static_cast<double>(own[i]) * static_cast<double>(k[first + position * dim + i]);
        const double weight = std::exp(score / 8);
        total += weight;
        for (std::size_t i = 0; i < dim; ++i) out[i] += weight * static_cast<double>(v[first + position * dim + i]);
      }
      for (std::size_t i = 0; i < dim; ++i) out[i] /= total;
    }
  return result;
}

using Formula = std::vector<double> (*)(GgufFile&);

struct Vector {
  const char* file;
  const char* ggml_op;
  Tensor (*build)(CaseBuilder&);
  Formula formula;
  Rounding rounding;
  double tolerance;
};

std::ostream& operator<<(std::ostream& out, const Vector& vector) { return out << vector.file; }

constexpr Vector kVectors[] = {
#define SHUNT_VECTOR(file, ggml_op, build, formula, rounding, tolerance) \
  {#file, ggml_op, build, formula, Rounding::rounding, tolerance},
#include "run/vectors.def"
};

// Runs the case on one device and returns its result.
std::vector<float> run_on(Device& device, GgufFile& file, const Vector& vector, Rounding rounding) {
  CaseBuilder build(file, rounding);
  build.graph.output(vector.build(build));
  Graph graph = take(std::move(build.graph).finish());
  Device* const devices[] = {&device};
  Plan plan = take(make_plan({.graph = &graph, .devices = devices}));
  WeightStore weights(&file);
  StateStore state;
  ArenaStore arenas;
  auto executable =
      take(Executable::create(std::move(graph), std::move(plan),
                              {.devices = devices, .weights = &weights, .state = &state, .arenas = &arenas}));
  for (const auto& [name, bytes] : build.inputs) {
    const Status written = executable->write_input(*executable->graph().find(name), bytes);
    EXPECT_TRUE(written.has_value()) << written.error().message;
  }
  const Status ran = executable->run({});
  EXPECT_TRUE(ran.has_value()) << ran.error().message;
  const TensorId output = executable->graph().outputs()[0];
  std::vector<float> values(executable->graph().tensor(output).operand.shape.elements());
  EXPECT_TRUE(executable->read_output(0, 0, std::as_writable_bytes(std::span(values))).has_value());
  return values;
}

double nmse(const std::vector<float>& actual, const std::vector<double>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    error += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    power += std::pow(expected[i], 2);
  }
  return error / power;
}

class OutsideVector : public testing::TestWithParam<Vector> {
 protected:
  void SetUp() override {
    file_ = take(GgufFile::open(path_of(GetParam().file)));
    ASSERT_EQ(file_->metadata().string("case.op").value_or("?"), GetParam().ggml_op);
    runtime_ = take(Runtime::create({.threads = 2, .devices = "cpu:scalar,cpu:simd"}));
    ASSERT_EQ(opened(*runtime_).handles().size(), 2U);
  }

  // Calls body(device) for the scalar device, and for the SIMD device on every instruction set of this machine.
  template <class Body>
  void for_each_device(Body body) {
    {
      SCOPED_TRACE("cpu:scalar");
      body(*opened(*runtime_).handles()[0]);
    }
    test::for_each_simd_target_and_baseline([&] { body(*opened(*runtime_).handles()[1]); });
  }

  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(OutsideVector, IsReproduced) {
  const std::vector<float> dst = decoded(*file_, "dst");
  const std::vector<double> expected(dst.begin(), dst.end());
  for_each_device([&](Device& device) {
    const auto actual = run_on(device, *file_, GetParam(), GetParam().rounding);
    EXPECT_LE(nmse(actual, expected), GetParam().tolerance);
  });
}

class Formulas : public OutsideVector {};

TEST_P(Formulas, InDoubleAreReached) {
  const std::vector<double> expected = GetParam().formula(*file_);
  for_each_device(
      [&](Device& device) { EXPECT_LE(nmse(run_on(device, *file_, GetParam(), Rounding::none), expected), 1e-10); });
}

std::vector<Vector> with_formulas() {
  std::vector<Vector> some;
  std::ranges::copy_if(kVectors, std::back_inserter(some),
                       [](const Vector& vector) { return vector.formula != nullptr; });
  return some;
}

std::string file_of(const testing::TestParamInfo<Vector>& test) { return test.param.file; }

INSTANTIATE_TEST_SUITE_P(Files, OutsideVector, testing::ValuesIn(kVectors), file_of);
INSTANTIATE_TEST_SUITE_P(Files, Formulas, testing::ValuesIn(with_formulas()), file_of);

TEST(OutsideVectors, EveryFileIsTested) {
  std::multiset<std::string> listed;
  for (const Vector& vector : kVectors) listed.insert(vector.file);
  std::multiset<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    EXPECT_EQ(entry.path().extension(), ".gguf") << entry.path();
    found.insert(entry.path().stem().string());
  }
  ASSERT_FALSE(error) << kFolder << ": " << error.message();
  // Equal counts too, so no file is listed twice.
  EXPECT_EQ(listed, found);
}

}  // namespace
}  // namespace shunt
