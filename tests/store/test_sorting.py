"""Lines of a file in order, and contents in parts, whatever the size."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.librarian import Librarian
from tgraph.store.writer import sorted_lines

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))


@given(LINES, st.integers(1, 9))
def test_lines_come_in_the_order_of_their_code_points(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], at_once: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    ended = [f"{line}\n" for line in lines]
    path.write_bytes("".join(ended).encode())
    assert [line.decode() for line in sorted_lines(path, at_once)] == sorted(ended)
    assert path.exists()


@given(st.lists(st.binary(max_size=900)))
def test_a_content_in_parts_is_kept_as_one(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    librarian = Librarian(tmp_path_factory.getbasetemp() / "librarian")
    whole = b"".join(parts)
    key = librarian.put_parts(parts)
    assert key == sha256(whole).hexdigest() == librarian.store_content(whole)
    assert librarian.read_content(key) == whole


def test_parts_that_fail_leave_nothing(tmp_path: Path) -> None:
    def failing():
        yield b"one"
        raise OSError(28, "No space left on device")

    with pytest.raises(Exception, match="disk is full"):
        Librarian(tmp_path).put_parts(failing())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
