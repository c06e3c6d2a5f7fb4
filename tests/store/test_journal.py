"""Journals give back what was written, whatever befell the file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.errors import StoreError
from tgraph.store import journal
from tgraph.store.files import sweep_files
from tgraph.store.journal import MAGIC, MARK, Frame, Journal, is_free, read_journal

ANY_TEXT = st.text(st.characters(exclude_categories=()))
LONG = st.tuples(ANY_TEXT, st.integers(190, 210)).map(lambda given: given[0] * given[1])
FRAMES = [
    {"type": "session", "text": "one" * 70},
    {"type": "stage"},
    {"type": "end", "text": "three"},
]


def written(path: Path, frames: Sequence[Frame]) -> bytes:
    path.unlink(missing_ok=True)
    made = Journal(path)
    for frame in frames:
        made.append(frame)
    made.close()
    return path.read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals") / "a.journal"


@given(st.lists(st.dictionaries(ANY_TEXT, ANY_TEXT)))
def test_any_text_comes_back(path: Path, frames: list[dict[str, str]]) -> None:
    written(path, frames)
    assert list(read_journal(path).frames) == frames
    assert read_journal(path).damaged == 0


@given(st.dictionaries(ANY_TEXT, LONG | st.dictionaries(ANY_TEXT, LONG) | st.integers()))
def test_long_texts_come_back_to_their_places(path: Path, frame: Frame) -> None:
    written(path, [frame])
    assert list(read_journal(path).frames) == [frame]


def test_a_torn_tail_is_no_damage_at_any_length(path: Path) -> None:
    data = written(path, FRAMES)
    ends = [data.index(MARK, start) for start in (0, 10)]
    starts = [i for i in range(len(data)) if data.startswith(MARK, i)] + [len(data)]
    assert ends[0] == len(MAGIC)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in starts[1:])
        assert read_journal(path) == journal.JournalContent(tuple(FRAMES[:whole]), 0)


def test_a_flipped_bit_costs_one_frame_and_is_noticed(path: Path) -> None:
    data = written(path, FRAMES)
    for place in range(len(data)):
        for bit in (1, 128):
            flipped = bytearray(data)
            flipped[place] ^= bit
            path.write_bytes(bytes(flipped))
            content = read_journal(path)
            lost = [frame for frame in FRAMES if frame not in content.frames]
            assert len(lost) <= 1
            assert [frame for frame in FRAMES if frame not in lost] == list(content.frames)
            if lost and lost[0] is not FRAMES[-1]:
                assert content.damaged
            if place < len(MAGIC):
                assert content == journal.JournalContent(tuple(FRAMES), 1)


@pytest.mark.parametrize("data", [b"nothing of ours", b"TGJ0", b"\xff"])
def test_what_is_no_journal_is_one_damage(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert read_journal(path) == journal.JournalContent((), len(data) >= len(MAGIC))


def test_a_last_frame_with_a_wrong_checksum_is_damage(path: Path) -> None:
    data = bytearray(written(path, FRAMES))
    data[-2] ^= 1
    path.write_bytes(bytes(data))
    assert read_journal(path) == journal.JournalContent(tuple(FRAMES[:2]), 1)


def test_a_failed_append_leaves_the_frames_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Journal(tmp_path / "a.journal")
    made.append(FRAMES[0])
    real, room = os.pwrite, [20]

    def nearly_full(handle: int, data: bytes, offset: int) -> int:
        if not room:
            raise OSError(28, "No space left on device")
        return real(handle, bytes(data)[: room.pop()], offset)

    monkeypatch.setattr(os, "pwrite", nearly_full)
    with pytest.raises(StoreError, match="The disk is full"):
        made.append(FRAMES[1])
    monkeypatch.undo()
    assert read_journal(made.path).frames == (FRAMES[0],)
    made.append(FRAMES[2])
    assert read_journal(made.path) == journal.JournalContent((FRAMES[0], FRAMES[2]), 0)


def test_a_frame_is_on_disk_when_it_is_said_to_be(
    tmp_path: Path, synced: set[tuple[int, int]]
) -> None:
    made = Journal(tmp_path / "a.journal")
    place = made.path.stat().st_dev, made.path.stat().st_ino
    folder = tmp_path.stat().st_dev, tmp_path.stat().st_ino
    assert synced == {folder}, "its name is on disk before anything is in it"
    made.append(FRAMES[0], sync=False)
    assert place not in synced
    made.append(FRAMES[1])
    assert place in synced
    made.close()


def test_an_interruption_leaves_no_part_of_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Journal(tmp_path / "a.journal")

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.append(FRAMES[0])
    made.append(FRAMES[2])
    assert read_journal(made.path) == journal.JournalContent((FRAMES[2],), 0)


def test_a_journal_is_free_when_its_owner_has_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    assert not is_free(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    made = Journal(path)
    assert not is_free(path)
    with pytest.raises(StoreError, match="there already"):
        Journal(path)
    made.close()
    made.close()
    assert is_free(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "nobody else's is closed"


@pytest.mark.parametrize("times", [1, 3])
def test_a_journal_that_is_swept_before_it_is_locked_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Another process may take the file without a lock for one that a dead process left."""
    real, left = fcntl.flock, [times]

    def swept(handle: int, operation: int) -> None:
        if left[0] and operation == fcntl.LOCK_EX:  # as a journal is locked
            left[0] -= 1
            assert sweep_files(tmp_path) == 1
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", swept)
    if times == 3:
        with pytest.raises(StoreError, match="No such file"):
            Journal(tmp_path / "a.journal")
        return
    Journal(tmp_path / "a.journal").close()
    assert read_journal(tmp_path / "a.journal") == journal.JournalContent((), 0)


def test_a_journal_that_can_not_be_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StoreError, match="The disk is full"):
        Journal(tmp_path / "a.journal")
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before
