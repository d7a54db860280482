// ONNX files with one field damaged at a time, every field in every way that code often gets wrong: a useful error or a
// graph that runs, never a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mutations.h"
#include "onnx/import.h"
#include "proto_tree.h"
#include "sanitized.h"
#include "shunt/computation.h"

namespace shunt::onnx {
namespace {

constexpr std::size_t kMostMessage = 4096;
// Refuses graphs that a damaged extent makes large.
constexpr std::uint64_t kBudget = std::uint64_t{1} << 20U;

void expect_reason(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_LT(error.message.size(), kMostMessage);
}

// Returns whether the bytes are a model that computes its outputs.
bool runs(std::span<const std::byte> bytes, const std::map<std::string, Shape>& shapes, const Runtime& runtime) {
  const auto model = parse_model(bytes);
  if (!model) return expect_reason(model.error()), false;
  auto imported = import_model(*model, shapes, SHUNT_TEST_DATA "/onnx");
  if (!imported) return expect_reason(imported.error()), false;
  const auto computation = Computation::create(std::move(imported->graph), runtime, imported->weights.get());
  if (!computation) return expect_reason(computation.error()), false;
  if (const Status done = (*computation)->run(); !done) return expect_reason(done.error()), false;
  for (std::size_t i = 0; i < (*computation)->output_count(); ++i) {
    std::vector<std::byte> to((*computation)->output(i).operand.span_bytes());
    if (const Status read = (*computation)->read(i, 0, to); !read) return expect_reason(read.error()), false;
  }
  return true;
}

// Returns all replacements to try for one field.
std::vector<ProtoNode> damages_of(const ProtoNode& node) {
  constexpr std::uint64_t kNumbers[] = {0,
                                        1,
                                        ~std::uint64_t{0},
                                        std::uint64_t{1} << 63U,
                                        (std::uint64_t{1} << 63U) - 1,
                                        std::uint64_t{1} << 31U,
                                        0xFFFFFFFF,
                                        std::uint64_t{1} << 40U};
  constexpr std::uint64_t kReals[] = {0, 0xBF800000, 0x7FC00000, 0x7F800000, 0x7149F2CA};  // 0, -1, NaN, infinity, 1e30
  std::vector<ProtoNode> damages;
  const auto add = [&](auto change) {
    damages.push_back(node);
    change(damages.back());
  };
  switch (node.kind) {
    case ProtoNode::Kind::number:
      for (const std::uint64_t number : kNumbers) add([&](ProtoNode& to) { to.value = number; });
      add([&](ProtoNode& to) { ++to.value; });
      add([&](ProtoNode& to) { --to.value; });
      break;
    case ProtoNode::Kind::bits32:
    case ProtoNode::Kind::bits64:
      for (const std::uint64_t real : kReals) add([&](ProtoNode& to) { to.value = real; });
      break;
    case ProtoNode::Kind::bytes:
      for (const char byte : {'\0', '\1', '\x7F', '\xFF'})
        add([&](ProtoNode& to) { std::ranges::fill(to.bytes, byte); });
      add([&](ProtoNode& to) { to.bytes.resize(to.bytes.size() / 2); });
      add([&](ProtoNode& to) { to.bytes += to.bytes; });
      [[fallthrough]];
    case ProtoNode::Kind::message:
      add([&](ProtoNode& to) {
        to.bytes.clear();
        to.fields.clear();
      });
      break;
  }
  add([&](ProtoNode& to) { to.number = to.number == 1 ? 2 : 1; });
  return damages;
}

std::vector<std::byte> as_bytes(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

struct SweptFile {
  const char* name;
  std::map<std::string, Shape> shapes;
};

class SweptOnnx : public testing::TestWithParam<SweptFile> {
 protected:
  void SetUp() override {
    whole_ = bytes_of_file(SHUNT_TEST_DATA "/onnx/" + std::string(GetParam().name) + ".onnx");
    ASSERT_FALSE(whole_.empty());
    auto tree = proto_tree({reinterpret_cast<const char*>(whole_.data()), whole_.size()});
    ASSERT_TRUE(tree.has_value());
    tree_ = std::move(*tree);
    ASSERT_EQ(as_bytes(proto_bytes(tree_)), whole_);
    auto runtime =
        Runtime::create({.threads = 1, .devices = "cpu:simd", .budgets = {{"cpu:simd", kBudget}}, .calibrated = false});
    ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
    runtime_ = std::move(*runtime);
    ASSERT_TRUE(imports(whole_));
    ASSERT_TRUE(runs(whole_, GetParam().shapes, *runtime_));
  }

  static bool imports(std::span<const std::byte> bytes) {
    const auto model = parse_model(bytes);
    if (!model) return expect_reason(model.error()), false;
    const auto imported = import_model(*model, GetParam().shapes, SHUNT_TEST_DATA "/onnx");
    if (!imported) return expect_reason(imported.error()), false;
    EXPECT_FALSE(imported->outputs.empty());
    return true;
  }

  void count(std::string_view what, std::size_t place) {
    SCOPED_TRACE(fmt::format("field {} {}", place, what));
    (runs(as_bytes(proto_bytes(tree_)), GetParam().shapes, *runtime_) ? ran_ : refused_) += 1;
  }

  std::vector<std::byte> whole_;
  ProtoTree tree_;
  std::unique_ptr<Runtime> runtime_;
  std::size_t refused_ = 0;
  std::size_t ran_ = 0;
};

TEST_P(SweptOnnx, EachFieldIsRefusedOrRuns) {
  const std::size_t fields = proto_places(tree_).size();
  ASSERT_GT(fields, 40U);
  for (std::size_t place = 0; place < fields; ++place) {
    // Looked up again each time: replacing a field moves those inside it.
    ProtoNode& field = proto_places(tree_)[place].node();
    ProtoNode whole = field;
    const std::vector<ProtoNode> damages = damages_of(whole);
    for (std::size_t i = 0; i < damages.size(); ++i) {
      field = damages[i];
      count(fmt::format("with damage {}", i), place);
      if (HasFailure()) return;
    }
    field = std::move(whole);
  }
  EXPECT_GT(refused_, fields);
  EXPECT_GT(ran_, fields / 10);
}

TEST_P(SweptOnnx, EachFieldMayBeMissingOrStandTwice) {
  const std::size_t fields = proto_places(tree_).size();
  for (std::size_t place = 0; place < fields; ++place) {
    const ProtoPlace at = proto_places(tree_)[place];
    const auto place_in_list = static_cast<std::ptrdiff_t>(at.index);
    const std::vector<ProtoNode> twice(2, at.node());
    at.list->erase(at.list->begin() + place_in_list);
    count("missing", place);
    at.list->insert(at.list->begin() + place_in_list, twice.begin(), twice.end());
    count("twice", place);
    at.list->erase(at.list->begin() + place_in_list);
    if (HasFailure()) return;
  }
  EXPECT_GT(refused_, fields / 10);
  EXPECT_GT(ran_, fields / 10);
}

TEST_P(SweptOnnx, EachByteIsRefusedOrImported) {
  for (std::size_t at = 0; at < whole_.size(); ++at)
    for (const std::byte byte : test::telling_bytes(at)) {
      std::vector<std::byte> bytes = whole_;
      bytes[at] = byte;
      SCOPED_TRACE(fmt::format("{:#04x} for byte {}", std::to_integer<unsigned>(byte), at));
      static_cast<void>(imports(bytes));
      if (HasFailure()) return;
    }
}

TEST_P(SweptOnnx, CutAtEachByteIsRefusedOrImported) {
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    SCOPED_TRACE(fmt::format("cut at byte {}", size));
    static_cast<void>(imports(std::span(whole_).first(size)));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, SweptOnnx,
                         testing::Values(SweptFile{"convolutions", {}}, SweptFile{"elementwise", {}},
                                         SweptFile{"external", {}}, SweptFile{"shapes", {}},
                                         SweptFile{"transformer", {}}, SweptFile{"perceptron", {{"x", {2, 12}}}}),
                         [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace shunt::onnx
