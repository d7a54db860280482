#!/usr/bin/env python3
"""Small ONNX models, inputs for them, and what onnxruntime computes.

onnx_models.py FOLDER [NAME...]

Needs numpy, onnx and onnxruntime. Writes for each model FOLDER/NAME.onnx, FOLDER/NAME.INPUT.npy for each input, and
FOLDER/NAME.json: {"outputs": [{"name", "shape", "elements"}]}. The model "external" keeps its weights in external.bin.
"""
import argparse
import json
import pathlib

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = numpy.random.default_rng(7)


def values(*shape: int) -> numpy.ndarray:
    return RANDOM.standard_normal(shape).astype(numpy.float32)


class Maker:
    """One model, node by node."""

    def __init__(self, opset: int = 17) -> None:
        self.opset, self.nodes, self.constants, self.inputs, self.outputs, self.feeds = opset, [], [], [], [], {}

    def input(self, name: str, value: numpy.ndarray, open_axes: bool = False) -> str:
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        shape = [f"{name}{axis}" if open_axes and axis == 0 else extent for axis, extent in enumerate(value.shape)]
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.feeds[name] = value
        return name

    def constant(self, value) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(value), name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(numpy.array(numbers, dtype=numpy.int64))

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes) -> str | list:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"{op.lower()}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def output(self, name: str, kind: int = TensorProto.FLOAT) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def perceptron() -> Maker:
    m = Maker(13)
    x = m.input("x", values(5, 12), open_axes=True)
    h = m.node("Relu", m.node("Gemm", x, m.constant(values(20, 12)), m.constant(values(20)), transB=1))
    y = m.node("Gemm", h, m.constant(values(20, 7)), m.constant(values(7)), alpha=0.5)
    m.output(m.node("Softmax", y, axis=-1))
    m.output(m.node("ArgMax", y, axis=1, keepdims=0), TensorProto.INT64)
    return m


def convolutions() -> Maker:
    m = Maker()
    x = m.input("image", values(2, 3, 17, 13))
    x = m.node("Conv", x, m.constant(values(8, 3, 3, 3)), m.constant(values(8)), strides=[2, 1], pads=[1, 0, 1, 2])
    x = m.node("BatchNormalization", x, *(m.constant(each) for each in (values(8), values(8), values(8),
                                                                        numpy.abs(values(8)) + 0.5)))
    x = m.node("MaxPool", m.node("Relu", x), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0])
    x = m.node("Conv", x, m.constant(values(8, 2, 2, 2)), group=4, dilations=[2, 1], pads=[1, 1, 1, 0])
    x = m.node("Conv", x, m.constant(values(6, 8, 2, 3)), auto_pad="SAME_UPPER")
    x = m.node("AveragePool", x, kernel_shape=[2, 2])
    m.output(x)
    y = m.node("Flatten", m.node("GlobalAveragePool", x))
    m.output(m.node("Gemm", y, m.constant(values(6, 4))))
    return m


def transformer() -> Maker:
    m = Maker()
    tokens, width, heads = 6, 16, 2
    ids = m.input("ids", numpy.array([[3, 1, 4, 1, 5, 9]], dtype=numpy.int64))
    x = m.node("Gather", m.constant(values(10, width)), ids)
    x = m.node("Add", x, m.constant(values(1, tokens, width)))
    a = m.node("LayerNormalization", x, m.constant(values(width)), m.constant(values(width)), axis=-1)
    qkv = m.node("MatMul", a, m.constant(values(width, 3 * width)))
    parts = m.node("Split", qkv, m.ints(width, width, width), outputs=3, axis=2)
    shape = m.node("Shape", x)
    split = m.node("Concat", m.node("Slice", shape, m.ints(0), m.ints(2)), m.ints(heads, width // heads), axis=0)
    q, k, v = (m.node("Transpose", m.node("Reshape", part, split), perm=[0, 2, 1, 3]) for part in parts)
    scores = m.node("MatMul", q, m.node("Transpose", k, perm=[0, 1, 3, 2]))
    scores = m.node("Div", scores, m.constant(numpy.float32((width // heads) ** 0.5)))
    mask = numpy.triu(numpy.full((tokens, tokens), -1e4, dtype=numpy.float32), 1)
    attention = m.node("Softmax", m.node("Add", scores, m.constant(mask)), axis=-1)
    mixed = m.node("Transpose", m.node("MatMul", attention, v), perm=[0, 2, 1, 3])
    y = m.node("MatMul", m.node("Reshape", mixed, m.ints(0, 0, -1)), m.constant(values(width, width)))
    y = m.node("Add", x, y)
    m.output(m.node("ReduceMean", y, axes=[1], keepdims=0))
    top, where = m.node("TopK", y, m.ints(3), outputs=2, axis=-1)
    m.output(top)
    m.output(where, TensorProto.INT64)
    return m


def elementwise() -> Maker:
    m = Maker(20)
    x = m.input("x", values(3, 4, 5))
    y = m.input("y", values(4, 5))
    for op in ("Neg", "Abs", "Exp", "Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Softplus", "Relu"):
        m.output(m.node(op, x))
    positive = m.node("Add", m.node("Abs", x), m.constant(numpy.float32(0.25)))
    for op in ("Log", "Sqrt", "Reciprocal"):
        m.output(m.node(op, positive))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        m.output(m.node(op, x, y))
        m.output(m.node(op, y, positive))
    m.output(m.node("Sub", m.constant(values(4, 1)), x))
    m.output(m.node("Gelu", x))
    m.output(m.node("Gelu", x, approximate="tanh"))
    m.output(m.node("Clip", x, m.constant(numpy.float32(-0.5)), m.constant(numpy.float32(0.75))))
    m.output(m.node("Pow", x, m.constant(numpy.float32(2))))
    return m


def shapes() -> Maker:
    m = Maker(18)
    x = m.input("x", values(2, 3, 4, 5))
    m.output(m.node("Transpose", x, perm=[3, 0, 2, 1]))
    m.output(m.node("Concat", m.node("Slice", x, m.ints(1, -2), m.ints(3, 9), m.ints(1, 3)),
                    m.node("Slice", x, m.ints(0, 0), m.ints(2, 2), m.ints(1, 3)), axis=1))
    m.output(m.node("Squeeze", m.node("Gather", x, m.ints(2), axis=1), m.ints(1)))
    m.output(m.node("Unsqueeze", m.node("ReduceMax", x, m.ints(1, 3), keepdims=0), m.ints(0, -1)))
    m.output(m.node("ReduceSum", x, m.ints(0), keepdims=1))
    m.output(m.node("Softmax", x, axis=1))
    m.output(m.node("ArgMax", x, axis=2), TensorProto.INT64)
    m.output(m.node("Resize", x, "", "", m.ints(2, 3, 7, 9), mode="linear"))
    m.output(m.node("Resize", x, "", m.constant(numpy.array([1, 1, 2, 3], dtype=numpy.float32)), mode="nearest"))
    first, second = m.node("Split", x, outputs=2, axis=3, num_outputs=2)
    m.output(m.node("Reshape", first, m.ints(0, -1)))
    m.output(m.node("Cast", m.node("Cast", second, to=TensorProto.FLOAT16), to=TensorProto.FLOAT))
    return m


def external() -> Maker:
    m = Maker()
    x = m.input("x", values(2, 30))
    m.output(m.node("MatMul", x, m.constant(values(30, 40))))
    return m


MODELS = {made.__name__: made for made in (perceptron, convolutions, transformer, elementwise, shapes, external)}


def write(folder: pathlib.Path, name: str) -> None:
    maker = MODELS[name]()
    path = folder / f"{name}.onnx"
    if name == "external":
        onnx.save(maker.model(), path, save_as_external_data=True, location="external.bin", size_threshold=0)
    else:
        onnx.save(maker.model(), path)
    for key, value in maker.feeds.items():
        numpy.save(folder / f"{name}.{key}.npy", value)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    results = session.run(None, maker.feeds)
    outputs = [{"name": info.name, "shape": list(result.shape), "elements": [float(f"{each:.9g}") for each in result.flatten()]}
               for info, result in zip(session.get_outputs(), results)]
    (folder / f"{name}.json").write_text(json.dumps({"outputs": outputs}), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; without one, all")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        write(options.folder, name)


if __name__ == "__main__":
    main()
