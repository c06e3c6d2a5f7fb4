"""What counts as a word of a document that is to be erased, whatever its script."""

from __future__ import annotations

import pytest

from tgraph.record.erasure.traces import TraceCollector, Traces, tokenise_text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ottoline’s café — naïve", ["ottoline", "s", "café", "naïve"]),
        ("यह संग्रहालय बंद है।", ["यह", "संग्रहालय", "बंद", "है"]),
        ("הַמּוּזֵיאוֹן סגור", ["הַמּוּזֵיאוֹן", "סגור"]),
        ("北極点に", ["北", "極", "点", "に"]),
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
    ],
)
def test_combining_marks_belong_to_the_word_that_they_stand_in(text: str, words: list[str]) -> None:
    assert tokenise_text(text) == words


def traces(text: str, kept: str, name: str) -> Traces:
    wording = TraceCollector()
    wording.add_text(text)
    wording.keep_text(kept)
    return wording.traces([name])


def test_a_hindi_document_has_words_and_not_letters_as_its_traces() -> None:
    found = traces("राम कल शाम को दिल्ली के पुराने संग्रहालय में गया था।", "कल शाम को यह बंद है।", "राम")
    assert found.find("क्या संग्रहालय बंद है?") == "संग्रहालय"
    assert found.find("क्या राम आया?") == "राम"
    assert found.find("कल शाम को क्या हुआ?") is None, "others say it too"


def test_a_thai_document_is_found_by_characters_in_a_row() -> None:
    found = traces("เขาซ่อนมรกตไว้ใต้วิหาร", "เรือจอดอยู่", "มรกต")
    assert found.find("ใครซ่อนมรกตไว้") is not None
    assert found.find("เรือจอด") is None
