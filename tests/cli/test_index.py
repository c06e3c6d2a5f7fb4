"""``tgraph index``: what it reports, what it survives, what it would cost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import pytest

from tgraph.cli.progress import _Bars
from tgraph.engine.progress import Progress
from tgraph.model import Usage

from .conftest import QUESTION, SHIPS


def test_a_bad_file_is_named_and_the_others_go_on(fresh, documents, tmp_path):
    terminal = fresh()
    bad = tmp_path / "broken.json"
    bad.write_text("{")
    arguments = ["index", str(documents), str(bad), str(tmp_path / "missing.txt")]
    result = terminal(*arguments, "-r", str(terminal.root), *terminal.model, code=1)
    failures = [line for line in result.stderr.splitlines() if line.startswith("Failed: ")]
    assert len(failures) == 2
    assert str(bad) in failures[0]
    assert "There is no such file" in failures[1]
    assert "2 indexed, 2 failed" in result.stderr
    assert result.stdout == ""


def test_a_path_that_is_not_there_leaves_no_empty_graph(fresh, tmp_path):
    terminal = fresh()
    (tmp_path / "empty").mkdir()
    paths = [str(tmp_path / "missing.txt"), str(tmp_path / "empty")]
    result = terminal("index", *paths, "-r", str(terminal.root), code=1)
    assert "no graph was made" in result.stderr
    assert "The folder holds no documents." in result.stderr
    assert not terminal.root.exists()


def test_json_says_what_was_done_and_again_that_nothing_was(fresh, documents):
    terminal = fresh()
    call = ["index", str(documents), "--json", "-q", "-r", str(terminal.root), *terminal.model]
    first = json.loads(terminal(*call).stdout)
    assert len(first["indexed"]) == 2
    assert first["usage"]["calls"] > 0
    second = json.loads(terminal(*call).stdout)
    assert second["indexed"] == []
    assert len(second["unchanged"]) == 2
    assert second["generation"] == first["generation"]


def test_progress_on_a_pipe_is_one_line_a_stage(fresh, documents):
    terminal = fresh()
    shown = terminal("index", str(documents), "-r", str(terminal.root), *terminal.model).stderr
    stages = [line.partition(":")[0] for line in shown.splitlines()]
    assert stages[:2] == ["Reading", "Extracting"]
    assert len(stages) == len(set(stages))
    assert "\x1b" not in shown


@pytest.mark.slow
def test_what_a_mode_needs_is_built_at_its_first_question_and_shown_or_by_index_when_asked(
    fresh, documents, tmp_path
):
    terminal = fresh()
    call = ["index", str(documents), "-r", str(terminal.root), *terminal.model]
    terminal(*call)
    for mode, need in (("contextual", "Situating"), ("raptor", "Summarising clusters")):
        shown = terminal.ask("-m", mode, QUESTION).stderr
        assert f"The mode {mode} needs" in shown
        assert f"\n{need}: " in shown
    other = replace(terminal, root=tmp_path / "other")
    shown = other(*call[:3], str(other.root), *other.model, "--prepare").stderr
    assert "\nSituating: " in shown
    assert "\nSummarising clusters: " in shown
    for mode in ("contextual", "raptor"):
        assert "needs" not in other.ask("-m", mode, QUESTION).stderr


def test_every_need_of_a_mode_has_its_setting_switched_on_by_prepare():
    from tgraph.cli.options import settings_of
    from tgraph.retrieve.modes.registry import MODES

    needed = {mode.need.setting: True for mode in MODES.values() if mode.need is not None}
    assert settings_of({"prepare": True}) == needed
    assert settings_of({"prepare": None}) == {}


def test_bars_show_each_stage_with_its_tokens():
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress as Columns
    from rich.progress import TextColumn

    screen = StringIO()
    columns = Columns(
        TextColumn("{task.description} {task.completed}/{task.total} {task.fields[usage]}"),
        console=Console(file=screen, force_terminal=True, width=100),
    )
    with columns:
        bars = _Bars(columns)
        bars(Progress("Reading", 1, 2, detail="a.txt"))
        bars(Progress("Reading", 2, 2))
        bars(Progress("Extracting", 3, 4, Usage(1200, 34, 2)))
    assert "Reading 2/2" in screen.getvalue()
    assert "Extracting 3/4 1,200 tokens in, 34 out" in screen.getvalue()


def test_the_estimate_asks_nothing_and_writes_nothing(fresh, documents, server):
    terminal = fresh()
    before = len(server.requests)
    call = ["index", str(documents), "--estimate", "-r", str(terminal.root), *terminal.model]
    facts = json.loads(terminal(*call, "--json").stdout)
    assert facts["documents"] == 2
    assert facts["calls"] == 2 * facts["chunks"] + facts["derived_calls"]
    assert facts["input_tokens"] > 2 * facts["text_tokens"]
    assert len(server.requests) == before
    assert not terminal.root.exists()


def test_the_estimate_counts_by_the_prices_given(fresh, documents):
    terminal = fresh()
    call = ["index", str(documents), "--estimate", "--json", "-r", str(terminal.root)]
    call += [*terminal.model, "--model", "nobody-knows"]
    assert json.loads(terminal(*call).stdout)["cost"] is None
    facts = json.loads(terminal(*call, "--price-in", "1000000", "--price-out", "0").stdout)
    assert facts["cost"] == facts["input_tokens"]
    assert "--price-in" in terminal(*[c for c in call if c != "--json"]).stdout


def test_without_a_model_the_estimate_is_nothing(fresh, documents):
    terminal = fresh()
    shown = terminal("index", str(documents), "--estimate", "-r", str(terminal.root)).stdout
    assert "without calls or cost" in shown


def test_the_estimate_leaves_out_what_is_unchanged(terminal, documents, tmp_path):
    new = tmp_path / "new.txt"
    new.write_text("Tom Crean walked alone.")
    call = ["index", str(documents), str(new), "--estimate", "--json", "-r", str(terminal.root)]
    facts = json.loads(terminal(*call).stdout)
    assert (facts["documents"], facts["unchanged"]) == (1, 2)


def test_standard_input_is_a_document(fresh):
    terminal = fresh()
    call = ["index", "-", "--json", "-r", str(terminal.root), *terminal.model]
    facts = json.loads(
        terminal(*call, input=b"Jean-Baptiste Charcot built the Pourquoi-Pas.").stdout
    )
    assert facts["indexed"] == ["stdin"]


def test_the_graph_is_made_in_the_current_folder_and_found_again(
    fresh, documents, monkeypatch, tmp_path
):
    terminal = fresh()
    inside = tmp_path / "work" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside.parent)
    terminal("index", str(documents), *terminal.model)
    assert (Path("tgraph-graph") / "graph.json").is_file()
    monkeypatch.chdir(inside)
    assert json.loads(terminal("sessions", "--json").stdout) == []
    terminal("index", str(documents), *terminal.model)
    assert not Path("tgraph-graph").exists()


def test_collections_are_apart_and_C_goes_anywhere(fresh, documents):
    terminal = fresh()
    root = str(terminal.root)
    terminal("-C", "one", "index", str(documents / "curie.md"), "-r", root, *terminal.model)
    terminal("-r", root, "index", str(documents / "ships.txt"), "-C", "two", *terminal.model)
    one = terminal("source", "curie.md", "--text", "-r", root, "-C", "one").stdout
    assert "Polonium" in one
    terminal("-r", root, "-C", "two", "source", "curie.md", code=2)


def test_a_summary_without_news_claims_none(terminal, documents):
    result = terminal("index", str(documents), "-r", str(terminal.root), *terminal.model)
    assert "2 unchanged" in result.stderr
    assert "Read, chunk by chunk" not in result.stderr


def test_the_summary_counts_communities_and_who_is_in_none(fresh, documents):
    terminal = fresh()
    call = ["index", str(documents), "-r", str(terminal.root), *terminal.model]
    shown = terminal(*call).stderr
    facts = json.loads(terminal(*call, "--json", "-q").stdout)
    assert facts["communities"] > 0
    assert f"Communities: {facts['communities']}" in shown
    audit = terminal("audit", "isolated", "--format", "json", "-r", str(terminal.root)).stdout
    assert len(json.loads(audit)) == facts["isolated"]


@pytest.mark.slow
def test_copies_renamed_and_absent_files_are_told(fresh, tmp_path, monkeypatch):
    terminal, folder = fresh(), tmp_path / "d"
    monkeypatch.chdir(tmp_path)
    folder.mkdir()
    for name in ("copy.txt", "minutes.txt"):
        (folder / name).write_text("Marie Curie discovered Polonium in Paris.\n")
    (folder / "ships.txt").write_text(SHIPS)
    root = ["-r", str(terminal.root)]

    def index(*flags: str) -> str:
        told: str = terminal("index", "d", *flags, *root, *terminal.model).stderr
        return told

    index()
    listed = terminal("documents", "list", *root).stdout
    assert "d/copy.txt" in listed
    assert "d/minutes.txt" in listed
    shown = terminal("impact", "copy.txt", *root).stdout
    assert "Facts without other evidence: 0\n" in shown
    assert "The same content stands at d/minutes.txt.\n" in shown
    assert "Marie Curie — discovered — Polonium" in shown
    reason, hashing = ["--reason", "A copy."], terminal.model[2:]
    told = terminal("retract", "Copy", *reason, *root, *hashing, code=2).stderr
    assert "stands at 2 paths (d/copy.txt, d/minutes.txt). Give one of the paths" in told
    told = terminal("remove", "copy.txt", "--purge", *reason, *root, *hashing).stderr
    assert "Retracted d/copy.txt, and erased no text. The same content stands at d/min" in told
    index("--reinstate")
    told = terminal("retract", "copy.txt", *reason, *root, *hashing).stderr
    assert "The same content stands at d/minutes.txt, and still answers; `tgraph retr" in told

    (folder / "ships.txt").unlink()
    (folder / "minutes.txt").rename(folder / "protocol.txt")
    told = index()
    assert "Renamed: d/minutes.txt to d/protocol.txt.\n" in told
    assert (
        "1 document of d is gone from the folder, and still answers: d/ships.txt. "
        "`tgraph index d --prune` retracts what is gone.\n"
    ) in told
    assert "Documents: 0 indexed, 1 renamed, 1 left out as retracted." in told
    told = index("--prune")
    assert "Retracted 1 document whose files are gone: d/ships.txt." in told
    assert "1 gone and retracted" in told
    found = json.loads(terminal("curations", "list", "--json", *root).stdout)
    assert [(c["label"], c["what"], c["reason"]) for c in found[:1]] == [
        ("Pruning", "d/ships.txt", "The file is gone from d.")
    ]
    (folder / "protocol.txt").unlink()
    (folder / "copy.txt").unlink()
    told = terminal("index", "d", "--prune", *root, *terminal.model, code=1).stderr
    assert "The folder is empty, as one that is not mounted" in told


@pytest.mark.slow
def test_watching_ends_cleanly_by_an_interruption(fresh, tmp_path):
    terminal, folder = fresh(), tmp_path / "d"
    folder.mkdir()
    (folder / "ships.txt").write_text(SHIPS)
    command = [sys.executable, "-c", "from tgraph.cli.main import cli; cli()", "index", str(folder)]
    command += ["--watch", "--json", "-r", str(terminal.root), *terminal.model]
    signals = signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored by the child
    process = subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True)
    signal.signal(signal.SIGINT, signals)
    try:
        assert process.stdout is not None
        assert len(json.loads(process.stdout.readline())["indexed"]) == 1
        (folder / "ships.txt").unlink()
        (folder / "curie.txt").write_text("Marie Curie discovered Polonium in Paris.\n")
        report = json.loads(process.stdout.readline())
        assert [Path(path).name for path in report["indexed"]] == ["curie.txt"]
        assert [Path(path).name for path in report["absent"][0]["paths"]] == ["ships.txt"]
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert told.endswith("Stopped. `tgraph index` takes in what changed meanwhile.\n")
    assert "Traceback" not in told


def test_watch_takes_folders_and_no_estimate(fresh, tmp_path):
    terminal = fresh()
    told = terminal("index", str(tmp_path), "--watch", "--estimate", code=2).stderr
    assert "--estimate and --watch exclude each other." in told
    root = ["-r", str(terminal.root)]
    told = terminal("index", str(tmp_path / "no"), "--watch", *root, *terminal.model, code=2).stderr
    assert "is no folder. Only folders can be watched." in told
    assert not terminal.root.exists()
