// Any bytes as an ONNX model: an error that says something, or a graph that can be run. Mutations keep the wire format
// right (tests/proto_tree.h): they change, remove, repeat and exchange fields.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../tests/proto_tree.h"
#include "onnx/import.h"
#include "require.h"
#include "shunt/computation.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer gives it.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace shunt;

// Limits on what running a graph may take: larger ones are refused by their size.
constexpr std::uint64_t kBudget = std::uint64_t{1} << 20U;
constexpr std::uint32_t kOpenExtent = 2;

const Runtime& runtime() {
  static const std::unique_ptr<Runtime> kRuntime =
      *Runtime::create({.threads = 1, .devices = "cpu:simd", .budgets = {{"cpu:simd", kBudget}}, .calibrated = false});
  return *kRuntime;
}

// The caller gives extents where the model leaves them open.
std::map<std::string, Shape> open_shapes(const onnx::Model& model) {
  std::map<std::string, Shape> shapes;
  for (const onnx::ValueInfo& input : model.inputs) {
    if (std::ranges::all_of(input.dims, [](const auto& extent) { return extent.has_value(); })) continue;
    Shape shape;
    for (const auto& extent : input.dims)
      if (shape.rank() < kMaxRank)
        shape.append(extent ? static_cast<std::uint32_t>(std::clamp<std::int64_t>(*extent, 0, 64)) : kOpenExtent);
    shapes.emplace(input.name, shape);
  }
  return shapes;
}

void run(onnx::Imported imported) {
  const auto computation = Computation::create(std::move(imported.graph), runtime(), imported.weights.get());
  if (!answered(computation)) return;
  for (const onnx::Port& port : imported.inputs) {
    const std::vector<std::byte> bytes(Operand::contiguous(port.dtype, port.shape).span_bytes(), std::byte{1});
    require((*computation)->write(port.name, bytes).has_value());
  }
  if (!answered((*computation)->run())) return;
  require((*computation)->output_count() == imported.outputs.size());
  for (std::size_t i = 0; i < imported.outputs.size(); ++i) {
    std::vector<std::byte> bytes((*computation)->output(i).operand.span_bytes());
    static_cast<void>(answered((*computation)->read(i, 0, bytes)));
  }
}

// Takes over another field whole, or changes what is in this one; a message has nothing of its own.
void change(ProtoNode& node, const ProtoNode& other, std::minstd_rand& random) {
  constexpr std::uint64_t kTelling[] = {0,
                                        1,
                                        2,
                                        7,
                                        ~std::uint64_t{0},
                                        std::uint64_t{1} << 63U,
                                        (std::uint64_t{1} << 63U) - 1,
                                        std::uint64_t{1} << 31U,
                                        0xFFFFFFFF,
                                        0x7FC00000,
                                        0x7F800000,
                                        0xBF800000};
  if (random() % 3 == 0) {
    const std::uint32_t number = node.number;
    node = ProtoNode(other);
    node.number = number;
  } else if (node.kind == ProtoNode::Kind::bytes) {
    const std::size_t size = node.bytes.size();
    node.bytes.resize(size + 16);
    node.bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(node.bytes.data()), size, size + 16));
  } else if (random() % 2 == 0) {
    node.value = kTelling[random() % std::size(kTelling)];
  } else {
    node.value += random() % 17 - 8;
  }
}

void mutate(ProtoTree& tree, std::minstd_rand& random) {
  const std::vector<ProtoPlace> places = proto_places(tree);
  if (places.empty()) return;
  const ProtoPlace& place = places[random() % places.size()];
  ProtoTree& list = *place.list;
  const auto at = list.begin() + static_cast<std::ptrdiff_t>(place.index);
  // Before anything moves.
  const ProtoNode other = places[random() % places.size()].node();
  switch (random() % 8) {
    case 0:
      list.erase(at);
      break;
    case 1:
      list.insert(at, ProtoNode(*at));
      break;
    case 2:
      list.insert(at, other);
      break;
    case 3:
      std::swap(*at, list[random() % list.size()]);
      break;
    case 4:
      at->number = 1 + random() % 15;
      break;
    default:
      change(*at, other, random);
      break;
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = onnx::parse_model(std::as_bytes(std::span(data, size)));
  if (!answered(model)) return 0;
  auto imported = onnx::import_model(*model, open_shapes(*model), "nowhere");
  if (!answered(imported)) return 0;
  require(!imported->outputs.empty());
  run(std::move(*imported));
  return 0;
}

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  std::minstd_rand random(seed);
  auto tree = proto_tree({reinterpret_cast<const char*>(data), size});
  if (!tree || tree->empty() || random() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::uint32_t changes = 1 + random() % 3;
  for (std::uint32_t i = 0; i < changes; ++i) mutate(*tree, random);
  const std::string bytes = proto_bytes(*tree);
  if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::ranges::copy(bytes, data);
  return bytes.size();
}
