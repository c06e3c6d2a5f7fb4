"""Extensions are found by entry points: tgraph's own, of other packages, broken ones, and none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import tgraph
from tests.support.paths import REPOSITORY
from tgraph import plugins
from tgraph.cli.main import cli
from tgraph.errors import UsageError
from tgraph.extensions import Extension
from tgraph.retrieve.modes.registry import MODES

OWN = {"evidence", "frameworks", "interchange", "lab", "operations", "server"}
LOGBOOK = "1914-05-06 | The Fram sailed from Oslo.\n1914-05-07 | The Maud came alongside.\n"
TEXT = "Ann Lee built the Fram in Larvik.\n"


def install(folder: Path, name: str, code: str, entry: str = "") -> None:
    """Put a package with an entry point into a folder, as an installer does."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    entry = entry or f"{name} = {name}:EXTENSION"
    (about / "entry_points.txt").write_text(f"[{plugins.GROUP}]\n{entry}\n")


def run_tgraph(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``tgraph`` with what is installed in ``path`` beside what is installed here."""
    code = "from tgraph.cli.scripts import main; main()"
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=REPOSITORY, check=False
    )


def loaded_modules(code: str) -> set[str]:
    """Return the modules of extensions that are loaded once the code has run."""
    shown = "; print([name for name in sys.modules if name.startswith('tgraph.extensions')])"
    command = [sys.executable, "-c", f"import sys; {code}{shown}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return set(json.loads(done.stdout.splitlines()[-1].replace("'", '"')))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The core without any extension."""
    monkeypatch.setattr(plugins, "_entry_points", lambda: ())
    plugins.load_extensions.cache_clear()
    plugins._collect.cache_clear()
    yield
    plugins.load_extensions.cache_clear()
    plugins._collect.cache_clear()


def test_tgraphs_own_extensions_are_installed():
    extensions = plugins.load_extensions()
    assert extensions.keys() >= OWN
    assert all(isinstance(extensions[name], Extension) for name in OWN)


def test_each_kind_of_contribution_has_a_registry():
    fields = set(Extension.__dataclass_fields__) - {"name"}
    registries = {r.field for r in vars(plugins).values() if isinstance(r, plugins.Registry)}
    assert registries == fields


def test_a_core_command_loads_no_extension():
    run = "from tgraph.cli.main import cli; cli(['--version'], standalone_mode=False)"
    assert loaded_modules(run) == set()
    run = "from tgraph.cli.main import cli; cli(['trace', '--help'], standalone_mode=False)"
    assert loaded_modules(run) == set()


def test_settings_load_extensions_and_nothing_that_they_name():
    light = {"tgraph.extensions", *(f"tgraph.extensions.{name}" for name in OWN)}
    loaded = loaded_modules("from tgraph.settings import load_settings; load_settings(None, {})")
    assert loaded - {"tgraph.extensions.lab.influence"} == light


def test_a_broken_extension_costs_one_line(tmp_path: Path):
    install(tmp_path / "site", "adrift", "import nothing_of_that_name")
    done = run_tgraph("--help", path=tmp_path / "site")
    assert done.returncode == 0
    assert "verify-crate" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("The extension adrift can't be used: ModuleNotFoundError")


def test_what_is_no_extension_costs_one_line(tmp_path: Path):
    install(tmp_path / "site", "adrift", "EXTENSION = 7")
    done = run_tgraph("--help", path=tmp_path / "site")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "adrift:EXTENSION is no tgraph.extensions.Extension" in done.stderr


_MODE = """
from tgraph.extensions import Extension

def mode():
    from tgraph.retrieve.modes.bm25 import BM25
    return BM25

EXTENSION = Extension(name="NAME", modes={"MODE": mode})
"""


def test_a_name_of_two_extensions_is_an_error_with_both(tmp_path: Path):
    for name in ("north", "south"):
        code = _MODE.replace("NAME", name).replace("MODE", "pole")
        install(tmp_path / "site", name, code)
    done = run_tgraph("config", "show", path=tmp_path / "site")
    assert done.returncode == 2
    assert "The extensions north and south both have the mode 'pole'." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_of_the_core_is_an_error(tmp_path: Path):
    install(tmp_path / "site", "north", _MODE.replace("NAME", "north").replace("MODE", "bm25"))
    done = run_tgraph("ask", "--help", path=tmp_path / "site")
    assert done.returncode == 2
    assert "tgraph and the extension north both have the mode 'bm25'." in done.stderr


def test_two_extensions_of_one_name_are_an_error(tmp_path: Path):
    code = 'from tgraph.extensions import Extension\n\nEXTENSION = Extension(name="lab")\n'
    install(tmp_path / "site", "another_lab", code)
    done = run_tgraph("--help", path=tmp_path / "site")
    assert done.returncode == 2
    assert "Two extensions are called 'lab'" in done.stderr
    assert "another_lab:EXTENSION and tgraph.extensions.lab:EXTENSION" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_the_core_alone_answers_and_proves(tmp_path: Path):
    (tmp_path / "fram.txt").write_text(TEXT)
    with tgraph.open(tmp_path / "graph", create=True) as kg:
        assert kg.index([tmp_path / "fram.txt"]).indexed
        answer = kg.ask("Who built the Fram?", "graph")
        assert "Ann Lee" in answer.text
        assert kg.trace(answer.session).selected
        assert kg.export(answer.session, "trig")
        assert kg.replay(answer.session).is_same
        assert kg.verify(answer.session).is_supported
        assert kg.why_not(answer.session, "Larvik").cause
        assert kg.integrity().ok
        with pytest.raises(UsageError, match="extension evidence, which is not installed"):
            kg.export(answer.session, "html")
        kg.retract("fram.txt", reason="It is wrong.")
        kg.purge("fram.txt", reason="Nobody may know.")
    names = CliRunner().invoke(cli, ["--help"]).output
    assert "  ask " in names
    assert "  serve " not in names


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("format", ["html", "svg"])
def test_the_core_alone_says_which_extension_is_missing(format: str, tmp_path: Path):
    (tmp_path / "fram.txt").write_text(TEXT)
    root = str(tmp_path / "graph")
    with tgraph.open(root, create=True) as kg:
        kg.index([tmp_path / "fram.txt"])
        kg.ask("Who built the Fram?", "bm25")
    done = CliRunner().invoke(cli, ["trace", "--root", root, "--format", format])
    assert done.exit_code == 2
    assert f"'{format}' belongs to the extension evidence" in done.output


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example is installed."""
    folder = tmp_path_factory.mktemp("plugin") / "site"
    install_package = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder)]
    source = str(REPOSITORY / "examples" / "plugin")
    subprocess.run([*install_package, *options, source], check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_a_package_adds_a_loader_a_mode_a_command_and_a_chat_model(site: Path, tmp_path: Path):
    (tmp_path / "fram.logbook").write_text(LOGBOOK)
    root = ("--root", str(tmp_path / "graph"))

    def run(*arguments: str) -> str:
        done = run_tgraph(*arguments, *root, path=site)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("index", str(tmp_path / "fram.logbook"), "--quiet")
    assert run("entries") == "Logbook of 1914-05-06: The Fram sailed from Oslo.\n"
    question = ("ask", "-m", "verbatim", "What did the Maud do?")
    assert "The Maud came alongside." in run(*question)
    written = json.loads(run(*question, "--chat-provider", "quoting", "--json"))
    assert written["answer"] == "The Maud came alongside."
    (citation,) = written["sentences"][0]["citations"]
    assert citation["quote"].startswith("The Maud came alongside.")
    assert citation["page"] == 2
    assert "Synthesising by quoting" in run("trace")
    assert "The records are the same" in run("replay")
    assert "The record is intact" in run("audit", "integrity")
    run("audit", "shapes")
    assert "verbatim.k" in run("config", "show")


@pytest.mark.slow
def test_settings_name_what_a_package_adds(site: Path, tmp_path: Path):
    settings = '[chat]\nprovider = "quoting"\n\n[verbatim]\nk = 1\n'
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "tgraph.toml").write_text(settings)
    (tmp_path / "fram.logbook").write_text(LOGBOOK)
    root = ("--root", str(tmp_path / "graph"))
    done = run_tgraph("config", "show", *root)
    assert done.returncode == 2
    assert "verbatim is not a setting" in done.stderr
    shown = run_tgraph("config", "show", *root, "--json", path=site)
    assert json.loads(shown.stdout)["verbatim.k"]["value"] == 1


def test_what_is_not_installed_is_no_mode():
    assert "verbatim" not in MODES


STORE = """
from tgraph.extensions import Extension


def make_store():
    from types import SimpleNamespace

    from tgraph.index.vectors import inverted_list_store as own
    from tgraph.index.vectors.base import IndexDecorator, StaleIndexError

    class MarkedIndex(IndexDecorator):
        def save(self, folder, generation):
            super().save(folder, generation)
            (folder / f"{self.kind}.marked").touch()

    def open_vectors(folder, kind, **expected):
        if not (folder / f"{kind}.marked").exists():
            raise StaleIndexError("Another store has them.")
        return MarkedIndex(own.open_vectors(folder, kind, **expected))

    def build_vectors(*arguments, **options):
        return MarkedIndex(own.build_vectors(*arguments, **options))

    return SimpleNamespace(
        open_vectors=open_vectors, build_vectors=build_vectors, revise_vectors=lambda *_: None
    )


EXTENSION = Extension(name="stores", vector_stores={"marked": make_store})
"""


@pytest.mark.slow
def test_a_setting_chooses_the_vector_store_of_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, graph = tmp_path / "site", tmp_path / "graph"
    install(site, "stores", STORE)
    (tmp_path / "fram.txt").write_text(TEXT)
    root = ("--root", str(graph))
    assert run_tgraph("index", str(tmp_path / "fram.txt"), *root).returncode == 0
    monkeypatch.setenv("TGRAPH_VECTORS__STORE", "marked")
    done = run_tgraph("index", str(tmp_path / "fram.txt"), *root, path=site)
    assert "The chunk vectors are rebuilt: Another store has them." in done.stderr
    assert (graph / "collections/default/vectors/chunk.marked").exists()
    asked = run_tgraph("ask", "Who built the Fram?", "--mode", "basic", *root, path=site)
    assert "Ann Lee" in asked.stdout
    assert "vectors are" not in asked.stderr
    refused = run_tgraph("config", "show", *root)
    assert "vectors.store: Input should be 'inverted-lists'" in refused.stderr
    monkeypatch.setenv("TGRAPH_VECTORS__STORE", "other")
    refused = run_tgraph("config", "show", *root, path=site)
    assert "'inverted-lists', or of an extension 'marked'" in refused.stderr
