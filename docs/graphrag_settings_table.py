"""Prints docs/reference/graphrag-settings.md from the table of the importer."""

from __future__ import annotations

from tgraph.extensions.interchange.graphrag_settings import KEY_VARIABLES, SettingRule, load_rules

HEAD = """# GraphRAG's settings

Made by `python docs/graphrag_settings_table.py > docs/reference/graphrag-settings.md`; a test
keeps the page current. [`tgraph config import`](../howto/start-a-graph.md#come-from-graphrag)
reads the same table (`tgraph/data/graphrag_settings.csv`): the first row that matches counts, and
`*` stands for any characters.

Names are those that all generations of GraphRAG share. `chat.` is the chat model (`llm` of
GraphRAG 0 and 1, a model of `models` in 2, of `completion_models` in 3), `embedding.` the
embedding model (`embeddings.llm`, `models`, `embedding_models`). `chunks` is `chunking` in 3,
`extract_graph` was `entity_extraction`, `extract_claims` was `claim_extraction`, `embeddings` is
`embed_text`, `community_reports` was `community_report`. A setting that the table does not have
is left out too, and named.

Where a value is not taken as it stands: *limit*: 0 and `auto` set none; *limit per minute*: from
the period of `rate_limit`; *texts*: a list, or divided at commas; *fields*: true is title,
author, date and tags; *unit*: tokens or sentences; *model*: where no deployment has a name;
*address*: with Azure's path of OpenAI's protocol; *provider*: OpenAI or Azure, others are named.
"""


def page() -> str:
    """Return the page."""
    keys = [f"| `{name}` | the environment: `{place}` | |" for name, place in KEY_VARIABLES.items()]
    return (
        "\n".join([HEAD, "| GraphRAG | tgraph | value |", "|---|---|---|", *keys, *rows()]) + "\n"
    )


def rows() -> list[str]:
    return [f"| {_names(rule)} | {_place(rule)} | {rule.conversion} |" for rule in load_rules()]


def _names(rule: SettingRule) -> str:
    return ", ".join(f"`{name}`" for name in rule.names)


def _place(rule: SettingRule) -> str:
    return f"`{rule.setting}`" if rule.setting else rule.reason


if __name__ == "__main__":
    print(page(), end="")
