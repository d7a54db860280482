// Imports an ONNX model as a graph.
//
// Whatever does not depend on the model's inputs is computed during import; the rest becomes nodes. The graph serves
// only the shapes of the given inputs.
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
  Type type = Type::f32;  // in ONNX; the graph uses I32 for all integers and F32 for double
  DType dtype = DType::F32;
  Shape shape;
};

struct Imported {
  Graph graph;
  std::vector<Port> inputs;
  std::vector<Port> outputs;  // in the order of the graph's outputs
  // Source of the graph's weights; owns their memory.
  std::unique_ptr<WeightSource> weights;
};

// `shapes` gives inputs whose extents the model leaves open. `folder` holds the files of external data. Errors:
// unsupported for unknown nodes, attributes and types, naming the node; invalid for a model that contradicts itself;
// io.
[[nodiscard]] Result<Imported> import_model(const Model& model, const std::map<std::string, Shape>& shapes,
                                            const std::string& folder);

}  // namespace shunt::onnx
