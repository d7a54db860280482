#include "graph/row_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ops/op.h"

namespace shunt {
namespace {

class Splitter {
 public:
  Splitter(const Graph& graph, std::span<const RowSplit> splits)
      : graph_(graph), whole_(graph.tensors().size()), rows_(graph.tensors().size()), parts_(graph.tensors().size()) {
    for (const RowSplit& split : splits) split_of_.emplace(split.weight, &split);
  }

  Result<Graph> split() {
    std::vector<bool> is_read(graph_.tensors().size(), false);
    for (const Node& node : graph_.nodes())
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != kNone && (split_at(node) == nullptr || i != kWeight)) is_read[node.inputs[i]] = true;
    for (TensorId id = 0; id < graph_.tensors().size(); ++id) {
      const TensorInfo& tensor = graph_.tensor(id);
      // A weight used only in parts is not needed whole.
      if (tensor.producer == kNone && (is_read[id] || tensor.operand.kind != TensorKind::weight)) add_leaf(id);
    }
    for (const Node& node : graph_.nodes()) SHUNT_TRY(add(node));
    for (const TensorId output : graph_.outputs()) builder_.output(whole(output));
    SHUNT_TRY_ASSIGN(Graph split, std::move(builder_).finish());
    split.set_numerics(graph_.numerics());
    return split;
  }

 private:
  static constexpr std::size_t kInput = 0;  // operands of a linear
  static constexpr std::size_t kWeight = 1;

  void add_leaf(TensorId id) {
    const TensorInfo& tensor = graph_.tensor(id);
    const Operand& operand = tensor.operand;
    Tensor& leaf = whole_[id];
    if (operand.kind == TensorKind::input)
      leaf = builder_.input(tensor.name, operand.dtype, operand.shape, operand.extent);
    else if (operand.kind == TensorKind::state)
      leaf = builder_.state(tensor.name, operand.dtype, operand.shape);
    else if (tensor.rows_of.empty())
      leaf = builder_.weight(tensor.name, operand.dtype, operand.shape);
    else
      leaf = builder_.weight_rows(tensor.rows_of, operand.dtype, tensor.first_row, operand.shape[0],
                                  operand.shape.columns());
  }

  // Returns how the weight of a linear is split; null if it is not, and for other nodes.
  [[nodiscard]] const RowSplit* split_at(const Node& node) const {
    if (node.op != Op::linear) return nullptr;
    const TensorInfo& weight = graph_.tensor(node.inputs[kWeight]);
    if (weight.operand.kind != TensorKind::weight || weight.producer != kNone) return nullptr;
    const auto place = split_of_.find(weight.name);
    return place == split_of_.end() ? nullptr : place->second;
  }

  Status add(const Node& node) {
    if (const RowSplit* split = split_at(node)) {
      const Operand& weight = graph_.tensor(node.inputs[kWeight]).operand;
      const std::uint64_t rows = std::accumulate(split->rows.begin(), split->rows.end(), std::uint64_t{0});
      if (rows != weight.shape[0])
        return fail(Code::invalid, fmt::format("weight \"{}\"{} is split into parts of {} rows in all", split->weight,
                                               to_string(weight.shape), rows));
      static_cast<void>(whole(node.inputs[kInput]));
      put_off(node, split->rows);
    } else if (is_by_part(node)) {
      put_off(node, rows_[node.inputs[0]]);
    } else {
      whole_[node.output] = copy_of(node, [this](TensorId input) { return whole(input); }, node.name);
    }
    return {};
  }

  // Defers adding parts until one of them is needed whole, so that all parts of a device are adjacent.
  void put_off(const Node& node, std::span<const std::uint32_t> rows) {
    rows_[node.output] = rows;
    parts_[node.output].resize(rows.size());
    waiting_.push_back(&node);
  }

  // Returns whether a node is an elementwise op whose inputs are all split alike.
  [[nodiscard]] bool is_by_part(const Node& node) const {
    return info_of(node.op).op_class == OpClass::elementwise && std::ranges::all_of(node.inputs, [&](TensorId input) {
             return input != kNone && !rows_[input].empty() && std::ranges::equal(rows_[input], rows_[node.inputs[0]]);
           });
  }

  // Adds the first part last: other devices can begin before it, and what follows continues on its device.
  void add_waiting() {
    std::size_t parts = 0;
    for (const Node* node : waiting_) parts = std::max(parts, rows_[node->output].size());
    while (parts-- > 0)
      for (const Node* node : waiting_)
        if (parts < rows_[node->output].size()) add_part(*node, parts);
    waiting_.clear();
  }

  void add_part(const Node& node, std::size_t part) {
    const auto input_of = [&](TensorId input) {
      if (node.op != Op::linear) return parts_[input][part];
      if (input == node.inputs[kInput]) return input_of_part(input, part);
      const std::span<const std::uint32_t> rows = rows_[node.output];
      const Operand& weight = graph_.tensor(input).operand;
      const std::uint32_t first = std::accumulate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(part), 0U);
      return builder_.weight_rows(graph_.tensor(input).name, weight.dtype, first, rows[part], weight.shape.columns());
    };
    parts_[node.output][part] = copy_of(node, input_of, fmt::format("{}[{}]", node.name, part));
  }

  // Returns the input of a part of a linear: its own norm of x, if x is normalized.
  Tensor input_of_part(TensorId x, std::size_t part) {
    const NodeId scale = graph_.tensor(x).producer;
    if (part == 0 || scale == kNone || graph_.nodes()[scale].op != Op::mul) return whole(x);
    const Node& scaled = graph_.nodes()[scale];
    const NodeId norm = graph_.tensor(scaled.inputs[0]).producer;
    if (norm == kNone || graph_.nodes()[norm].op != Op::rms_norm) return whole(x);
    const auto [place, is_new] = norms_.try_emplace({x, part});
    if (!is_new) return place->second;
    const auto name = [&](NodeId node) { return fmt::format("{}[{}]", graph_.nodes()[node].name, part); };
    const Tensor normalized =
        copy_of(graph_.nodes()[norm], [this](TensorId input) { return whole(input); }, name(norm));
    const auto input_of = [&](TensorId input) { return input == scaled.inputs[0] ? normalized : whole(input); };
    return place->second = copy_of(scaled, input_of, name(scale));
  }

  Tensor copy_of(const Node& node, const auto& input_of, std::string_view name) {
    std::vector<Tensor> inputs;
    for (const TensorId input : node.inputs) inputs.push_back(input == kNone ? Tensor{} : input_of(input));
    const Tensor made = builder_.add_node(node.op, inputs, node.attributes);
    builder_.name(made, name);
    return made;
  }

  Tensor whole(TensorId id) {
    if (whole_[id].id != kNone || parts_[id].empty()) return whole_[id];
    add_waiting();
    const std::string& name = graph_.tensor(id).name;
    Tensor made = parts_[id].front();
    for (std::size_t part = 1; part < parts_[id].size(); ++part) {
      made = builder_.concat(made, parts_[id][part], {{Attr::axis, graph_.tensor(id).operand.shape.rank() - 1}});
      builder_.name(made, part + 1 == parts_[id].size() ? name : fmt::format("{}[0:{}]", name, part + 1));
    }
    return whole_[id] = made;
  }

  const Graph& graph_;
  std::map<std::string_view, const RowSplit*> split_of_;
  GraphBuilder builder_;
  std::vector<Tensor> whole_;                                 // by tensor of graph_; none: not made (yet)
  std::vector<std::span<const std::uint32_t>> rows_;          // of the parts of each split tensor
  std::vector<std::vector<Tensor>> parts_;                    // of each split tensor
  std::vector<const Node*> waiting_;                          // computed by part, and not yet added
  std::map<std::pair<TensorId, std::size_t>, Tensor> norms_;  // by the normalized tensor, and the part
};

}  // namespace

Result<Graph> split_rows(const Graph& graph, std::span<const RowSplit> splits) {
  return Splitter(graph, splits).split();
}

}  // namespace shunt
