from __future__ import annotations

import hashlib
import logging
import os
import stat
import subprocess
import sys
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.paths import REPOSITORY
from tgraph.errors import UsageError
from tgraph.models.tokens import (
    count_tokens,
    encoding_for,
    is_exact,
    pack_table,
    token_offsets,
    truncate_text,
    unpack_table,
)

ENCODINGS = ["o200k_base", "cl100k_base"]
# Counts in a new process whose sockets fail, and says where tiktoken was sent.
OFFLINE = """
import os, socket, logging
logging.basicConfig(level=logging.WARNING, format="%(message)s")
def refuse(*args, **kwargs):
    raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from tgraph.models.tokens import count_tokens, is_exact
print(count_tokens("hello world"), is_exact(), os.environ.get("TIKTOKEN_CACHE_DIR"))
"""


def count_elsewhere(**environment: str) -> tuple[list[str], str]:
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("TIKTOKEN", "DATA_GYM", "XDG"))
    }
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


def test_known_counts():
    assert count_tokens("hello world") == 2
    assert [is_exact(encoding) for encoding in ENCODINGS] == [True, True]


def test_special_tokens_are_plain_text():
    assert count_tokens("<|endoftext|>") > 1
    assert truncate_text("<|endoftext|> and on", 3).startswith("<")


@settings(deadline=None)
@given(st.text(), st.sampled_from(ENCODINGS))
def test_counts_and_offsets_agree_with_tiktoken(text, encoding):
    import tiktoken

    count_tokens("", encoding)
    reference = tiktoken.get_encoding(encoding)
    offsets = token_offsets(text, encoding)
    assert count_tokens(text, encoding) == len(offsets) == len(reference.encode_ordinary(text))
    assert offsets.tolist() == reference.decode_with_offsets(reference.encode_ordinary(text))[1]


@settings(deadline=None)
@given(st.text(), st.integers(0, 20), st.sampled_from(ENCODINGS))
def test_truncation_keeps_a_start_that_fits(text, most, encoding):
    kept = truncate_text(text, most, encoding)
    assert text.startswith(kept)
    assert count_tokens(kept, encoding) <= most
    assert kept == text or count_tokens(text, encoding) > most


def test_a_long_text_counts_as_tiktoken_counts_it():
    import tiktoken

    text = "The quick brown fox, aged 12.5 years, didn't jump!\n\nÜber-Größe 你好，世界。 " * 4000
    reference = tiktoken.get_encoding("o200k_base").encode_ordinary(text)
    assert count_tokens(text) == len(reference)
    assert len(token_offsets(text)) == len(reference)


def test_a_text_without_word_boundaries_is_counted():
    assert count_tokens("a" * 500_000) == pytest.approx(62_500, abs=16)


@pytest.fixture(scope="module", params=ENCODINGS)
def table_and_reference(request):
    import tiktoken

    is_exact(request.param)  # puts the ranks where tiktoken finds them
    reference = tiktoken.get_encoding(request.param)
    return unpack_table(pack_table(reference._pat_str, reference._mergeable_ranks)), reference


def starts(reference, text):
    """The code point that each of tiktoken's tokens starts in."""
    begun = [at for at, byte in enumerate(text.encode()) if not 0x80 <= byte < 0xC0]
    lengths = map(len, reference.decode_tokens_bytes(reference.encode_ordinary(text)))
    places = accumulate(lengths, initial=0)
    return [bisect_right(begun, place) - 1 for place in places][:-1]


@given(text=st.text() | st.text("aAbcdeé 'sſ1234.,!/\n\t你好한ก🙂\u200d", max_size=60))
def test_a_table_counts_and_cuts_as_tiktoken_does(table_and_reference, text):
    table, reference = table_and_reference
    assert table.count(text) == len(reference.encode_ordinary(text))
    assert table.offsets(text) == starts(reference, text)


def test_the_example_corpus_counts_the_same_by_table(table_and_reference):
    table, reference = table_and_reference
    for path in sorted((REPOSITORY / "examples/antarctica").glob("*.[mt]*")):
        text = path.read_text()
        assert table.count(text) == len(reference.encode_ordinary(text))
        assert table.offsets(text) == starts(reference, text)


def test_a_piece_that_is_too_long_is_left_to_tiktoken(table_and_reference):
    table, _ = table_and_reference
    assert table.count("x" * 4000) is None
    assert table.offsets("x" * 4000) is None
    assert count_tokens("x" * 4000) == 500


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"x" * 200, None])
def test_a_damaged_table_is_ignored_and_replaced(tmp_path, damage):
    first, _ = count_elsewhere(XDG_CACHE_HOME=str(tmp_path))
    (table,) = (tmp_path / "tgraph" / "tokens").iterdir()
    good = table.read_bytes()
    table.write_bytes(good[:-1] + b"!" if damage is None else damage)
    assert count_elsewhere(XDG_CACHE_HOME=str(tmp_path))[0] == first
    assert table.read_bytes() == good


@pytest.mark.slow
def test_who_finds_a_table_loads_no_ranks(tmp_path):
    count_elsewhere(XDG_CACHE_HOME=str(tmp_path))
    code = (
        "import sys; from tgraph.models.tokens import count_tokens;"
        "print(count_tokens('hello world'), 'tiktoken' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2", "False"]


def test_lone_surrogates_keep_their_place():
    offsets = token_offsets("a\ud800\udc00b")
    assert offsets[0] == 0
    assert max(offsets) == 3


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("llama3:8b", "o200k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("gpt-oss-20b", "o200k_base"),
    ],
)
def test_encoding_of_a_model(model, encoding):
    assert encoding_for(model) == encoding


def test_an_encoding_that_is_not_shipped():
    with pytest.raises(UsageError, match="o200k_base"):
        count_tokens("x", "p50k_base")


@pytest.mark.slow
def test_ranks_are_unpacked_into_the_users_cache(tmp_path):
    said, _ = count_elsewhere(XDG_CACHE_HOME=str(tmp_path))
    assert said == ["2", "True", str(tmp_path / "tgraph" / "tiktoken")]
    (unpacked,) = (tmp_path / "tgraph" / "tiktoken").iterdir()
    assert hashlib.sha256(unpacked.read_bytes()).hexdigest().startswith("446a9538")


@pytest.mark.slow
def test_a_damaged_cache_is_mended(tmp_path):
    count_elsewhere(TIKTOKEN_CACHE_DIR=str(tmp_path))
    (unpacked,) = tmp_path.iterdir()
    unpacked.write_bytes(unpacked.read_bytes()[:1000])
    assert count_elsewhere(TIKTOKEN_CACHE_DIR=str(tmp_path))[0] == ["2", "True", str(tmp_path)]


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["XDG_CACHE_HOME", "TIKTOKEN_CACHE_DIR"])
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, setting):
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    said, _ = count_elsewhere(**{setting: str(blocker)})
    assert said[:2] == ["2", "True"]
    assert blocker.read_text() == "in the way"


def test_without_ranks_counts_are_an_estimate_that_says_so(tmp_path, monkeypatch, caplog):
    from tgraph.models import tokens

    (tmp_path / "o200k_base.tiktoken.gz").write_bytes(b"\x1f\x8b damaged")
    monkeypatch.setattr(tokens, "data_file", lambda name: tmp_path / name)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setattr(tokens, "_load_table", lambda encoding: None)
    tokens._get_tokenizer.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            counted = count_tokens("The quick brown fox jumps over the lazy dog.")
        assert 8 <= counted <= 16
        assert not is_exact()
        assert "estimates" in caplog.text
        assert truncate_text("one two three four", 2) == "one two"
    finally:
        tokens._get_tokenizer.cache_clear()


def test_the_shipped_files_are_readable_by_all():
    from tgraph.resources import data_file

    for encoding in ENCODINGS:
        path = Path(str(data_file(f"{encoding}.tiktoken.gz")))
        assert path.stat().st_mode & stat.S_IROTH
        assert path.read_bytes()[4:8] == b"\0\0\0\0"
