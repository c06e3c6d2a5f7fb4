"""What a graph folder holds is its owner's, and what is shown betrays no secret."""

from __future__ import annotations

import csv
import io
import os
import socket
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import example, given
from hypothesis import strategies as st

import tgraph
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.errors import EndpointError
from tgraph.extensions.operations import back_up, repair, restore
from tgraph.ingest.files import SourceFile, Unread, discover_files
from tgraph.masking import MASK, mask_url
from tgraph.rendering import as_cell
from tgraph.store.files import write_private

FAST = {"embedding.provider": "hashing"}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("# Ships\n\nThe Aurora sailed from Hobart in 1911.\n")
    return folder


def modes(root: Path) -> dict[str, int]:
    """The permissions of what tgraph itself wrote; the files of RocksDB are RocksDB's."""
    found = {}
    for path in [root, *root.rglob("*")]:
        within = {parent.name for parent in path.relative_to(root).parents}
        if "store" not in {path.name, *within}:
            found[str(path.relative_to(root))] = stat.S_IMODE(path.stat().st_mode)
    return found


@pytest.mark.slow
def test_all_that_is_made_is_its_owners_alone(tmp_path, documents):
    """Also what a command is told to write: a backup, a report, an export; and what is restored."""
    made = tmp_path / "made"
    made.mkdir()
    root = made / "graph"
    before = os.umask(0o002)
    try:
        with tgraph.open(root, create=True, settings=FAST) as graph:
            graph.index([documents])
            graph.ask("Where did the Aurora sail from?")
            graph.trace().to_html(made / "trace.html")
            back_up(graph, made / "saved.tar")
        restore(made / "saved.tar", made / "restored")
        flags = ("last", "--root", root, "--output")
        assert run("trace", "--format", "html", *flags, made / "report.html").exit_code == 0
        assert run("export", *flags, made / "export.ttl").exit_code == 0
        with tgraph.open(root, settings=FAST) as graph:
            repair(graph)
            graph.purge("a.md", reason="It was private.")
    finally:
        os.umask(before)
    found = modes(made)
    assert len(found) > 40
    assert {path for path, mode in found.items() if mode & 0o077} == {"."}


def test_a_report_that_is_written_again_keeps_its_permissions(tmp_path):
    report = tmp_path / "report.html"
    report.write_text("old")
    report.chmod(0o644)
    write_private(report, b"new")
    assert (report.read_bytes(), stat.S_IMODE(report.stat().st_mode)) == (b"new", 0o644)


def test_in_a_folder_that_was_there_the_collections_are_private(tmp_path, documents):
    root = tmp_path / "project"
    root.mkdir(0o755)
    with tgraph.open(root, create=True, settings=FAST) as graph:
        graph.index([documents])
    assert stat.S_IMODE(root.stat().st_mode) == 0o755
    assert stat.S_IMODE((root / "collections").stat().st_mode) == 0o700


def test_who_widens_the_folder_shares_what_is_written_next(tmp_path, documents):
    root = tmp_path / "graph"
    with tgraph.open(root, create=True, settings=FAST) as graph:
        graph.index([documents])
    for path in [root, *root.rglob("*")]:
        path.chmod(0o750 if path.is_dir() else 0o640)
    known = set(modes(root))
    with tgraph.open(root, settings=FAST) as graph:
        graph.ask("When did the Aurora sail?")
    new = {path: mode for path, mode in modes(root).items() if path not in known}
    assert new
    assert all(mode & 0o040 and not mode & 0o007 for mode in new.values())


def test_the_doctor_says_who_else_can_read(tmp_path, documents):
    root = tmp_path / "graph"
    with tgraph.open(root, create=True, settings=FAST) as graph:
        graph.index([documents])
    assert "can read documents" not in run("doctor", "--root", root).output
    for path in (root, root / "collections"):
        path.chmod(0o755)
    said = " ".join(run("doctor", "--root", root).output.split())
    assert "its group and everybody can read documents and questions" in said


# --- who ---


def on_record(root: Path, person: str | None) -> str:
    """Everything that is stated in a graph in which a person, if set, has indexed and asked."""
    given = {**FAST, "person": person} if person else FAST
    with tgraph.open(root, create=True, settings=given) as graph:
        graph.index(["documents"])
        graph.ask("Where did the Aurora sail from?")
    with tgraph.open(root, settings=FAST) as graph:
        assert graph.audit("shapes").passed
        assert graph.replay("last").is_same
        return "\n".join(map(str, graph.opened.read().match()))


@pytest.mark.slow
@pytest.mark.usefixtures("documents")
def test_who_asks_is_on_record_only_where_set(tmp_path, monkeypatch):
    """Nor are the user, the machine or the folder, where documents are named within it."""
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-in-particular")
    monkeypatch.chdir(tmp_path)
    said = on_record(tmp_path / "a", None)
    assert v.agent_iri("person", "", "") not in said
    for name in ("somebody-in-particular", str(tmp_path), f'"{socket.gethostname()}"'):
        assert name not in said
    assert v.agent_iri("person", "Ada Archivist", "") in on_record(tmp_path / "b", "Ada Archivist")


# --- links ---


def test_a_link_out_of_the_folder_is_said_and_not_followed(tmp_path, documents):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "salaries.txt").write_text("Ann earns 100.")
    (documents / "one.txt").symlink_to(secret / "salaries.txt")
    (documents / "all").symlink_to(secret)
    (documents / "same.md").symlink_to(documents / "a.md")
    found = list(discover_files([str(documents)]))
    assert [f.name for f in found if isinstance(f, SourceFile)] == [str(documents / "a.md")]
    left = {f.name: f for f in found if isinstance(f, Unread)}
    assert set(left) == {str(documents / "one.txt"), str(documents / "all")}
    assert all("--follow-links" in each.reason and each.skipped for each in left.values())
    followed = discover_files([str(documents)], follow_links=True)
    names = {Path(f.name).name for f in followed if isinstance(f, SourceFile)}
    assert names == {"a.md", "salaries.txt"}


def test_a_link_that_is_named_is_followed(tmp_path, documents):
    link = tmp_path / "link"
    link.symlink_to(documents)
    (found,) = discover_files([str(link)])
    assert isinstance(found, SourceFile)


def test_a_pattern_does_not_lead_out_of_its_folder(tmp_path, documents):
    (tmp_path / "secret.txt").write_text("Ann earns 100.")
    (documents / "b.txt").symlink_to(tmp_path / "secret.txt")
    (unread,) = discover_files([str(documents / "*.txt")])
    assert isinstance(unread, Unread)
    assert "--follow-links" in unread.reason


def test_the_command_says_what_it_left_and_takes_it_with_the_flag(tmp_path, documents):
    (tmp_path / "secret.txt").write_text("Ann earns 100.")
    (documents / "b.txt").symlink_to(tmp_path / "secret.txt")
    flags = ("--root", tmp_path / "graph", "--embedding-provider", "hashing")
    said = " ".join(run("index", documents, *flags).output.split())
    assert "b.txt" in said
    assert "--follow-links" in said
    again = run("index", documents, "--follow-links", *flags)
    assert again.exit_code == 0
    assert "1 indexed" in again.output


# --- secrets, cells, characters ---


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:pw@host:8443/v1", f"https://{MASK}@host:8443/v1"),
        ("https://host/v1?api-key=abc&version=2", f"https://host/v1?api-key={MASK}&version=2"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("https://host:port/v1", MASK),
        ("https://ann:p/w@host/v1", MASK),
        ("ann:pw@host/v1", MASK),
        ("https://host/v1#access_token=abc", f"https://host/v1#access_token={MASK}"),
    ],
)
def test_addresses_are_shown_without_secrets(url, shown):
    assert mask_url(url) == shown


def test_no_error_says_a_secret_of_an_address():
    error = EndpointError("ftp://ann:hunter2@host: can't be reached.", "Try http://HOST:PORT.")
    assert str(error) == f"ftp://{MASK}@host: can't be reached. Try http://HOST:PORT."


def test_no_setting_shows_a_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", "https://ann:hunter2@host/v1?token=hunter2")
    monkeypatch.setenv("TGRAPH_EMBEDDING__BASE_URL", "https://ann:hunter2@host/v1")
    for flags in ((), ("--json",)):
        said = run("config", "show", *flags, "--root", tmp_path).output
        assert MASK in said
        assert "hunter2" not in said


@given(st.text(max_size=20))
@example("=1+1")
@example("@cmd")
@example("\tx")
@example("+49 30 1234")
def test_no_cell_is_a_formula(text):
    cell = as_cell(text)
    row = next(csv.reader(io.StringIO(cell if cell else '""')), [""])
    assert row is not None
    assert not cell.startswith(("=", "@", "\t", "\r"))
    if cell.startswith(("+", "-")):
        assert cell[1:2].isdigit()
        assert not set(cell) & set("|!()/*'")


def test_numbers_stay_numbers():
    assert [as_cell(text) for text in ("-5", "+1.5e3", "12", "-3,000")] == [
        "-5",
        "+1.5e3",
        "12",
        "-3,000",
    ]


def test_a_picture_holds_no_control_characters(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    title = "Ships \x1b]0;owned\x07\u202e evil"
    (folder / "a.json").write_text(
        '[{"title": "Ships \\u001b]0;owned\\u0007\\u202e evil",'
        ' "text": "The Aurora sailed from Hobart in 1911 with a crew of nine men."}]'
    )
    with tgraph.open(tmp_path / "graph", create=True, settings=FAST) as graph:
        graph.index([folder])
        graph.ask("Where did the Aurora sail from?")
    said = run("trace", "last", "--format", "dot", "--root", tmp_path / "graph").output
    assert "digraph" in said
    assert not set(said) & set(title) & set("\x1b\x07\u202e")
