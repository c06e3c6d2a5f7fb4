"""A reader that is small enough to be made for a test: its network looks words up in a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

NONE = "[CLS]"
"""The token whose score is that of no answer."""


def small_reader(folder: Path, scores: Mapping[str, float], relevance: float | None = None) -> Path:
    """A folder with a reader that gives each word its score to begin and to end an answer.

    Words without a score have -9; that of ``NONE`` stands for no answer. ``relevance`` makes it one
    with a second head.
    """
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
    table = [scores.get(word, -9.0) for word in words]
    onnx.save(_network(table, relevance), str(folder / "model.onnx"))
    return folder


def _network(table: list[float], relevance: float | None) -> onnx.ModelProto:
    tensors = [helper.make_tensor("table", TensorProto.FLOAT, [len(table)], table)]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], [name])
        for name in ("start_logits", "end_logits")
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", "tokens"])
        for name in ("start_logits", "end_logits")
    ]
    if relevance is not None:
        tensors.append(helper.make_tensor("relevance", TensorProto.FLOAT, [1], [relevance]))
        nodes.append(helper.make_node("Identity", ["relevance"], ["relevance_logits"]))
        outputs.append(helper.make_tensor_value_info("relevance_logits", TensorProto.FLOAT, [1]))
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    graph = helper.make_graph(nodes, "small", [ids], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
