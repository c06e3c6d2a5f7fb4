"""What each document says on a subject: its best sentence that mentions the subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tgraph.index.sources import document_of_chunk
from tgraph.model import Candidate, Evidence, QuestionPart, RankedOrder, Retrieval
from tgraph.rendering import format_count, one_line
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates
from tgraph.retrieve.orders import cut_order, left_out_order
from tgraph.retrieve.reasons import explain
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.lexicon import ENGLISH, Lexicon, count_frequencies
from tgraph.retrieve.text.page_sentences import QuoteSurroundings, read_surroundings
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, analyse_question
from tgraph.retrieve.text.report_sentences import leans_on_another
from tgraph.retrieve.text.sentence_ranking import ASIDE
from tgraph.retrieve.text.word_similarity import words_of_chunks

MOST_DOCUMENTS = 40
"""Documents that are told, a line each."""

MOST_CHUNKS = 4
"""Chunks of a document in which its sentence is looked for, those that share most words."""

NAMED = 6
"""Documents without a mention that a note names."""

OPEN, UNSUITED = 0.8, 0.5
"""What a sentence counts that leads to the next, needs the one before or is short, and what a row,
code or what is hardly words counts."""

LETTERS, FEWEST = 0.75, 6
"""The share of letters and spaces, and the words, of a sentence that says something by itself."""

WHOLE = 0.3
"""What it counts that the sentence itself, and no heading above it, mentions the subject."""


@dataclass(frozen=True, slots=True)
class DocumentMentions:
    """A sentence of each document that mentions a subject, best first, within their chunks.

    ``beyond`` are sentences of further documents; ``silent`` maps documents without a mention to
    their titles."""

    subject: str
    candidates: tuple[Candidate, ...]
    beyond: tuple[Candidate, ...]
    silent: Mapping[str, str]
    chunks: tuple[str, ...]

    @property
    def places(self) -> list[Evidence]:
        return [candidate.evidence[0] for candidate in self.candidates]

    @property
    def parts(self) -> tuple[QuestionPart, ...]:
        """One question part for each quoted document, and one part that counts the other
        documents."""
        told = (
            QuestionPart((place,), label=f"- {one_line(place.title)}: ") for place in self.places
        )
        return (*told, QuestionPart(remark=self._describe_others()))

    @property
    def retrieval(self) -> Retrieval:
        """The candidates of the told documents, and the orders of what isn't told."""
        return Retrieval(
            self.candidates,
            0,
            len(self.candidates),
            dropped={"document that does not mention it": len(self.silent)} if self.silent else {},
            orders=(*self._cut_documents(), *self._list_silent_chunks()),
        )

    def _describe_others(self) -> str:
        total = len(self.candidates) + len(self.beyond) + len(self.silent)
        parts = []
        if self.beyond:
            parts.append(f"{format_count(len(self.beyond), 'more document')} mention it.")
        if self.silent:
            verb = "does" if len(self.silent) == 1 else "do"
            titles = sorted(map(one_line, self.silent.values()))
            more = f" and {len(titles) - NAMED:,} more" if len(titles) > NAMED else ""
            named = ", ".join(titles[:NAMED]) + more
            subject = f"“{one_line(self.subject)}”"
            parts.append(
                f"No document mentions {subject}."
                if len(self.silent) == total
                else f"{len(self.silent):,} of {total:,} documents {verb} not mention {subject}:"
                f" {named}."
            )
        return " ".join(parts)

    def _cut_documents(self) -> tuple[RankedOrder, ...]:
        ranked = [candidate.item.iri for candidate in (*self.candidates, *self.beyond)]
        reason = (
            "{item} is {place} documents that mention the subject, and the first"
            f" {MOST_DOCUMENTS} were told"
        )
        return cut_order("chunk", "documents", MOST_DOCUMENTS, ranked, reason)

    def _list_silent_chunks(self) -> tuple[RankedOrder, ...]:
        silent, better = {}, {}
        told = {candidate.item.iri for candidate in (*self.candidates, *self.beyond)}
        for chunk in self.chunks:
            if document_of_chunk(chunk) in self.silent:
                silent[chunk] = 0
            elif chunk not in told:
                better[chunk] = 0
        subject = f"“{one_line(self.subject)}”"
        orders = (
            (silent, "mention", f"no sentence of its document mentions {subject}"),
            (better, "best-mention", f"another chunk of its document mentions {subject} better"),
        )
        return tuple(
            order
            for ranks, limit, reason in orders
            for order in left_out_order("chunk", limit, None, ranks, reason)
        )


def find_mentions(subject: str, context: Context) -> DocumentMentions:
    """Return what each document says on a subject."""
    inquiry = analyse_question(subject, count_frequencies(context))
    wanted = [_word_forms(word, inquiry.lexicon) for word in _telling_words(inquiry)]
    chunks = tuple(context.vectors["chunk"].keys)
    read = _choose_chunks(subject, inquiry.lexicon, context)
    candidates = tuple(assign_ranks(chunk_candidates(context, ((c, 1.0, ()) for c in read))))
    sharpened = sharpen_evidence(Question(subject), Retrieval(candidates, 0), context).candidates
    best: dict[str, tuple[float, Candidate]] = {}
    for candidate in sharpened:
        for worth, place in _rate_mentions(candidate, wanted, inquiry.lexicon, context):
            if place.document not in best or best[place.document][0] < worth:
                best[place.document] = worth, replace(candidate, evidence=(place,), score=1.0)
    order = sorted(best, key=lambda document: (-best[document][0], document))
    reasons = (explain("mention", subject=one_line(subject)),)
    ranked = [
        replace(best[document][1], rank=rank, reasons=reasons)
        for rank, document in enumerate(order, 1)
    ]
    silent = {document_of_chunk(chunk) for chunk in chunks} - best.keys()
    titles = {iri: title for iri, (title, _) in context.evidence.documents(silent).items()}
    told, beyond = tuple(ranked[:MOST_DOCUMENTS]), tuple(ranked[MOST_DOCUMENTS:])
    return DocumentMentions(subject, told, beyond, titles, chunks)


def _telling_words(inquiry: AnalysedQuestion) -> list[str]:
    """Return the words of a subject whose terms the analysis weighs."""
    lexicon = inquiry.lexicon
    return [word for word in lexicon.words(inquiry.text) if lexicon.stem(word) in inquiry.weights]


def _word_forms(word: str, lexicon: Lexicon) -> frozenset[str]:
    """Return the stems of a word, singular and plural."""
    singular = word[:-1] if lexicon is ENGLISH and word.endswith("s") else word
    return frozenset({lexicon.stem(word), lexicon.stem(singular), *lexicon.parts({word})})


def _choose_chunks(subject: str, lexicon: Lexicon, context: Context) -> list[str]:
    """Return the chunks of each document that share most words with the subject."""
    text = " ".join((subject, *(word.removesuffix("s") for word in lexicon.words(subject))))
    index = words_of_chunks(context)
    hits, _ = index.rank(text, len(context.vectors["chunk"]) or 1, lexicon)
    by_document: defaultdict[str, list[str]] = defaultdict(list)
    for chunk, _ in hits:
        by_document[document_of_chunk(chunk)].append(chunk)
    return [chunk for own in by_document.values() for chunk in own[:MOST_CHUNKS]]


def _rate_mentions(
    candidate: Candidate,
    wanted: Sequence[frozenset[str]],
    lexicon: Lexicon,
    context: Context,
) -> Iterator[tuple[float, Evidence]]:
    """Yield the sentences of a chunk that mention the subject, each with its worth."""
    for place in candidate.evidence:
        if place.relevance is None:
            continue
        stands = read_surroundings(place, context)
        if stands.is_heading or stands.kind in ASIDE:
            continue
        said = _forms_in(stands.text, lexicon)
        above = _forms_in(" ".join((place.title, *stands.headings)), lexicon)
        if all(not forms.isdisjoint(said | above) for forms in wanted):
            whole = all(not forms.isdisjoint(said) for forms in wanted)
            yield (place.relevance + WHOLE * whole) * _rate_form(stands), place


def _forms_in(text: str, lexicon: Lexicon) -> frozenset[str]:
    return frozenset(form for word in lexicon.words(text) for form in _word_forms(word, lexicon))


def _rate_form(stands: QuoteSurroundings) -> float:
    """Return how well a sentence stands alone."""
    text = stands.text.rstrip()
    letters = sum(char.isalpha() or char.isspace() for char in text)
    if stands.kind in ("code", "row") or letters < LETTERS * len(text):
        return UNSUITED
    is_open = text.endswith((":", "?")) or leans_on_another(text)
    return OPEN if is_open or len(text.split()) < FEWEST else 1.0
