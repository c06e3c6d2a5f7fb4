"""Settings: their order, their errors, their secrets, and their page."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY
from tgraph.errors import UsageError
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.modes.suggest import SUGGEST
from tgraph.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "TGRAPH_ROOT"):
        monkeypatch.delenv(name, raising=False)


def test_file_then_environment_then_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tgraph.toml").write_text("[graph]\nedge_limit = 7\ntriple_limit = 8\n")
    assert load_settings(tmp_path).graph.edge_limit == 7
    monkeypatch.setenv("TGRAPH_GRAPH__EDGE_LIMIT", "9")
    assert load_settings(tmp_path).graph.edge_limit == 9
    settings = load_settings(tmp_path, {"graph.edge_limit": 10, "collection": None})
    assert (settings.graph.edge_limit, settings.graph.triple_limit) == (10, 8)
    assert settings.collection == "default"


def test_variables_set_sections_and_lists_as_json_and_what_is_in_them(monkeypatch):
    monkeypatch.setenv("TGRAPH_EXTRACT", '{"gleanings": 3, "ontology_limit": 7}')
    monkeypatch.setenv("tgraph_extract__ontology_limit", "8")
    monkeypatch.setenv("TGRAPH_EXTRACT__ENTITY_TYPES", '["ship", "place"]')
    extract = load_settings(None).extract
    assert (extract.gleanings, extract.ontology_limit) == (3, 8)
    assert extract.entity_types == ("ship", "place")
    monkeypatch.setenv("TGRAPH_EXTRACT__ENTITY_TYPES", "ship, place")
    with pytest.raises(UsageError, match="TGRAPH_EXTRACT__ENTITY_TYPES is not JSON"):
        load_settings(None)
    monkeypatch.delenv("TGRAPH_EXTRACT__ENTITY_TYPES")
    monkeypatch.setenv("TGRAPH_EXTRACT__GLEANING", "3")
    with pytest.raises(UsageError, match=r"extract\.gleaning is not a setting"):
        load_settings(None)


def test_an_unknown_key_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tgraph.toml").write_text("[chat]\nmodle = 'x'\n")
    with pytest.raises(UsageError, match=r"chat\.modle is not a setting"):
        load_settings(tmp_path)
    (tmp_path / "tgraph.toml").write_text("not toml [")
    with pytest.raises(UsageError, match=r"tgraph\.toml can't be read"):
        load_settings(tmp_path)
    (tmp_path / "tgraph.toml").unlink()
    monkeypatch.setenv("TGRAPH_COLECTION", "x")
    with pytest.raises(UsageError, match="TGRAPH_COLECTION"):
        load_settings(tmp_path)


def test_a_path_of_the_file_is_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "tgraph.toml").write_text("prompts = 'mine'\n")
    assert load_settings(tmp_path).prompts == tmp_path / "mine"
    (tmp_path / "tgraph.toml").write_text("prompts = '/etc/mine'\n")
    assert load_settings(tmp_path).prompts == Path("/etc/mine")
    monkeypatch.setenv("TGRAPH_PROMPTS", "here")
    assert load_settings(tmp_path).prompts == Path("here")


def test_a_reader_of_the_file_is_a_name_unless_such_a_folder_lies_beside_it(
    shipped_reader, tmp_path
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "tgraph.toml").write_text("reader.model = 'mine'\n")
    assert load_settings(tmp_path).reader.model == str(tmp_path / "mine")
    (tmp_path / "tgraph.toml").write_text("reader.model = 'some/reader'\n")
    assert load_settings(tmp_path).reader.model == "some/reader"


def test_a_value_out_of_range_is_an_error():
    with pytest.raises(UsageError, match=r"graph\.edge_limit"):
        load_settings(None, {"graph.edge_limit": 0})


def test_a_key_or_a_base_url_brings_the_model_in(monkeypatch: pytest.MonkeyPatch):
    assert not load_settings(None).uses_model()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    settings = load_settings(None)
    assert settings.uses_model()
    assert "sk-secret-of-mine" not in repr(settings)
    assert "sk-secret-of-mine" not in settings.model_dump_json()
    assert not load_settings(None, {"chat.provider": "embedded"}).uses_model()


def test_the_page_is_current():
    page = (REPOSITORY / "docs/reference/settings.md").read_text("utf-8")
    assert page.endswith(runpy.run_path(str(REPOSITORY / "docs/settings_table.py"))["table"]())


def test_sections_of_modes_are_read_without_their_retrievers():
    code = (
        "import sys, tgraph.settings; read = {m for m in sys.modules if m.startswith("
        "'tgraph.retrieve.') and not m.startswith('tgraph.retrieve.modes')};"
        " sys.exit(f'loaded {sorted(read)}' if read or 'pyoxigraph' in sys.modules else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_section_that_a_mode_names_is_one_of_the_settings():
    named = {name for mode in (*MODES.values(), SUGGEST) for name in (mode.section, *mode.beneath)}
    assert named - {""} <= Settings.model_fields.keys()
    searches = {name for name in Settings.model_fields if name.endswith("_search")}
    assert searches <= named


def test_every_flag_of_a_mode_overrides_a_setting_that_there_is():
    for mode in MODES.values():
        for setting in mode.flags.values():
            section, _, name = setting.partition(".")
            assert name in type(getattr(Settings(), section)).model_fields
