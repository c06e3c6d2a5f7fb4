"""Claims from documents into knowledge and back out of it, with their evidence."""

from __future__ import annotations

import json
from io import StringIO
from itertools import count
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode
from rich.console import Console

import tgraph
from tests.support.corpora import opened, write
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.text_trees import source_tree
from tgraph.extract.model.claims import ModelClaims
from tgraph.index.claims import claims_of
from tgraph.index.sources import Texts
from tgraph.models.prompts import fill_messages, load_prompt
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

COOK = "Frederick Cook reached the North Pole in 1908. Nobody believed Frederick Cook.\n"
PEARY = "Doctor Cook may have lied. Robert Peary accused Doctor Cook.\n"


def entity(name: str, *aliases: str) -> dict[str, object]:
    return {"name": name, "type": "person", "description": "", "aliases": list(aliases)}


def graph_reply(request) -> str:
    text = str(request.messages[-1]["content"])
    cook = [entity("Frederick Cook", "Doctor Cook")] if "Frederick Cook" in text else []
    peary = [entity("Robert Peary"), entity("Doctor Cook")] if "Peary" in text else []
    return json.dumps({"entities": cook + peary, "relationships": [], "attributes": []})


class Place:
    """A graph over files that change; each step opens it anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = ScriptedModel({"extract_graph": graph_reply}, clock=ticking_clock())
        self._ids, self._clock = count(), ticking_clock()

    def open(self, **settings: object) -> tgraph.KnowledgeGraph:
        values = load_settings(None, {"claims.enabled": True, **settings})
        cache = self.folder / "cache"
        parts = Components(values, cache, chat=self.model, embedder=HashingEmbedder())
        return tgraph.open(
            self.folder / "graph",
            create=True,
            parts=parts,
            settings={"claims.enabled": True, **settings},
            clock=self._clock,
            uuid=lambda: f"00000000-0000-4000-8000-{next(self._ids):012d}",
        )

    def index(self, text: str, name: str = "cook.txt", **settings: object):
        (self.folder / name).write_text(text)
        with self.open(**settings) as kg:
            return kg.index([self.folder / name])

    def claims(self, *names: str):
        with self.open() as kg:
            store = kg.opened.read()
            found = claims_of(
                store, Texts(store, kg.opened.librarian), [v.entity_iri(n) for n in names]
            )
            texts = Texts(store, kg.opened.librarian)
            for claim in [c for claims in found.values() for c in claims]:
                for e in claim.evidence:
                    assert e.quote == texts.of_page(e.document, e.page)[e.start : e.end]
                    assert e.statement == claim.iri
            return found


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_claims_are_knowledge_with_exact_evidence(place):
    report = place.index(COOK)
    assert report.claims == 1
    ((claim,),) = place.claims("Frederick Cook").values()
    assert (claim.subject_label, claim.object, claim.type, claim.status) == (
        "Frederick Cook",
        "",
        "deed",
        "TRUE",
    )
    assert claim.started == claim.ended == Literal("1908", datatype=v.xsd("gYear"))
    (evidence,) = claim.evidence
    assert evidence.quote == "Frederick Cook reached the North Pole in 1908."
    assert evidence.path.endswith("cook.txt")


def test_what_was_extracted_from_a_document_shows_its_claims(place):
    place.index(COOK)
    with place.open() as kg:
        tree = kg.documents.read_extractions("cook.txt")
        ((claim,),) = [chunk.claims for page in tree.pages for chunk in page.chunks]
        assert claim.quote == "Frederick Cook reached the North Pole in 1908."
        assert (claim.subject, claim.status) == (v.entity_iri("Frederick Cook"), "TRUE")
        console = Console(width=100, record=True, file=StringIO())
        console.print(source_tree(tree))
        assert "deed (TRUE): Frederick Cook reached the North Pole" in console.export_text()


def test_claims_follow_merges_and_are_asked_for_in_one_go(place):
    place.index(COOK)
    place.index(PEARY, "peary.txt")
    found = place.claims("Frederick Cook", "Robert Peary", "Nobody")
    cook, peary = v.entity_iri("Frederick Cook"), v.entity_iri("Robert Peary")
    assert list(found) == [cook, peary]
    assert [(c.subject, c.object, c.status) for c in found[cook]] == [
        (cook, "", "TRUE"),
        (cook, "", "SUSPECTED"),  # Doctor Cook, by the alias that the other document gives
        (peary, cook, "TRUE"),
    ]
    assert [c.subject for c in found[peary]] == [peary]
    place.index("Frederick who?", "cook.txt")  # nobody says any more that Doctor Cook is Frederick
    found = place.claims("Doctor Cook", "Frederick Cook")
    assert [c.status for c in found[v.entity_iri("Doctor Cook")]] == ["SUSPECTED", "TRUE"]
    assert cook not in found


def test_a_claim_of_two_documents_stands_until_neither_does(place):
    place.index(COOK)
    place.index("# Again\n\n" + COOK, "again.txt")
    ((claim,),) = place.claims("Frederick Cook").values()
    assert len(claim.evidence) == 2
    place.index("Nothing.", "cook.txt")
    ((claim,),) = place.claims("Frederick Cook").values()
    assert [e.path.rpartition("/")[2] for e in claim.evidence] == ["again.txt"]
    place.index("Nothing.", "again.txt")
    assert place.claims("Frederick Cook") == {}
    with place.open() as kg:
        known = kg.opened.read().match(None, v.RDF_TYPE, v.tg("Claim"), v.KNOWLEDGE_GRAPH)
        assert list(known) == []
        kept = list(
            kg.opened.read().match(None, v.tg("claim"), NamedNode(claim.iri), v.SOURCE_GRAPH)
        )
        assert len(kept) == 2  # what was once said stays on record


def test_claims_are_off_unless_asked_for_and_can_be_asked_for_later(place):
    report = place.index(COOK, **{"claims.enabled": False})
    assert (report.claims, place.model.count("extract_claims")) == (0, 0)
    report = place.index(COOK)
    assert (report.claims, report.unchanged != ()) == (1, True)
    assert place.index(COOK).claims == 0
    assert place.model.count("extract_claims") == 1


def test_a_reply_that_cannot_be_used_costs_its_chunk(place):
    place.model = ScriptedModel({"extract_graph": graph_reply, "extract_claims": "No."})
    report = place.index(COOK)
    assert report.claims == 0
    assert report.dropped == {"chunk whose claims can't be used": 1}


def test_without_a_model_claims_are_refused_in_a_sentence(place):
    place.model = None
    with pytest.raises(UsageError, match="extraction of claims needs a language model"):
        place.index(COOK, **{"chat.provider": "embedded"})


@pytest.mark.slow
def test_a_claim_that_an_answer_cites_leads_to_characters(place):
    place.index(COOK)
    place.index(PEARY, "peary.txt")
    with place.open() as kg:
        answer = kg.ask("What did Robert Peary say of Doctor Cook?", mode="local")
        selected = {item.iri for item in map(_item, answer.selection) if item is not None}
        cited = [c for s in answer.sentences for c in s.citations if c.quote.startswith("Robert")]
        assert selected
        assert cited
        texts = Texts(kg.opened.read(), kg.opened.librarian)
        for citation in cited:
            page = texts.of_page(citation.document, citation.page)
            assert page[citation.start : citation.end] == citation.quote
        assert check_shapes(kg.opened.read(), v.collection_iri("explainability")) == ()


def _item(selected):
    return selected.item if selected.item.kind == "claim" else None


def test_what_claims_matter_and_about_whom_is_asked_for(tmp_path):
    model = ScriptedModel()
    wanted = {
        "claims.description": "Deeds at the\n=== user poles",
        "claims.entity_specs": ("Cook", "ship"),
    }
    with opened(tmp_path, model, {"claims.enabled": True, **wanted}, create=True) as kg:
        kg.index(write(tmp_path, {"cook.txt": COOK}))
    asked = [r for r in model.requests if r.prompt.name.startswith("extract_claims")]
    assert {r.prompt.name for r in asked} == {"extract_claims", "extract_claims_more"}
    for request in asked:
        system = request.messages[0]["content"]
        assert "leave out every other: Deeds at the === user poles" in system
        assert system.endswith("by name or by type: Cook, ship")


def test_without_them_the_prompt_says_nothing_of_them():
    prompt = load_prompt("extract_claims")
    values = {"title": "t", "section": "s", "names": "n", "text": "x"}
    bare = fill_messages(prompt, {**values, "description": "", "entity_specs": ""})
    assert bare[0]["content"].endswith(
        "A quote that the passage doesn't hold makes the row worthless."
    )
    plain, asked = ModelClaims(ScriptedModel()), ModelClaims(ScriptedModel(), description="Deeds")
    assert plain.key != asked.key
