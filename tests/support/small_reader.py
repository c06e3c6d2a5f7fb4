"""A reader that is small enough to be made for a test: its network looks words up in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

NONE = "[CLS]"
"""The token whose score is that of no answer."""


def small_reader(
    folder: Path,
    scores: Mapping[str, float],
    relevance: float | None = None,
    support: bool = False,
) -> Path:
    """A folder with a reader that gives each word its score to begin and to end an answer.

    Words without a score have -9; that of ``NONE`` stands for no answer. ``relevance`` makes it one
    with a second head; with ``support`` it has a third, whose logit is the best word's score.
    """
    table = _tokenizer(folder, scores)
    outputs = [_looked_up("start_logits"), _looked_up("end_logits")]
    if relevance is not None:
        outputs.append(_Output("relevance_logits", [1], [_constant("relevance", relevance)]))
    if support:
        outputs.append(_best_word("support_logits"))
    onnx.save(_network(table, outputs), str(folder / "model.onnx"))
    return folder


def small_cross_encoder(folder: Path, scores: Mapping[str, float], classes: int = 1) -> Path:
    """A folder with a network that has no span heads: its one logit is the best word's score, to
    which each further class adds that much again."""
    table = _tokenizer(folder, scores)
    onnx.save(_network(table, [_best_word("logits", classes)]), str(folder / "model.onnx"))
    return folder


def _tokenizer(folder: Path, scores: Mapping[str, float]) -> list[float]:
    """Writes the tokenizer; the scores of its words, in their order."""
    words = ["[UNK]", NONE, "[SEP]", *(word for word in scores if word != NONE)]
    tokenizer = Tokenizer(
        models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return [scores.get(word, -9.0) for word in words]


@dataclass(frozen=True)
class _Output:
    """A head: its name, its shape, and the nodes that make it of the ``scores`` of the tokens."""

    name: str
    shape: Sequence[str | int]
    nodes: Sequence[onnx.NodeProto]


def _looked_up(name: str) -> _Output:
    return _Output(name, ["texts", "tokens"], [helper.make_node("Identity", ["scores"], [name])])


def _constant(name: str, value: float) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [f"{name}_logits"], value_floats=[value])


def _best_word(name: str, classes: int = 1) -> _Output:
    times = [float(n + 1) for n in range(classes)]
    nodes = [
        helper.make_node("ReduceMax", ["scores"], [f"{name}_best"], axes=[1], keepdims=1),
        helper.make_node("Constant", [], [f"{name}_times"], value_floats=times),
        helper.make_node("Mul", [f"{name}_best", f"{name}_times"], [name]),
    ]
    return _Output(name, ["texts", classes], nodes)


def _network(table: list[float], outputs: Sequence[_Output]) -> onnx.ModelProto:
    lookup = helper.make_node("Gather", ["table", "input_ids"], ["scores"])
    values = [
        helper.make_tensor_value_info(each.name, TensorProto.FLOAT, each.shape) for each in outputs
    ]
    graph = helper.make_graph(
        [lookup, *(node for each in outputs for node in each.nodes)],
        "small",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        values,
        [helper.make_tensor("table", TensorProto.FLOAT, [len(table)], table)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
