"""Asks questions about Markdown pages by templates, for what the reader learns of technical text.

    python tools/ask_documentation.py OUT FOLDER...

OUT is JSON as SQuAD has it, which ``tools/train_reader.py`` takes; a title is that of the page and
the headings. The clauses of a sentence are asked for their subject, their object, what a
preposition leads to or how many there are; the rows of a table for their values (after Heilman and
Smith 2010, "Good Question! Statistical Ranking for Question Generation", without the ranking).
Needs tgraph with spaCy.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgraph.extract.english.parser import analyse_texts, verb_lemma
from tgraph.ingest.markdown_segments import read_page
from tgraph.ingest.segments import sentences_of

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

    from tgraph.model import Segment

LONGEST, SHORTEST = 240, 30
ASKED = 0.4
"""The share of sentences and rows that are asked about."""
_SUBJECTS = ("nsubj", "nsubjpass")
_PRONOUNS = ("PRP", "DT", "WDT", "WP", "EX")
_ARTICLES = ("The ", "A ", "An ")
_POINTING = ("This", "These", "That", "Those", "Each", "Such", "this", "these", "each")
_BE = {"is", "are", "was", "were"}
_MODALS = {"can", "could", "must", "should", "will", "may", "might"}


def text_of(token: Token) -> str:
    """The phrase that a token heads."""
    own = list(token.subtree)
    return str(token.doc[own[0].i : own[-1].i + 1].text)


def fits(phrase: str) -> bool:
    return 2 < len(phrase) < 70 and "\n" not in phrase


def asked_of(sentence: Span) -> Iterator[tuple[str, str]]:
    """Questions about the sentence's main clause, each with the words that answer it."""
    verb = sentence.root
    subjects = [t for t in verb.children if t.dep_ in _SUBJECTS]
    if verb.tag_[:2] != "VB" or len(subjects) != 1 or subjects[0].tag_ in _PRONOUNS:
        return
    subject = text_of(subjects[0])
    if (
        not fits(subject)
        or subject.split()[0] in _POINTING
        or any(t.dep_ == "neg" for t in verb.children)
    ):
        return
    plain = subject[0].lower() + subject[1:] if subject.startswith(_ARTICLES) else subject
    helpers = [t for t in verb.children if t.dep_ in ("aux", "auxpass")]
    rest = sentence.doc[min([verb.i, *(t.i for t in helpers)]) : sentence.end].text.rstrip(" .:;")
    if fits(rest):
        yield f"What {rest}?", subject
    front = _front(verb, helpers)
    if front is None:
        return
    for child in verb.children:
        yield from _asked_for(child, verb, plain, *front)


def _asked_for(
    child: Token, verb: Token, subject: str, before: str, after: str
) -> Iterator[tuple[str, str]]:
    """Questions for an object of the verb, or for that of a preposition."""
    if child.dep_ in ("attr", "acomp") and verb.text in _BE and fits(text_of(child)):
        yield f"What {verb.text} {subject}?", text_of(child)
    elif child.dep_ == "dobj" and fits(text_of(child)):
        yield f"What {before} {subject} {after}?", text_of(child)
        for count in (t for t in child.children if t.dep_ == "nummod"):
            noun = text_of(child).split(count.text, 1)[-1].strip()
            yield f"How many {noun} {before} {subject} {after}?", count.text
    elif child.dep_ in ("prep", "agent") and child.i > verb.i:
        for goal in (t for t in child.children if t.dep_ == "pobj" and fits(text_of(t))):
            held = _between(verb, child)
            yield f"What {before} {subject} {after}{held} {child.text}?", text_of(goal)


def _front(verb: Token, helpers: list[Token]) -> tuple[str, str] | None:
    """What stands before the subject in a question, and after it; None for other tenses."""
    if verb.text in _BE and not helpers:
        return verb.text, ""
    if helpers and (helpers[0].text in _BE or helpers[0].text in _MODALS):
        after = verb.doc[helpers[0].i + 1 : verb.i + 1].text
        return helpers[0].text, after
    does = {"VBZ": "does", "VBP": "do", "VBD": "did"}.get(verb.tag_)
    return (does, verb_lemma(verb)) if does and not helpers else None


def _between(verb: Token, preposition: Token) -> str:
    """The object between verb and preposition."""
    inner = [t for t in verb.children if t.dep_ == "dobj" and verb.i < t.i < preposition.i]
    return "".join(f" {text_of(t)}" for t in inner if fits(text_of(t)))


def rows_asked(row: Segment) -> Iterator[tuple[str, str]]:
    """Questions for the values of a row by the value of its first column."""
    cells = [(row.text[slice(*name)], row.text[slice(*value)]) for name, value in row.pairs]
    if len(cells) < 2 or not fits(cells[0][1]):
        return
    for name, value in cells[1:]:
        if name and 2 < len(value) < 120 and value not in cells[0][1]:
            yield f"What is the {name.lower()} of {cells[0][1]}?", value


def paragraphs(path: Path, chance: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections of a page under their headings, with questions."""
    page = read_page(path.read_text("utf-8", errors="replace"))
    body = [s for s in page.segments if s.kind not in ("heading", "code")]
    for headings, own in groupby(body, key=lambda segment: segment.headings):
        context, found = "", []
        for segment in own:
            start = len(context)
            context += segment.text + "\n"
            found += [(start, each) for each in _questions(segment, chance)]
        asked = []
        for start, (question, answer) in found:
            at = context.find(answer, start)
            if at >= 0 and len(question) < 160:
                asked.append(
                    {
                        "question": question.replace("\n", " "),
                        "answers": [{"text": answer, "answer_start": at}],
                        "is_impossible": False,
                    }
                )
        if asked:
            yield " › ".join(headings), {"context": context.rstrip(), "qas": asked}


def _questions(segment: Segment, chance: random.Random) -> list[tuple[str, str]]:
    if segment.pairs:
        own = list(rows_asked(segment))
        return chance.sample(own, 1) if own and chance.random() < ASKED else []
    texts = [segment.text[a:b] for a, b in sentences_of(segment)]
    texts = [t for t in texts if SHORTEST < len(t) < LONGEST and chance.random() < ASKED]
    found = []
    for doc in analyse_texts(texts):
        own = [each for sentence in doc.sents for each in asked_of(sentence)]
        found += chance.sample(own, min(2, len(own)))
    return found


def main(out: str, *folders: str) -> None:
    chance = random.Random(7)
    data = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.md")):
            for title, paragraph in paragraphs(path, chance):
                data.append({"title": title or path.stem, "paragraphs": [paragraph]})
    Path(out).write_text(json.dumps({"data": data}, ensure_ascii=False), "utf-8")
    print(sum(len(p["qas"]) for each in data for p in each["paragraphs"]), "questions")


if __name__ == "__main__":
    main(*sys.argv[1:])
