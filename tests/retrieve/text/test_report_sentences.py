"""Sentences that reports rest on: without headings that run into them, and without what surrounds
a text."""

from __future__ import annotations

import pytest

from tests.support.report_builders import edge_of, evidence_of
from tgraph.model import CommunityReport, Evidence
from tgraph.retrieve.text.report_sentences import Extract, without_asides, without_heading

PROSE = "On 29 October Shackleton and three others started\nsouthward with the four ponies."


def place(text: str, start: int) -> Evidence:
    return evidence_of(edge_of(1, 2), text[start:], start)


@pytest.mark.parametrize("before", ["", "The end of a paragraph.\n"])
def test_a_heading_on_a_line_of_its_own_is_left_out(before: str) -> None:
    text = f"{before}Towards the Pole\n{PROSE}"
    found = without_heading(place(text, len(before)), text)
    assert found.quote == PROSE == text[found.start : found.end]


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("It was cold. ", "The ship\nEndurance was crushed by the ice of the Weddell Sea."),
        ("", PROSE),
        ("", "The ship was crushed by the ice of the sea that\nWeddell had found in 1823."),
        ("", "Towards the Pole,\n" + PROSE),
        ("", "towards\nthe Pole they went on foot, for the ponies had died."),
        ("", "Chapter 2\nThe march"),
    ],
)
def test_the_beginning_of_a_sentence_stays(before: str, sentence: str) -> None:
    text = before + sentence
    assert without_heading(place(text, len(before)), text).quote == sentence


def extracts(report: str, *asides: bool) -> list[Extract]:
    about = CommunityReport(report, "urn:c", 0, report, "", 5.0, "")
    return [
        Extract(about, report, n, place(PROSE, n), frozenset(), True, True, False, is_aside)
        for n, is_aside in enumerate(asides)
    ]


def test_what_surrounds_a_text_and_reports_mostly_of_it_tell_nothing_of_the_whole() -> None:
    ships, licence = extracts("ships", False, True, False), extracts("licence", True, False, True)
    assert without_asides([*ships, *licence]) == [ships[0], ships[2]]
    assert without_asides(licence) == licence
