// From an ONNX model to a graph of ours.
//
// What does not depend on the model's inputs is computed while importing; the rest becomes nodes. Shapes are those of
// the inputs that are given, so a graph serves these shapes only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/model.h"
#include "shunt/graph.h"
#include "shunt/weights.h"

namespace shunt::onnx {

// An input or output of the imported graph.
struct Port {
  std::string name;
  Type type = Type::f32;  // in ONNX; the graph has I32 for all integers and F32 for double
  DType dtype = DType::F32;
  Shape shape;
};

struct Imported {
  Graph graph;
  std::vector<Port> inputs;
  std::vector<Port> outputs;  // in the order of the graph's
  // Source of the graph's weights, with the memory that they lie in.
  std::unique_ptr<WeightSource> weights;
};

// `shapes`: of the inputs whose extents the model leaves open. `folder`: where files of external data lie. Errors:
// unsupported for nodes, attributes and types that are not there, naming the node; invalid for a model that
// contradicts itself; io.
[[nodiscard]] Result<Imported> import_model(const Model& model, const std::map<std::string, Shape>& shapes,
                                            const std::string& folder);

}  // namespace shunt::onnx
