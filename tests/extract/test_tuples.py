"""The tuple format: what models make of it, and the evidence of a relationship without a quote."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.extract.model.extractor import ModelExtractor
from tgraph.extract.model.quote_location import QuoteFinder
from tgraph.extract.model.replies import RELATED, read_graph, read_tuples, usable_rows
from tgraph.model import Chunk
from tgraph.testing import ScriptedModel

PAGE = (
    "Preface. Scrooge and Marley were partners. Marley was dead. Scrooge’s nephew came in.\n"
    "He laughed.  The clerk applauded him, and\nthe nephew of Scrooge bowed to the clerk. Fan left."
)
START = 9
ENTITY = '("entity"<|>"SCROOGE"<|>"person"<|>"A miser &amp; partner.")'
LINK = '("relationship"<|>"Scrooge"<|>"Marley"<|>"They were partners."<|>8)'


def chunk() -> Chunk:
    return Chunk("0" * 64, None, 0, START, len(PAGE), PAGE[START:], 30)


def evidence(source: str, target: str, description: str = ""):
    reply = read_tuples(f'("relationship"<|>"{source}"<|>"{target}"<|>"{description}"<|>7)').value
    dropped: Counter[str] = Counter()
    _, (found,) = usable_rows(reply, QuoteFinder(chunk()), dropped)
    if found.span is None:
        return None, dropped
    assert found.span.quote == PAGE[found.span.start : found.span.end]
    return found.span.quote, dropped


@pytest.mark.parametrize(
    "text",
    [
        f"{ENTITY}##\n{LINK}<|COMPLETE|>",
        f"{ENTITY}##{LINK}",
        f"##\n{ENTITY}##\n##\n{LINK}##\n<|complete|>",
        f"```\n{ENTITY}##\n{LINK}\n```",
        f"**Entities:**\n\n1. {ENTITY}##\n\n**Relationships:**\n\n2. {LINK}\n**",
        f"{ENTITY}\n\n{LINK}<|COMPLETE|> Let me know if there is more!",
        f"{ENTITY}##{LINK}".replace('"', "“").replace("“<|>", "”<|>"),
        f"{ENTITY}##{LINK}".replace('"<|>8', '"|>8'),
        f"{ENTITY}##{LINK}".replace('"<|>8', '"</|>8'),
        f"{ENTITY}##{LINK}".replace("relationship", "relation"),
        "(entity<|>SCROOGE<|>person<|>A miser & partner.)##"
        "(relationship<|>Scrooge<|>Marley<|>They were partners.<|>8)",
    ],
)
def test_every_way_in_which_models_write_it_reads_the_same(text):
    read = read_graph(text)
    assert not isinstance(read, str)
    assert (read.repaired, read.dropped, read.truncated) == (True, 0, False)
    (entity,), (link,) = read.value.entities, read.value.relationships
    assert (entity.name, entity.type, entity.description) == (
        "SCROOGE",
        "person",
        "A miser & partner.",
    )
    assert (link.subject, link.predicate, link.object) == ("Scrooge", RELATED, "Marley")
    assert (link.description, link.strength) == ("They were partners.", 8)


def test_keywords_may_stand_before_the_strength_and_the_strength_may_be_missing():
    text = '("relationship"<|>"A"<|>"B"<|>"So in 1843."<|>"trade, debt"<|>6.5)##'
    text += '("relationship"<|>"A"<|>"C"<|>"Founded in 1843")'
    first, second = read_tuples(text).value.relationships
    assert (first.keywords, first.strength) == (["trade", " debt"], 6.5)
    assert (second.description, second.strength) == ("Founded in 1843", 5.0)


def test_records_without_their_fields_are_counted_and_a_cut_one_is_left_out():
    text = f'{ENTITY}##("entity"<|>"Fred")##("relationship"<|>"A"<|>""<|>"x"<|>3)##{LINK[:-12]}'
    read = read_tuples(text)
    assert [e.name for e in read.value.entities] == ["SCROOGE"]
    assert not read.value.relationships
    assert (read.dropped, read.truncated) == (3, True)


def test_json_that_speaks_of_the_format_is_still_json():
    read = read_graph('{"entities": [{"name": "(\\"entity\\"<|>", "type": "text"}]}')
    assert not isinstance(read, str)
    assert [e.name for e in read.value.entities] == ['("entity"<|>']


def test_nothing_but_the_mark_of_completeness_is_an_empty_reply():
    read = read_graph(" <|COMPLETE|>\n")
    assert not isinstance(read, str)
    assert (read.value.entities, read.value.relationships, read.dropped) == ([], [], 0)


def test_neither_is_told_in_a_sentence():
    assert read_graph("I would rather not.") == "it holds no JSON."


@given(st.text(alphabet='()"<|>#entiyrlaoshp ABC9.\n\r*', max_size=300))
def test_noise_beside_a_record_takes_nothing_from_it(text):
    before, after = read_tuples(f"{text}\n{LINK}"), read_tuples(f"{ENTITY}##{text}")
    link = before.value.relationships[-1]
    assert (link.subject, link.object, link.strength) == ("Scrooge", "Marley", 8)
    names = [entity.name for entity in after.value.entities]
    assert names[:1] == ["SCROOGE"] or (after.truncated and after.dropped)
    for read in (before, after):
        usable_rows(read.value, QuoteFinder(chunk()), Counter())


def test_the_evidence_is_the_smallest_run_of_sentences_that_names_both_ends():
    assert evidence("Scrooge", "The Marley")[0] == "Scrooge and Marley were partners."
    assert evidence("MARLEY", "Fan")[0] == PAGE[PAGE.index("Marley was") :]


def test_names_may_stand_word_by_word():
    quote, dropped = evidence("Scrooge's nephew", "the clerk")
    assert quote == PAGE[PAGE.index("Scrooge’s") : PAGE.index(" Fan")]
    quote, dropped = evidence("Nephew of Scrooge", "clerk")
    assert quote == PAGE[PAGE.index("The clerk") : PAGE.index(" Fan")]
    assert not dropped


def test_of_equal_runs_the_description_decides():
    text = "Ann met Bob. Ann paid Bob dearly. Ann met Bob."
    page = Chunk("0" * 64, None, 0, 0, len(text), text, 12)
    reply = read_tuples('("relationship"<|>"Ann"<|>"Bob"<|>"She saw him."<|>7)').value
    _, (found,) = usable_rows(reply, QuoteFinder(page), Counter())
    assert found.span is not None
    assert found.span.quote == "Ann met Bob."  # words of up to three letters say nothing
    reply = read_tuples('("relationship"<|>"Ann"<|>"Bob"<|>"He was paid dearly."<|>7)').value
    _, (found,) = usable_rows(reply, QuoteFinder(page), Counter())
    assert found.span is not None
    assert found.span.quote == "Ann paid Bob dearly."


def test_an_end_that_is_not_named_leaves_the_whole_chunk_and_is_counted():
    quote, dropped = evidence("Scrooge", "Tiny Tim")
    assert quote is None
    assert dropped == {"sentence that names both ends (the whole chunk is the evidence)": 1}


def test_a_model_that_answers_in_tuples_is_understood():
    model = ScriptedModel({"extract_graph": f"{ENTITY}##{LINK}", "extract_graph_more": LINK})
    found = ModelExtractor(model, ["person"]).extract(chunk(), "A Christmas Carol")
    assert len(model.requests) == 2
    assert [e.name for e in found.entities] == ["SCROOGE"]
    assert [(r.subject, r.predicate, r.strength) for r in found.relationships] == [
        ("Scrooge", RELATED, 8.0)
    ]
    assert found.dropped == {"repetition": 1}
