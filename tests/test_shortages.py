"""What a machine runs out of is said in one sentence with a remedy, and seen before it aborts."""

from __future__ import annotations

import errno
import resource
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tgraph.errors import StoreError, TgraphError, UsageError
from tgraph.masking import hide_paths
from tgraph.shortages import ShortageError, check_store_headroom, explain_shortage

_COMMAND = "import sys; from tgraph.cli.main import cli; cli(sys.argv[1:])"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/srv/g/x"), "disk is full"),
        (RuntimeError("IO error: No space left on device: While appending to file"), "is full"),
        (OSError(errno.EFBIG, "File too large"), "disk is full"),
        (sqlite3.OperationalError("database or disk is full"), "disk is full"),
        (OSError(errno.EROFS, "Read-only file system", "/srv/g/x"), "can't be written"),
        (PermissionError(errno.EACCES, "Permission denied", "/srv/g/x"), "can't be written"),
        (OSError(errno.EMFILE, "Too many open files"), "files open"),
        (MemoryError(), "memory is not sufficient"),
        (RuntimeError("std::bad_alloc"), "memory is not sufficient"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory is not"),
        (RuntimeError("can't start new thread"), "no more threads"),
        (OSError(errno.EIO, "Input/output error"), "disk reports an error"),
    ],
)
def test_a_shortage_is_one_sentence_with_a_remedy(error: Exception, words: str) -> None:
    explained = explain_shortage(error)
    assert isinstance(explained, StoreError)
    assert words in explained.message
    assert explained.remedy
    assert "/srv" not in str(explained)


def test_other_errors_are_not_explained() -> None:
    assert explain_shortage(ValueError("a wrong value")) is None
    known = UsageError("It is said.")
    assert explain_shortage(known) is known
    with pytest.raises(UnicodeEncodeError) as surrogate:
        "\ud800".encode()
    assert isinstance(explain_shortage(surrogate.value), UsageError)


def test_missing_threads_are_seen_before_a_library_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    check_store_headroom(writing=True)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(ShortageError, match="no more threads"):
        check_store_headroom(writing=True)


_DYING = """
import threading
from tgraph import shortages
shortages._START_SECONDS = 0.1
shortages.bound_thread_starts()
class Dying(threading.Thread):
    def _bootstrap(self):
        pass
threading.Thread(target=print, args=("works",)).start()
try:
    Dying().start()
except RuntimeError as error:
    print(shortages.explain_shortage(error).message)
"""


def test_a_thread_that_dies_before_it_runs_is_not_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _DYING], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        "works",
        "The process can start no more threads or processes.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", range(400, 1300, 100))
def test_a_command_with_little_memory_ends_with_advice(tmp_path: Path, megabytes: int) -> None:
    (document := tmp_path / "a.txt").write_text("Otto Sverdrup led Fram.\n")
    limit = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, "index", str(document), "-r", str(document.parent / "g")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    if done.returncode:
        assert "Error: The memory is not sufficient. Free some" in done.stderr
        assert "Unexpected" not in done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/etc/tgraph/graph/store/1.sst is damaged.", "1.sst is damaged."),
        ("It is at '/usr/lib/x.so' (/usr/lib/y.so).", "It is at 'x.so' (y.so)."),
        ("POST /api/v1/collections/default", "POST /api/v1/collections/default"),
        ("http://host/usr/lib and docs/a.txt", "http://host/usr/lib and docs/a.txt"),
    ],
)
def test_clients_are_told_no_paths_of_the_server(text: str, shown: str) -> None:
    assert hide_paths(text) == shown


def test_a_lone_surrogate_is_named() -> None:
    error = explain_shortage(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"))
    assert isinstance(error, TgraphError)
    assert "lone surrogate" in error.message
