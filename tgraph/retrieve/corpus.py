"""The texts themselves, as far as retrieval needs them: word statistics and what stands around."""

from __future__ import annotations

import re

from tgraph.errors import StoreError
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk
from tgraph.model import Evidence
from tgraph.retrieve.base import Context
from tgraph.retrieve.lexical import Frequencies

SAMPLE = 400_000
"""Characters from which the frequencies of words are taken."""

AROUND = 700
"""Characters before and after a sentence that may say what it is about."""

FAR = 4_000
"""Characters before a sentence within which its heading is looked for."""

_HEADING = re.compile(
    r"(?:^|\n)[ \t]*#{1,6}[ \t]+(?P<marked>[^\n]+)"
    r"|\n[ \t]*\n[ \t]*(?P<alone>[^\n]{2,70}[^\s.!?:;,])[ \t]*(?=\n[ \t]*\n)"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"'”’)*_]*\s+|\n[^\S\n]*\n")


def frequencies(context: Context) -> Frequencies:
    """Those of the published state, counted at its first question."""
    memory = context.remembered("frequencies", 1)
    found = memory.get("frequencies", lambda: Frequencies(_sample(context)))
    assert isinstance(found, Frequencies)
    return found


def _sample(context: Context) -> list[str]:
    """The texts of chunks spread evenly over the collection, in a fixed order."""
    keys = context.vectors["chunk"].keys
    texts: list[str] = []
    size = 0
    step = 1
    while len(keys) // step > 512:
        step += 1
    for place in range(0, len(keys), step):
        try:
            texts.append(context.texts.of_chunk(keys[place]))
        except StoreError:
            continue
        size += len(texts[-1])
        if size > SAMPLE:
            break
    return texts


def lead(evidence: Evidence, texts: Texts) -> list[str]:
    """The sentences before the evidence, nearest first, at most five."""
    page = _page(evidence, texts)
    text = page[max(0, evidence.start - AROUND) : evidence.start]
    return [part for part in _SENTENCE.split(text) if part.strip()][:-6:-1]


def follow(evidence: Evidence, texts: Texts) -> str:
    """The sentence after the evidence; empty where its paragraph ends."""
    text = _page(evidence, texts)[evidence.end : evidence.end + AROUND]
    return next((part for part in _SENTENCE.split(text.split("\n\n")[0]) if part.strip()), "")


def heading(evidence: Evidence, texts: Texts) -> str:
    """The heading that the evidence stands under; empty where none is found."""
    page = _page(evidence, texts)
    found = ""
    for match in _HEADING.finditer(page, max(0, evidence.start - FAR), evidence.start):
        found = match.group("marked") or match.group("alone") or found
    return found


def _page(evidence: Evidence, texts: Texts) -> str:
    try:
        return texts.of_page(document_of_chunk(evidence.chunk), page_of_chunk(evidence.chunk))
    except StoreError:
        return ""
