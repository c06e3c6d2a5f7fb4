"""The cache of replies and vectors: what is kept, what isn't, and what damage does to it."""

from __future__ import annotations

import logging
import pickle
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tgraph.errors import ModelError
from tgraph.model import Prompt, Usage
from tgraph.models.base import Call, CallSink, ChatReply, ChatRequest, decode_vectors, no_sink
from tgraph.models.embedding import split_windows
from tgraph.models.endpoint import Endpoint
from tgraph.models.openai import OpenAIChat, OpenAIEmbedder
from tgraph.models.reply_cache import CachedChat, CachedEmbedder, CacheFolder, chat_key
from tgraph.testing import Fault, HashingEmbedder, ScriptedModel, ScriptedServer

PROMPT = Prompt("say", "Say it.", "0" * 64)
REQUEST = ChatRequest(PROMPT, [{"role": "user", "content": "Say it."}])


def test_a_reply_is_paid_for_once(tmp_path: Path) -> None:
    model = ScriptedModel({"say": "Grüße, 世界"})
    calls: list[Call] = []
    first = CachedChat(model, tmp_path).complete(REQUEST, calls.append)
    second = CachedChat(model, tmp_path).complete(REQUEST, calls.append)
    assert model.count("say") == 1
    assert [call.cached for call in calls] == [False, True]
    assert (calls[1].request, calls[1].reply) == (calls[0].request, calls[0].reply)
    assert calls[1].request_hash == calls[0].request_hash
    assert (calls[0].usage.calls, calls[1].usage) == (1, Usage())
    assert replace(first, usage=Usage()) == second


def test_a_stream_and_a_whole_reply_share_an_entry(tmp_path: Path) -> None:
    model = ScriptedModel({"say": "one two three four"})
    cached = CachedChat(model, tmp_path)
    calls: list[Call] = []
    assert "".join(cached.stream(REQUEST, calls.append)) == "one two three four"
    assert "".join(cached.stream(REQUEST, calls.append)) == "one two three four"
    assert cached.complete(REQUEST, calls.append).text == "one two three four"
    assert [call.cached for call in calls] == [False, True, True]


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, messages=[{"role": "user", "content": "Say it!"}]),
        replace(REQUEST, temperature=0.5),
        replace(REQUEST, seed=1),
        replace(REQUEST, max_tokens=9),
        replace(REQUEST, schema={"type": "object"}),
        replace(REQUEST, prompt=replace(PROMPT, name="shout")),
    ],
)
def test_another_request_has_another_key(other: ChatRequest) -> None:
    agent = ScriptedModel().agent
    assert chat_key(agent, other) != chat_key(agent, REQUEST)
    assert chat_key(replace(agent, name="other"), REQUEST) != chat_key(agent, REQUEST)


def test_failures_are_not_kept(tmp_path: Path) -> None:
    model = ScriptedModel({"say": [ModelError("No."), "Yes."]})
    cached = CachedChat(model, tmp_path)
    with pytest.raises(ModelError):
        cached.complete(REQUEST)
    assert cached.complete(REQUEST).text == "Yes."


STORY = replace(REQUEST, messages=[{"role": "user", "content": "Step: say\nTell a story."}])


def test_a_reply_cut_by_the_limit_is_kept_as_what_it_is(tmp_path: Path) -> None:
    faults = [Fault.parse("length:say:1")]
    with (
        ScriptedServer({"say": "A long story " * 9}, faults=faults) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
    ):
        first = CachedChat(chat, tmp_path).complete(STORY)
        second = CachedChat(chat, tmp_path).complete(STORY)
        assert (first.text, first.finish_reason) == (second.text, second.finish_reason)
        assert (second.finish_reason, second.usage) == ("length", Usage())
        assert CachedChat(chat, tmp_path).complete(replace(STORY, max_tokens=99)) != first


@pytest.mark.parametrize("kind", ["empty", "cut_stream"])
def test_broken_replies_are_not_kept(tmp_path: Path, kind: str) -> None:
    faults = [Fault.parse(f"{kind}:say:1")]
    with (
        ScriptedServer({"say": "A long story " * 9}, faults=faults) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
    ):
        cached = CachedChat(chat, tmp_path)
        with pytest.raises(ModelError):
            list(cached.stream(STORY))
        assert len(CacheFolder(tmp_path)) == 0
        assert cached.complete(STORY).text == "A long story " * 9
        assert len(CacheFolder(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"half", None])
def test_a_damaged_entry_is_ignored_and_replaced(tmp_path: Path, damage: bytes | None) -> None:
    model = ScriptedModel({"say": "Right."})
    CachedChat(model, tmp_path).complete(REQUEST)
    (entry,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    good = entry.read_bytes()
    entry.write_bytes(good[:-9] + b"x" * 9 if damage is None else damage)
    assert CachedChat(model, tmp_path).complete(REQUEST).text == "Right."
    assert model.count("say") == 2
    assert entry.read_bytes() == good


@pytest.mark.parametrize("value", [b"[]", b"\xff", b'{"key": "other", "reply": {"text": "no"}}'])
def test_an_entry_that_says_something_else_is_ignored(value: bytes) -> None:
    model = ScriptedModel({"say": "Right."})
    cache = {chat_key(model.agent, REQUEST): value}
    assert CachedChat(model, cache).complete(REQUEST).text == "Right."


def test_the_reply_to_another_request_is_no_reply(tmp_path: Path) -> None:
    """A whole entry, but under the key of another: copied, say, or of equal beginnings."""
    model = ScriptedModel({"say": ["One.", "Two."]})
    other, cache = replace(REQUEST, seed=1), CacheFolder(tmp_path)
    CachedChat(model, cache).complete(REQUEST)
    cache[chat_key(model.agent, other)] = cache[chat_key(model.agent, REQUEST)]
    assert CachedChat(model, cache).complete(other).text == "Two."


def test_a_reply_that_a_filter_cut_is_not_kept() -> None:
    class Filtered(ScriptedModel):
        def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
            def filtered(call: Call) -> None:
                sink(replace(call, reply={**call.reply, "finish_reason": "content_filter"}))

            return super().complete(request, filtered)

    model, cache = Filtered({"say": ["I can", "I can say it."]}), dict[str, bytes]()
    assert CachedChat(model, cache).complete(REQUEST).text == "I can"
    assert not cache
    assert CachedChat(model, cache).complete(REQUEST).text == "I can say it."


def test_who_knows_all_the_vectors_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    cached = CachedEmbedder(HashingEmbedder(), {})
    first = cached.embed(["red fox", "blue sea"])
    monkeypatch.setattr(HashingEmbedder, "embed", None)
    assert np.array_equal(cached.embed(["blue sea", "red fox"]), first[::-1])


@pytest.mark.parametrize("change", [lambda row: row[:-4], lambda row: row * 2, lambda row: b""])
def test_a_vector_of_another_length_is_made_anew(change: Callable[[bytes], bytes]) -> None:
    inner, cache = HashingEmbedder(), dict[str, bytes]()
    first = CachedEmbedder(inner, cache).embed(["red fox"])
    [(key, row)] = cache.items()
    cache[key] = change(row)
    assert np.array_equal(CachedEmbedder(inner, cache).embed(["red fox"]), first)
    assert cache == {key: row}


def test_a_cache_that_can_not_be_written_is_no_obstacle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with caplog.at_level(logging.WARNING):
        cached = CachedChat(ScriptedModel({"say": "Right."}), blocked)
        assert [cached.complete(REQUEST).text for _ in range(2)] == ["Right.", "Right."]
    assert len(caplog.records) == 1


def _fill(folder: str) -> int:
    cache = CacheFolder(folder)
    wrong = 0
    for round_ in range(40):
        key = f"{round_ % 5:064x}"
        cache[key] = key.encode() * 2000
        wrong += cache.get(key) != key.encode() * 2000
    return wrong


@pytest.mark.slow
def test_processes_and_threads_share_a_folder(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_fill, [str(tmp_path)] * 2)) == [0, 0]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(_fill, [str(tmp_path)] * 4)) == [0] * 4
    assert len(CacheFolder(tmp_path)) == 5
    assert all(not path.name.startswith(".") for path in tmp_path.rglob("*"))


def test_what_a_kill_left_half_written_is_no_entry_and_is_replaced(tmp_path: Path) -> None:
    cache = CacheFolder(tmp_path)
    cache["ab" * 32] = b"one, and a long story"
    (entry,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    entry.write_bytes(entry.read_bytes()[:-5])
    assert cache.get("ab" * 32) is None
    cache["ab" * 32] = b"two"
    assert dict(cache) == {"ab" * 32: b"two"}


def test_entries_can_be_listed_and_removed(tmp_path: Path) -> None:
    cache = CacheFolder(tmp_path)
    cache["ab" * 32] = b"one"
    cache["cd" * 32] = b"two"
    assert dict(cache) == {"ab" * 32: b"one", "cd" * 32: b"two"}
    del cache["ab" * 32]
    assert list(cache) == ["cd" * 32]
    with pytest.raises(KeyError):
        del cache["ab" * 32]


def test_vectors_are_paid_for_once(tmp_path: Path) -> None:
    calls: list[Call] = []
    with (
        ScriptedServer() as server,
        OpenAIEmbedder("m", Endpoint(server.base_url)) as inner,
    ):
        embedder = CachedEmbedder(inner, tmp_path)

        def embed(texts: Sequence[str]) -> np.ndarray:
            return embedder.embed(texts, calls.append)

        first = embed(["red fox", "blue sea"])
        again = embed(["blue sea", "grey wolf", "red fox"])
        assert np.array_equal(again[[2, 0]], first)
        assert np.array_equal(embed(["red fox", "blue sea"]), first)
    assert [call.cached for call in calls] == [False, False, True, True]
    sent = [request.body["input"] for request in server.requests]
    assert sent == [["red fox", "blue sea"], ["grey wolf"]]
    reply = calls[2].reply
    assert calls[2].request["input"] == ["blue sea", "red fox"]
    assert np.array_equal(decode_vectors(reply["vectors"], reply["dimension"]), again[[0, 2]])


class Brief(HashingEmbedder):
    """Reads few tokens, counted as cl100k_base."""

    max_tokens = 12


class Spelling(Brief):
    """A token is a letter."""

    def token_starts(self, text: str) -> list[int]:
        return list(range(len(text)))


@pytest.mark.parametrize("inner", [Brief(), Spelling()])
def test_texts_are_cut_alike_with_a_memory_and_without(inner: Brief, tmp_path: Path) -> None:
    text = "Polonium was discovered by Marie Curie in Paris. " * 3
    cut = split_windows(CachedEmbedder(inner, tmp_path), text)
    assert cut == split_windows(inner, text)
    assert len(cut) > 1
    assert all(len(part) <= 12 for part in cut) == isinstance(inner, Spelling)


def test_on_another_machine_nothing_is_kept(tmp_path: Path) -> None:
    """A cache that was sent to where its graph's folder isn't makes none."""
    there = CacheFolder(tmp_path / "graph" / "cache" / "replies")
    (tmp_path / "graph").mkdir()
    sent = pickle.dumps(there)
    pickle.loads(sent)["ab" * 32] = b"reply"
    assert CacheFolder(there.folder)["ab" * 32] == b"reply"
    shutil.rmtree(tmp_path / "graph")
    pickle.loads(sent)["ab" * 32] = b"reply"
    assert not (tmp_path / "graph").exists()
