"""`tgraph config import`: settings of GraphRAG's generations, in tgraph's terms."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.paths import REPOSITORY
from tgraph.cli.main import cli
from tgraph.engine.settings_file import init_graph
from tgraph.errors import UsageError
from tgraph.extensions.interchange.graphrag_settings import (
    ImportedSettings,
    import_graphrag_settings,
    load_rules,
)
from tgraph.settings import Settings, load_settings

V0 = """
encoding_model: cl100k_base
skip_workflows: []
llm:
  api_key: ${GRAPHRAG_API_KEY}
  type: openai_chat
  model: gpt-4-turbo-preview
  model_supports_json: true
  max_tokens: 4000
  request_timeout: 180.0
  tokens_per_minute: 150_000
  max_retries: 10
  max_retry_wait: 10.0
  temperature: 0
  top_p: 1
parallelization: {stagger: 0.3, num_threads: 50}
async_mode: threaded
embeddings:
  llm: {api_key: "${GRAPHRAG_API_KEY}", type: openai_embedding, model: text-embedding-3-small}
  batch_size: 16
chunks: {size: 1200, overlap: 100, group_by_columns: [id]}
input: {type: file, file_type: text, base_dir: input, file_pattern: ".*\\\\.txt$"}
cache: {type: file, base_dir: cache}
entity_extraction:
  prompt: prompts/entity_extraction.txt
  entity_types: [organization, person, geo, event]
  max_gleanings: 1
summarize_descriptions: {max_length: 500}
claim_extraction: {enabled: true, max_gleanings: 0}
community_reports: {max_length: 2000, max_input_length: 8000}
cluster_graph: {max_cluster_size: 12}
embed_graph: {enabled: false}
umap: {enabled: false}
snapshots: {graphml: false}
local_search: {text_unit_prop: 0.5, community_prop: 0.1, top_k_mapped_entities: 10,
  max_tokens: 12000}
global_search: {max_tokens: 11000, data_max_tokens: 9000, map_max_tokens: 1000, concurrency: 32}
"""
V1_AZURE = """
llm:
  api_key: secret-of-the-file
  type: azure_openai_chat
  model: gpt-4o
  api_base: https://me.openai.azure.com
  api_version: 2024-02-15-preview
  deployment_name: my-gpt
chunks: {size: ${GRAPHRAG_SIZE}, overlap: 50, strategy: sentence}
storage: {type: blob, connection_string: "AccountKey=abc", container_name: out}
drift_search: {n_depth: 2, primer_folds: 3, drift_k_followups: 7}
"""
V2 = """
models:
  default_chat_model:
    type: openai_chat
    auth_type: api_key
    api_key: ${GRAPHRAG_API_KEY}
    model: qwen2.5
    api_base: http://localhost:8000/v1?token=abc
    concurrent_requests: 25
    tokens_per_minute: auto
    requests_per_minute: 120
  cheap: {type: openai_chat, model: small, api_key: "${OTHER_KEY}"}
  default_embedding_model: {type: openai_embedding, model: bge-m3, api_base: http://localhost:8001/v1}
chunks: {size: 600, overlap: 50, encoding_model: o200k_base}
vector_store: {default_vector_store: {type: lancedb, db_uri: output/lancedb}}
embed_text: {model_id: default_embedding_model, batch_size: 32}
extract_graph: {model_id: default_chat_model, prompt: prompts/extract_graph.txt,
  entity_types: "ship, crew"}
local_search: {chat_model_id: default_chat_model, prompt: x.txt, top_k_entities: 8}
basic_search: {k: 5}
"""
V3 = """
completion_models:
  other: {model_provider: openai, model: other}
  default_completion_model:
    model_provider: openai
    model: gpt-4.1
    auth_method: api_key
    api_key: ${GRAPHRAG_API_KEY}
    retry: {type: exponential_backoff, max_retries: 7, base_delay: 2.0}
    rate_limit: {type: sliding_window, period_in_seconds: 30, requests_per_period: 100}
embedding_models:
  default_embedding_model: {model_provider: anthropic, model: e}
concurrent_requests: 25
chunking: {type: tokens, size: 10, overlap: 100, encoding_model: o200k_base}
extract_graph: {completion_model_id: default_completion_model, max_gleanings: 2}
extract_graph_nlp: {text_analyzer: {extractor_type: cfg, max_word_length: 12}}
prune_graph: {min_node_freq: 3, lcc_only: false}
community_reports: {max_length: 1500, graph_prompt: g.txt}
global_search: {dynamic_search_threshold: 2, dynamic_search_max_level: 3}
"""


def imported(folder: Path, text: str, env: str = "") -> ImportedSettings:
    (folder / "settings.yaml").write_text(text)
    (folder / ".env").write_text(env)
    return import_graphrag_settings(folder, accept_settings=True)


def reason(found: ImportedSettings, source: str) -> str:
    return next(left.reason for left in found.left if left.source == source)


def test_the_first_generation(tmp_path: Path):
    found = imported(tmp_path, V0, "GRAPHRAG_API_KEY=sk-not-to-be-seen\n")
    assert found.values == {
        "chunk.encoding": "cl100k_base",
        "chat.model": "gpt-4-turbo-preview",
        "chat.max_tokens": 4000,
        "chat.timeout": 180.0,
        "chat.tokens_per_minute": 150_000,
        "chat.retries": 10,
        "chat.temperature": 0,
        "chat.concurrency": 50,
        "embedding.model": "text-embedding-3-small",
        "embedding.provider": "openai",
        "embedding.batch_size": 16,
        "chunk.size": 1200,
        "chunk.overlap": 100,
        "extract.entity_types": ["organization", "person", "geo", "event"],
        "extract.gleanings": 1,
        "summaries.max_words": 500,
        "claims.enabled": True,
        "claims.gleanings": 0,
        "reports.max_output_tokens": 2000,
        "reports.max_input_tokens": 8000,
        "communities.max_size": 12,
        "local_search.chunk_share": 0.5,
        "local_search.report_share": 0.1,
        "local_search.top_k_entities": 10,
        "local_search.max_context_tokens": 12000,
        "global_search.map_context_tokens": 11000,
        "global_search.reduce_context_tokens": 9000,
    }
    assert [(key.source, key.named, key.variable) for key in found.keys] == [
        ("llm.api_key", "GRAPHRAG_API_KEY", "OPENAI_API_KEY")
    ]
    own = imported(tmp_path, V0.replace('"${GRAPHRAG_API_KEY}"', '"${MY_KEY}"')).keys
    assert [key.variable for key in own] == ["OPENAI_API_KEY", "TGRAPH_EMBEDDING__API_KEY"]
    assert "finds it out" in reason(found, "llm.model_supports_json")
    assert "tgraph init --prompts" in reason(found, "entity_extraction.prompt")
    assert "words" in reason(found, "global_search.map_max_tokens")
    assert "sk-not" not in repr(found)
    assert not [left for left in found.left if left.reason == "tgraph has no such setting"]


def test_azure_and_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHRAG_SIZE", "300")
    found = imported(tmp_path, V1_AZURE, "export NAME=x\nGRAPHRAG_SIZE=1\n")
    assert found.values == {
        "chat.base_url": "https://me.openai.azure.com/openai/v1",
        "chat.model": "my-gpt",
        "chunk.size": 300,
        "chunk.overlap": 50,
        "chunk.by": "sentences",
        "drift_search.depth": 2,
        "drift_search.folds": 3,
        "drift_search.k": 7,
    }
    assert "deployment" in reason(found, "llm.model")
    assert found.keys[0].named == ""
    assert "secret-of-the-file" not in repr(found)
    assert "AccountKey" not in repr(found)
    assert "SIZE is not set" in reason(_without(monkeypatch, tmp_path), "chunks.size")


def _without(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ImportedSettings:
    monkeypatch.delenv("GRAPHRAG_SIZE")
    return imported(folder, V1_AZURE)


def test_no_variable_and_no_address_is_taken_over_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_SECRET", "leaked")
    monkeypatch.setenv("GRAPHRAG_HOST", "leaked")
    monkeypatch.setenv("GRAPHRAG_API_KEY", "leaked")
    text = """
models:
  default_chat_model: {type: openai_chat, model: "${AWS_SECRET}", api_base: "http://u:pw@evil.example/v1"}
  default_embedding_model: {type: openai_embedding, model: "${GRAPHRAG_API_KEY}",
    api_base: "http://evil.example/${GRAPHRAG_HOST}/${OPENAI}"}
"""
    for accept in (False, True):
        (tmp_path / "settings.yaml").write_text(text)
        (tmp_path / ".env").write_text("OPENAI=leaked\n")
        found = import_graphrag_settings(tmp_path, accept_settings=accept)
        assert found.values.get("chat.base_url") == (
            "http://u:pw@evil.example/v1" if accept else None
        )
        assert "embedding.base_url" not in found.values
        assert "leaked" not in str(found)
    root = tmp_path / "graph"
    call = ["config", "import", str(tmp_path), "-r", str(root)]
    output = CliRunner().invoke(cli, call, env={"COLUMNS": "300"}).output
    assert "--accept-settings" in output
    assert "evil.example" in output
    assert "pw@" not in output
    assert load_settings(root).chat.base_url is None


def test_the_second_generation(tmp_path: Path):
    found = imported(tmp_path, V2)
    values = found.values
    assert values["chat.model"] == "qwen2.5"
    assert values["chat.base_url"] == "http://localhost:8000/v1?token=abc"
    assert (values["chat.concurrency"], values["chat.requests_per_minute"]) == (25, 120)
    assert "chat.tokens_per_minute" not in values
    assert values["embedding.base_url"] == "http://localhost:8001/v1"
    assert values["extract.entity_types"] == ["ship", "crew"]
    assert (values["chunk.size"], values["basic_search.k"]) == (600, 5)
    assert "one model" in reason(found, "models.cheap.model")
    assert [key.named for key in found.keys] == ["GRAPHRAG_API_KEY"]


def test_the_third_generation(tmp_path: Path):
    found = imported(tmp_path, V3)
    values = found.values
    assert (values["chat.model"], values["chat.retries"]) == ("gpt-4.1", 7)
    assert values["chat.requests_per_minute"] == 200
    assert (values["fast.max_word_length"], values["fast.min_node_freq"]) == (12, 3)
    assert values["reports.max_output_tokens"] == 1500
    assert values["global_search.dynamic_max_level"] == 3
    assert "greater than or equal to 20" in reason(found, "chunking.size")
    assert "OpenAI's protocol" in reason(
        found, "embedding_models.default_embedding_model.model_provider"
    )


@pytest.mark.parametrize("text", [V0, V1_AZURE, V2, V3])
def test_what_is_written_loads(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHRAG_SIZE", "300")
    found = imported(tmp_path, text)
    result = CliRunner().invoke(
        cli,
        ["config", "import", str(tmp_path), "--accept-settings", "-r", str(tmp_path / "graph")],
    )
    assert result.exit_code == 0, result.output
    settings = load_settings(tmp_path / "graph")
    for name, value in found.values.items():
        section, _, key = name.partition(".")
        loaded = getattr(getattr(settings, section), key)
        assert loaded == (tuple(value) if isinstance(value, list) else value), name


def test_a_dry_run_writes_nothing_and_json_tells_all(tmp_path: Path):
    imported(tmp_path, V2)
    root = tmp_path / "graph"
    result = CliRunner().invoke(
        cli, ["config", "import", str(tmp_path), "-r", str(root), "--dry-run", "--json"]
    )
    told = json.loads(result.stdout)
    assert told["written"] is None
    assert not root.exists()
    assert {"source": "basic_search.k", "setting": "basic_search.k", "value": 5} in told["moved"]
    assert told["keys"][0]["variable"] == "OPENAI_API_KEY"
    assert "token=abc" not in result.output


def test_settings_of_ones_own_stay(tmp_path: Path):
    imported(tmp_path, V3)
    root = init_graph(tmp_path / "graph").folder
    call = ["config", "import", str(tmp_path / "settings.yaml"), "--root", str(root)]
    assert CliRunner().invoke(cli, call).exit_code == 0
    assert load_settings(root).chat.model == "gpt-4.1"
    again = CliRunner().invoke(cli, call)
    assert again.exit_code == 2
    assert "left as it is" in again.output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "no settings"),
        ("a: [1\nb: 2", r"not YAML \(line"),
        ("a: !!python/object/apply:os.system [x]", "not YAML"),
        (f"a: &a [1]\nb: [{', '.join(['*a'] * 20)}]", "aliases"),
        ("a: &a\n  b: *a\n", "too deep"),
        ("[" * 20_000, "more than 100 deep"),
        ("#" * 1_000_001, "too large"),
    ],
)
def test_what_is_no_settings_file(text: str, message: str, tmp_path: Path):
    with pytest.raises(UsageError, match=message):
        imported(tmp_path, text)


def test_every_setting_of_the_table_exists_and_the_page_is_current():
    settings = Settings()
    for rule in load_rules():
        section, _, key = rule.setting.partition(".")
        assert rule.reason if not rule.setting else hasattr(getattr(settings, section), key), rule
    page = runpy.run_path(str(REPOSITORY / "docs/graphrag_settings_table.py"))["page"]()
    assert (REPOSITORY / "docs/reference/graphrag-settings.md").read_text("utf-8") == page


def test_a_folder_without_settings(tmp_path: Path):
    with pytest.raises(UsageError, match=r"settings\.yaml"):
        import_graphrag_settings(tmp_path)


@pytest.mark.parametrize("value", [".inf", ".nan", "{}", "[1, a]", "true", "'$'", "1.5", "-1"])
def test_a_value_that_fits_nothing_is_left_out_with_the_reason(value: str, tmp_path: Path):
    lines = [f"{name}: {{size: {value}, strategy: {value}}}" for name in ("chunks", "chunking")]
    lines.append(f"llm: {{max_retries: {value}, max_tokens: {value}, model: {value}}}")
    found = imported(tmp_path, "\n".join(lines))
    assert "chunk.by" not in found.values
    assert found.values.get("chat.retries", 1) == 1
    assert found.left or value in ("{}",)


def test_control_characters_stay_out_of_the_file(tmp_path: Path):
    imported(tmp_path, 'llm: {model: "a\\eb\\nc\\x7f"}\n')
    root = tmp_path / "graph"
    call = ["config", "import", str(tmp_path), "--root", str(root)]
    assert "\x1b" not in CliRunner().invoke(cli, call).output
    assert load_settings(root).chat.model == "a\x1bb\nc\x7f"
    assert "\x1b" not in (root / "tgraph.toml").read_text()
