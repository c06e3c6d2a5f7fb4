"""`tgraph init`: a file of settings that says what there is, and changes nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from tgraph.cli.main import cli
from tgraph.engine.effective_settings import effective_settings
from tgraph.engine.settings_file import init_graph, settings_file, write_settings
from tgraph.errors import UsageError
from tgraph.resources import read_text
from tgraph.settings import Settings, load_settings

COMMENTED = re.compile(r"(?m)^#(?=[a-z_]+ = )")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_the_file_as_written_sets_nothing(tmp_path: Path):
    run("init", str(tmp_path / "graph"))
    assert all(
        s.origin == "default" or s.origin.startswith("TGRAPH_")
        for s in effective_settings(tmp_path / "graph")
    )
    assert load_settings(tmp_path / "graph").model_dump() == load_settings(None).model_dump()


def test_every_setting_is_there_once_with_its_default():
    written = tomllib.loads(COMMENTED.sub("", settings_file()))
    sections = {name: value for name, value in written.items() if isinstance(value, dict)}
    secrets = []
    for name, field in Settings.model_fields.items():
        default = Settings.model_construct().__getattribute__(name)
        if name not in sections:
            assert name in written
            continue
        for key, inner in type(default).model_fields.items():
            if "SecretStr" in str(inner.annotation):
                secrets.append(f"{name}.{key}")
                continue
            value = sections[name].pop(key)
            if inner.default is not None:
                value = tuple(value) if isinstance(value, list) else value
                assert value == inner.default, f"{name}.{key}"
        assert not sections[name], field
    assert secrets == [
        "chat.api_key",
        "embedding.api_key",
        "publish.password",
        "store.password",
        "rerank.api_key",
    ]


def test_a_line_is_set_by_taking_its_mark_away(tmp_path: Path):
    """Whatever kind of setting it is: the file stays one that loads."""
    (tmp_path / "tgraph.toml").write_text(COMMENTED.sub("", settings_file()))
    settings = load_settings(tmp_path)
    assert settings.chat.base_url == "http://localhost:8000/v1"
    assert settings.chunk == Settings.model_fields["chunk"].default
    assert settings.prompts == tmp_path / "prompts"


def test_every_setting_says_what_it_is_for():
    assert "# ()" not in settings_file()
    assert not re.search(r"(?m)^#  \[", settings_file())
    for section in (Settings, *(type(v) for _, v in Settings())):
        for name, field in getattr(section, "model_fields", {}).items():
            kind = field.annotation
            is_section = isinstance(kind, type) and hasattr(kind, "model_fields")
            assert is_section or field.description, f"{section}.{name}"


def test_values_are_set_in_their_place(tmp_path: Path):
    values = {"chat.model": 'my "model"', "chunk.size": 300, "extract.entity_types": ["ship"]}
    write_settings(tmp_path / "tgraph.toml", values)
    settings = load_settings(tmp_path)
    assert (settings.chat.model, settings.chunk.size) == ('my "model"', 300)
    assert settings.extract.entity_types == ("ship",)
    with pytest.raises(UsageError, match=r"chat\.modle"):
        settings_file({"chat.modle": "x"})


def test_nothing_is_overwritten(tmp_path: Path):
    graph = tmp_path / "graph"
    (graph / "prompts").mkdir(parents=True)
    (graph / "tgraph.toml").write_text("[chunk]\nsize = 77\n")
    (graph / "prompts" / "extract_graph.md").write_text("mine")
    said = run("init", str(graph), "--prompts")
    assert (graph / "tgraph.toml").read_text() == "[chunk]\nsize = 77\n"
    assert (graph / "prompts" / "extract_graph.md").read_text() == "mine"
    assert "Unchanged" in said
    assert 'set `prompts = "prompts"`' in said
    assert "Wrote" not in run("init", str(graph), "--prompts")
    with pytest.raises(UsageError, match="there already"):
        write_settings(graph / "tgraph.toml", {})


def test_prompts_are_copied_and_named(tmp_path: Path):
    done = init_graph(tmp_path / "graph", prompts=True)
    assert load_settings(done.folder).prompts == done.prompts
    copied = {path.name: path.read_text("utf-8") for path in done.prompts.glob("*.md")}
    assert "prompts = " in copied.pop("README.md")
    assert copied["extract_graph.md"] == read_text("prompts", "extract_graph.md")
    assert not [name for name, text in copied.items() if "=== system" not in text]


def test_the_folder_is_found_by_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    said = run("init")
    assert "tgraph index DOCUMENTS --root" in said
    assert (tmp_path / "tgraph-graph" / "tgraph.toml").is_file()
    assert "tgraph-graph" in run("config", "show")
    assert "twice" in run("init", "other", "--root", "graph", code=2)


def test_no_secret_has_a_line():
    assert SecretStr("x") is not None
    assert not re.search(r"(?m)^#?api_key = ", settings_file())
    assert "TGRAPH_EMBEDDING__API_KEY" in settings_file()
