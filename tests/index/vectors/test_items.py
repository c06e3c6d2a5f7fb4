"""What is embedded of documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import Corpus
from tgraph.index.vectors.items import items_of
from tgraph.ingest import files
from tgraph.testing import ScriptedModel

PAGE = 'The [reed](https://a.b/reed_(plant) "A reed") grows by ![Image 1: ponds](/p.png).\n'
CHUNK = "The [reed] grows by ![Image 1: ponds].\n"


@pytest.mark.parametrize(("version", "embedded"), [(2, CHUNK), (1, PAGE)])
def test_chunks_of_markdown_are_embedded_without_addresses_since_the_second_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, embedded: str
):
    monkeypatch.setitem(files._READING_VERSIONS, "text/markdown", version)
    corpus = Corpus(tmp_path, ScriptedModel())
    corpus.index({"reeds.md": PAGE, "reeds.txt": "reed](of) the pond\n"})
    with corpus.open() as kg:
        items = items_of("chunk", kg.opened.read(), kg.opened.librarian)
        texts = {text.strip() for _, text in items}
    assert texts == {embedded.strip(), "reed](of) the pond"}
