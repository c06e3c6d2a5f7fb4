"""What documents call by several names: a question by one of them finds what is said by another."""

from __future__ import annotations

import pytest

from tests.engine.ask.test_modes import CATALOGUE
from tests.support.corpora import made
from tgraph import vocabulary as v
from tgraph.explain.audit.shacl import check_shapes

TEXTS = {
    "acme.md": "# Acme Corp\n\nAcme Corp (formerly Zenith Ltd) makes clocks in Bergen.\n",
    "kern.md": "# Ada Kern\n\nZenith Ltd hired Ada Kern in 1911. Ada Kern painted boats.\n",
    "bread.md": "# Bread\n\nSourdough bread is baked in Paris. Bakers in Paris rise early.\n",
}


@pytest.mark.slow
def test_a_question_by_one_name_finds_what_is_said_by_the_other(tmp_path):
    with made(tmp_path, TEXTS) as (graph, _):
        answer = graph.ask("Whom did Acme Corp hire in 1911?", "graph", history=[])
        assert "Zenith Ltd hired Ada Kern" in answer.sentences[0].text
        other = graph.ask("What does Zenith Ltd make?", "graph", history=[])
        assert "makes clocks" in other.sentences[0].text
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)


def test_the_evidence_has_the_alias_and_the_merge_its_ground(tmp_path):
    with made(tmp_path, TEXTS) as (graph, _):
        store = graph.opened.read()
        claimed = [str(quad.subject) for quad in store.match(None, v.tg("alias"), None)]
        assert claimed
        assert all(iri.startswith("<urn:trustgraph:evidence:") for iri in claimed)
        [merge] = graph.entities.read_merges()
        assert {merge.absorbed_name, merge.canonical_name} == {"Acme Corp", "Zenith Ltd"}
        [ground] = merge.grounds
        assert (ground.kind, ground.alias) == ("alias", "Zenith Ltd")
        assert ground.text.startswith("'Acme Corp' is also called 'Zenith Ltd' (")
