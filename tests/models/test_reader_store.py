"""Pulled readers: from a server with the Hub's layout or a folder, whole or not at all, pinned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.small_reader import small_cross_encoder, small_reader
from tgraph.cli.main import cli
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.models.hub import locate_reader
from tgraph.models.reader import Passage
from tgraph.models.reader_store import PulledReader, ReaderStore, reader_named
from tgraph.store.files import FileLock

COMMIT = "a" * 40
LATER = "b" * 40
PASSAGE = Passage("It was built in Norway", ((0, 22),))


@dataclass
class Hub:
    """What a server publishes: files by their paths below ``/NAME/resolve/REVISION/``."""

    files: dict[str, bytes] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=lambda: {"main": COMMIT, COMMIT: COMMIT})
    announced: dict[str, str] = field(default_factory=dict)
    private: bool = False
    breaks_off: bool = False
    redirect: str = ""
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def publish(self, folder: Path, network: str = "model.onnx") -> None:
        self.files = {
            network: (folder / "model.onnx").read_bytes(),
            "tokenizer.json": (folder / "tokenizer.json").read_bytes(),
        }


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        hub = self.hub
        hub.asked.append(self.path)
        name, _, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, path = rest.partition("/")
        if name.startswith("elsewhere/"):
            self._send(hub.files[name.removeprefix("elsewhere/")])
        elif hub.private:
            self._refuse(401, "GatedRepo")
        elif revision not in hub.commits:
            self._refuse(404, "RevisionNotFound")
        elif path not in hub.files:
            self._refuse(404, "EntryNotFound")
        elif hub.redirect:
            self.send_response(302)
            self.send_header("Location", f"{hub.redirect}/elsewhere/{path}")
            self.send_header("Content-Length", "5")
            self._say(revision, path)
            self.end_headers()
            self.wfile.write(b"Found")
        else:
            self._send(hub.files[path], revision, path)

    def _send(self, data: bytes, revision: str = "", path: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self._say(revision, path)
        self.end_headers()
        self.wfile.write(data[:100] if self.hub.breaks_off else data)

    def _say(self, revision: str, path: str) -> None:
        if commit := self.hub.commits.get(revision):
            self.send_header("X-Repo-Commit", commit)
        if path in self.hub.announced:
            self.send_header("X-Linked-Etag", f'"{self.hub.announced[path]}"')

    def _refuse(self, code: int, why: str) -> None:
        self.send_response(code)
        self.send_header("X-Error-Code", why)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub(monkeypatch) -> Iterator[Hub]:
    made = Hub()
    handler = type("Handler", (_Handler,), {"hub": made})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HF_ENDPOINT", made.url)
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "tgraph" / "readers"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_reader(tmp_path / "small", {"Norway": 6.0})


def other(folder: Path) -> Path:
    return small_reader(folder.parent / "other", {"Norway": 5.0})


def pull(named: object, sha256: str = "", **how: str) -> PulledReader:
    return ReaderStore().pull(locate_reader(str(named), **how), sha256).reader


def left(data: Path) -> list[str]:
    """What lies among the readers, but for the lock of whoever pulls."""
    return sorted(str(p.relative_to(data)) for p in data.rglob("*") if p.name != ".lock")


def hash_of(folder: Path, name: str = "model.onnx") -> str:
    return sha256((folder / name).read_bytes()).hexdigest()


# --- from a server ---


def test_a_reader_is_pulled_and_reads(hub, folder):
    hub.publish(folder)
    found = pull("some/reader")
    assert (found.name, found.source, found.revision) == (
        "some/reader",
        f"{hub.url}/some/reader",
        COMMIT,
    )
    reader = reader_named("some/reader")
    [reading] = reader.read("Where ?", [PASSAGE])
    [span] = reading.spans
    assert span
    assert PASSAGE.text[span.start : span.end] == "Norway"
    assert reader.agent.provider == f"{hub.url}/some/reader@{COMMIT}"


def test_the_lock_has_revision_and_hashes(hub, folder):
    hub.publish(folder)
    lock = json.loads(pull("some/reader").lock.read_text())
    assert lock["revision"] == COMMIT
    assert lock["sha256"] == {
        "model.onnx": hash_of(folder),
        "tokenizer.json": hash_of(folder, "tokenizer.json"),
    }


def test_both_files_are_of_one_commit(hub, folder):
    hub.publish(folder)
    pull("some/reader")
    assert {path.split("/")[4] for path in hub.asked[1:]} == {COMMIT}


@pytest.mark.parametrize("network", ["onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_a_network_lies_in_a_folder_or_is_named(hub, folder, network):
    hub.publish(folder, network)
    file = "" if network == "onnx/model.onnx" else network
    assert pull("some/reader", file=file).file == network


@pytest.mark.parametrize("form", ["{}/some/reader", "{}/some/reader/tree/main"])
def test_the_url_of_a_repository_will_do(hub, folder, form):
    hub.publish(folder)
    assert pull(form.format(hub.url)).name == "some/reader"


@pytest.mark.parametrize("way", ["blob", "resolve"])
def test_the_url_of_a_file_names_it(hub, folder, way):
    hub.publish(folder, "onnx/model_int8.onnx")
    found = pull(f"{hub.url}/some/reader/{way}/main/onnx/model_int8.onnx")
    assert (found.name, found.file) == ("some/reader", "onnx/model_int8.onnx")


def test_a_name_without_an_owner_has_urls_too(hub, folder):
    hub.publish(folder)
    assert pull(f"{hub.url}/reader/tree/{COMMIT}").name == "reader"


def test_redirects_are_followed_and_what_they_say_counts(hub, folder):
    hub.publish(folder)
    hub.redirect = hub.url
    hub.announced = {"model.onnx": hash_of(folder)}
    assert pull("some/reader").revision == COMMIT
    hub.announced = {"model.onnx": "0" * 64}
    with pytest.raises(EndpointError, match="announced"):
        pull("some/reader")


def test_a_cross_encoder_is_a_reader_too(hub, tmp_path):
    hub.publish(small_cross_encoder(tmp_path / "cross", {"Norway": 6.0}))
    pull("some/cross-encoder")
    [reading] = reader_named("some/cross-encoder").read("Where ?", [PASSAGE])
    assert reading.relevance == 6.0


# --- what goes wrong leaves nothing behind ---


def test_without_a_network_the_error_says_what_can_be_done(monkeypatch, data):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EndpointError, match="HF_ENDPOINT") as caught:
        pull("some/reader")
    assert "tgraph models pull FOLDER" in caught.value.remedy
    assert not left(data)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_repository_without_a_reader_is_told(hub, folder, data, missing):
    hub.publish(folder)
    del hub.files[missing]
    with pytest.raises(ModelError, match=rf"has no {missing} or onnx/{missing}"):
        pull("some/reader")
    assert not left(data)


def test_a_revision_or_repository_that_there_is_not_is_told(hub, folder, data):
    hub.publish(folder)
    with pytest.raises(EndpointError, match="no revision v9"):
        pull("some/reader", revision="v9")
    hub.private = True
    with pytest.raises(EndpointError, match="not public"):
        pull("some/reader")
    assert not left(data)


def test_a_download_that_breaks_off_leaves_nothing(hub, folder, data):
    hub.publish(folder)
    hub.breaks_off = True
    with pytest.raises(EndpointError, match=r"100 (of [\d,]+ )?bytes"):
        pull("some/reader")
    assert not left(data)


def test_an_interrupted_pull_leaves_what_was_there(hub, folder, data):
    hub.publish(folder)
    pull("some/reader")
    before = left(data)

    def interrupt(name: str, done: int, total: int) -> None:
        if name == "model.onnx":
            raise KeyboardInterrupt

    hub.publish(other(folder))
    hub.commits = {"main": LATER, LATER: LATER}
    with pytest.raises(KeyboardInterrupt):
        ReaderStore().pull(locate_reader("some/reader"), told=interrupt)
    assert left(data) == before
    assert reader_named("some/reader").read("Where ?", [PASSAGE])


def test_what_a_killed_pull_left_goes_with_the_next(hub, folder, data):
    hub.publish(folder)
    (data / "some--reader" / "tmp1").mkdir(parents=True)
    (data / "some--reader" / "tmp1" / "model.onnx").write_bytes(b"half")
    found = pull("some/reader")
    assert [p for p in (data / "some--reader").iterdir() if p.is_dir()] == [found.folder]


def test_what_is_no_reader_is_not_kept(hub, folder, data):
    hub.publish(folder)
    hub.files["model.onnx"] = b"no network"
    with pytest.raises(ModelError, match="can't be loaded"):
        pull("some/reader")
    assert not left(data)


def test_only_one_process_pulls(hub, folder, data):
    hub.publish(folder)
    data.mkdir(parents=True)
    lock = FileLock.try_acquire(data / ".lock")
    assert lock
    with pytest.raises(ModelError, match="Another process"):
        pull("some/reader")
    lock.release()
    assert pull("some/reader")


# --- pins ---


def test_a_pinned_hash_that_differs_names_file_hashes_and_remedy(hub, folder, data):
    hub.publish(folder)
    with pytest.raises(ModelError) as caught:
        pull("some/reader", "0" * 64)
    for told in ("model.onnx", hash_of(folder), "0" * 64, "Nothing was kept"):
        assert told in str(caught.value)
    assert not left(data)
    assert pull("some/reader", hash_of(folder).upper())


def test_a_hash_that_is_none_is_told(hub):
    with pytest.raises(UsageError, match="64"):
        pull("some/reader", "abc")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_that_was_changed_is_not_loaded(hub, folder, name):
    hub.publish(folder)
    found = pull("some/reader")
    (found.folder / name).write_bytes(b"changed")
    with pytest.raises(ModelError) as caught:
        reader_named("some/reader")
    told = str(caught.value)
    for part in (name, found.hashes[name], sha256(b"changed").hexdigest(), str(found.lock)):
        assert part in told
    assert caught.value.remedy.startswith(f"Run: tgraph models pull {hub.url}/some/reader ")


def test_the_remedy_for_a_file_that_is_gone_is_to_pull_it_again(hub, folder):
    hub.publish(folder)
    found = pull("some/reader")
    (found.folder / "model.onnx").unlink()
    with pytest.raises(ModelError, match="tgraph models pull"):
        reader_named("some/reader")
    pull(found.source, revision=found.revision, file=found.file)
    assert reader_named("some/reader")


def test_a_revision_that_has_changed_needs_its_new_hash(hub, folder):
    hub.publish(folder)
    found = pull("some/reader")
    hub.publish(other(folder))
    with pytest.raises(ModelError, match=f"`sha256`: {hash_of(other(folder))}") as caught:
        pull("some/reader")
    assert found.hashes["model.onnx"] in str(caught.value)
    assert reader_named("some/reader").agent.version == found.load().agent.version
    assert pull("some/reader", hash_of(other(folder)))


def test_another_revision_takes_the_place_of_the_one_before(hub, folder, data):
    hub.publish(folder)
    first = pull("some/reader")
    hub.publish(other(folder))
    hub.commits = {"main": LATER, LATER: LATER}
    made = ReaderStore().pull(locate_reader("some/reader"))
    assert made.before == first
    assert [each.revision for each in ReaderStore().list_readers()] == [LATER]
    assert len([p for p in (data / "some--reader").iterdir() if p.is_dir()]) == 1


def test_a_lock_that_is_none_is_told(hub, folder):
    hub.publish(folder)
    pull("some/reader").lock.write_text("{}")
    with pytest.raises(ModelError, match="not the lock"):
        reader_named("some/reader")


# --- from a folder, and by name ---


def test_a_folder_is_pulled_by_its_name(folder):
    found = pull(folder)
    assert (found.name, found.source, found.revision) == ("small", str(folder), "")
    small_reader(folder, {"Norway": 2.0})  # what lies there now is another one
    assert reader_named("small").agent.version == found.load().agent.version
    assert pull(folder).hashes != found.hashes


def test_a_folder_has_no_revisions(folder):
    with pytest.raises(UsageError, match="revision"):
        pull(folder, revision="main")


def test_a_folder_without_a_reader_is_told(tmp_path):
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        pull(tmp_path)


@pytest.mark.parametrize(
    "named", ["embedded", "none", "a/b/c", "../x", "a--b", "ftp://host/a/b", "https://me:it@host/a"]
)
def test_names_that_can_be_none_are_told(named):
    with pytest.raises(UsageError):
        locate_reader(named)


def test_a_folder_that_was_not_pulled_is_a_reader_as_it_lies(folder):
    assert reader_named(str(folder)).agent.name == "small"


def test_a_reader_that_there_is_not_is_told():
    with pytest.raises(ModelError, match="tgraph models pull some/reader"):
        reader_named("some/reader")


# --- the command ---


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(cli, ["models", *arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_command_pulls_and_lists(hub, folder):
    hub.publish(folder)
    said = run("pull", "some/reader")
    assert said.stdout == "some/reader\n"
    assert f"model.onnx: SHA-256 {hash_of(folder)}" in said.stderr
    assert "TGRAPH_READER__MODEL=some/reader" in said.stderr
    assert "some/reader" in run("list").stdout
    [row] = json.loads(run("list", "--json").stdout)
    assert (row["revision"], row["hashes"]["model.onnx"]) == (COMMIT, hash_of(folder))


def test_the_command_says_what_gives_way(hub, folder):
    hub.publish(folder)
    run("pull", "some/reader", "-q")
    hub.publish(other(folder))
    hub.commits = {"main": LATER, LATER: LATER}
    assert (
        f"replaces {hub.url}/some/reader, revision {COMMIT}"
        in run("pull", "some/reader", "-q").stderr
    )


def test_the_command_fails_in_one_sentence(hub):
    assert "has no tokenizer.json" in run("pull", "some/reader", code=1).stderr
    hub.private = True
    assert "not public" in run("pull", "some/reader", code=5).stderr
