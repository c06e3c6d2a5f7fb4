"""A session's record read back as a tree: answer, sentences, edges with reasons, documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError
from tgraph.explain.as_of.store import publication_time
from tgraph.explain.trace.bundle_reader import (
    SELECTIONS,
    BundleReader,
    iri_numbers,
    keywords_of,
    kind_of,
)
from tgraph.explain.trace.derivation import DisplayNames
from tgraph.explain.trace.judgements import influence_on, verdicts_on
from tgraph.explain.trace.recorded_session import CallReader
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import (
    Trace,
    TraceAction,
    TraceBatch,
    TraceItem,
    TraceNote,
    TracePoint,
    TraceQuotation,
    TraceRating,
    TraceSentence,
    TraceStepAnswer,
)
from tgraph.index.evidence import RecordedPlace, recorded_origin, recorded_place
from tgraph.index.sources import (
    Texts,
    document_of_chunk,
    page_of_chunk,
    range_of_chunk,
    text_value,
)
from tgraph.model import Edge, EntityMatch
from tgraph.retrieve.labels import local_name
from tgraph.store.base import Store
from tgraph.store.journal import read_journal
from tgraph.store.read_ahead import ReadAhead
from tgraph.store.statements import read_trig

__all__ = ["Trace", "TraceReader", "read_so_far", "read_trace"]


def points_in(said: BundleReader, subject: str) -> tuple[TracePoint, ...]:
    """Return points of a batch or an answer, in order of creation."""
    return tuple(
        TracePoint(
            iri=iri,
            text=said.read_text(iri, "text"),
            score=said.real(iri, "score"),
            cites=tuple(sorted(said.read_texts(iri, "wasDerivedFrom"))),
            rejected=said.read_text(iri, "rejectionReason"),
        )
        for iri in said.read_numbered_iris(subject, "point")
    )


def ratings_of(
    said: BundleReader, uuid: str, label: Callable[[str], str]
) -> tuple[TraceRating, ...]:
    """Return report ratings in order of creation; ``label`` provides report titles."""
    return tuple(
        TraceRating(
            report=said.read_text(r, "item"),
            label=label(said.read_text(r, "item")),
            level=said.number(r, "level"),
            score=said.score(r),
            relevant=said.read_text(r, "relevant") == "true",
            reasoning=said.read_text(r, "reasoning"),
        )
        for r in said.read_numbered_iris(v.session_part_iri("ratings", uuid), "hadMember")
    )


def batches_of(said: BundleReader, uuid: str) -> tuple[TraceBatch, ...]:
    """Return batches in order, each with points in order of creation."""
    batches: list[TraceBatch] = []
    while said.read_texts(batch := v.session_part_iri("batch", uuid, len(batches)), "type"):
        members = said.read_numbered_iris(batch, "hadMember")
        batches.append(
            TraceBatch(
                iri=batch,
                reports=tuple(said.read_text(member, "item") for member in members),
                tokens=said.number(batch, "tokenCount"),
                points=points_in(said, batch),
                error=said.read_text(batch, "error"),
                dropped=said.read_dropped_counts(batch),
            )
        )
    return tuple(batches)


class _ActionTreeReader:
    """Reader for a session's question tree."""

    def __init__(self, said: BundleReader, uuid: str, question: str) -> None:
        self._said = said
        self._question = question
        self._answers = self._resources_by_number(v.session_part_iri("intermediate", uuid, ""))
        self._follow_ups = self._resources_by_number(v.session_part_iri("follow-up", uuid, ""))
        steps = self._resources_by_number(v.session_part_iri("step", uuid, "")).values()
        self._steps = {said.number(s, "index"): s for s in steps if said.read_texts(s, "index")}
        self._below: defaultdict[int, list[int]] = defaultdict(list)

    def read(self) -> TraceAction | None:
        """Return the root question with all follow-ups, or None without question tree."""
        if not self._steps:
            return None
        numbers = {step: number for number, step in self._steps.items()}
        for number in sorted(self._steps):
            if number and number not in self._follow_ups:
                self._below[0].append(number)
        for number, iri in sorted(self._follow_ups.items()):
            self._below[numbers[self._said.read_text(iri, "wasGeneratedBy")]].append(number)
        return self._read_action(0)

    def _read_action(self, number: int) -> TraceAction:
        bundle_reader = self._said
        step, answer = self._steps.get(number, ""), self._answers.get(number, "")
        follow_up = self._follow_ups.get(number, "")
        return TraceAction(
            number,
            "follow-up" if follow_up else "fold" if number else "question",
            follow_up or step,
            bundle_reader.read_text(follow_up, "query") or self._question,
            bundle_reader.number(follow_up, "depth"),
            bundle_reader.read_text(follow_up or answer, "status") or "failed",
            bundle_reader.read_text(follow_up, "rejectionReason")
            or (
                bundle_reader.read_text(answer, "error")
                if answer
                else "the session ended before it was answered"
            ),
            bundle_reader.score(follow_up),
            bundle_reader.read_text(follow_up, "reasoning"),
            bundle_reader.score(answer),
            len(bundle_reader.read_texts(step, "candidate")),
            sum(iri.startswith(_CANDIDATE) for iri in bundle_reader.read_texts(step, "used")),
            len(bundle_reader.read_texts(follow_up, "proposedAgainBy")),
            points_in(bundle_reader, answer),
            tuple(map(self._read_action, self._below[number])),
        )

    def _resources_by_number(self, prefix: str) -> dict[int, str]:
        return {iri_numbers(iri)[-1]: iri for iri in self._said.beginning(prefix)}


_CANDIDATE = v.session_part_iri("candidate", "")


class TraceReader:
    """Reads one bundle."""

    def __init__(
        self,
        store: Store,
        texts: Callable[[str], str],
        session: str,
        quads: Iterable[Quad],
        collection: str,
        pages: Texts,
    ) -> None:
        self._store = ahead = ReadAhead(store)
        self._read_text = texts
        self._pages = pages
        self._session = session
        self._collection = collection
        self._uuid = session.removeprefix(v.session_iri(""))
        self._said = BundleReader(quads)
        self._names = DisplayNames(ahead, texts)
        self._read_ahead(ahead)

    def _read_ahead(self, store: ReadAhead) -> None:
        """Read resources mentioned in the bundle, and documents supporting the bundle."""
        bundle_reader = self._said
        store.read(term for subject in bundle_reader for term in bundle_reader.terms(subject))
        chunks = {
            chunk
            for subject in bundle_reader
            for term in bundle_reader.terms(subject)
            if term.startswith(_PLACES)
            for chunk in (term, text_value(store, term, v.prov("wasDerivedFrom")))
            if chunk.startswith(_CHUNK)
        }
        documents = sorted(set(map(document_of_chunk, chunks)))
        store.read((*chunks, *documents))
        self._names.recalled.read_documents(documents)

    def read(self) -> Trace:
        session, question = self._session, self._said.read_text(self._session, "query")
        call_reader = CallReader(self._store, self._read_text, self._said, session)
        candidates = self._said.read_texts(v.retrieval_iri(self._uuid), "candidate")
        selections = self._said.read_numbered_iris(v.selection_iri(self._uuid), "hadMember")
        edges = self._names.recalled.edges(
            self._said.read_text(i, "edge") for i in (*selections, *candidates)
        )
        places = self._selection_places(selections)
        chosen = {self._said.read_text(s, "candidate") for s in selections} | self._drawn_on(
            selections
        )
        chosen |= self._cited_candidates()
        return Trace(
            explain_id=session,
            explain_collection=self._collection,
            question=question,
            mode=self._said.read_text(session, "mode"),
            status=self._said.read_text(session, "status"),
            error=self._said.read_text(session, "error"),
            started=self._said.read_text(session, "startedAtTime"),
            ended=self._said.read_text(session, "endedAtTime"),
            generation=self._said.number(session, "generation"),
            as_of=self._said.read_text(session, "asOf"),
            published=publication_time(self._store, self._said.number(session, "generation")),
            parameters=self._said.parameters(session),
            usage={
                "input_tokens": self._said.number(session, "inToken"),
                "output_tokens": self._said.number(session, "outToken"),
                "calls": self._said.number(session, "callCount"),
                "reasoning_tokens": self._said.number(session, "reasoningToken"),
            },
            concepts=tuple(
                self._said.read_texts(v.session_part_iri("concepts", self._uuid), "concept")
            ),
            matches=self._read_matches(),
            edge_count=self._said.number(v.retrieval_iri(self._uuid), "edgeCount"),
            item_count=self._said.number(v.retrieval_iri(self._uuid), "itemCount"),
            answer=self._answer_text(),
            sentences=self._read_sentences(),
            selected=tuple(self._read_item(s, edges, places) for s in selections),
            rejected=tuple(
                self._read_item(c, edges, {})
                for c in sorted(candidates, key=iri_numbers)
                if c not in chosen
            ),
            steps=call_reader.steps(),
            calls=call_reader.calls,
            prompts=call_reader.prompts(),
            dropped=self._count_dropped(),
            notes=self._read_notes(),
            ratings=ratings_of(self._said, self._uuid, self._item_label),
            batches=batches_of(self._said, self._uuid),
            actions=_ActionTreeReader(self._said, self._uuid, question).read(),
            keywords=keywords_of(self._said, self._uuid),
            influence=influence_on(self._store, v.answer_iri(self._uuid)),
            short=self._said.read_text(v.answer_iri(self._uuid), "shortAnswer"),
            confidence=self._read_probability("confidence"),
            short_confidence=self._read_probability("shortConfidence"),
            verdict=self._said.read_text(v.answer_iri(self._uuid), "answerVerdict"),
            judged=next(reversed(verdicts_on(self._store, v.answer_iri(self._uuid))), None),
            choice=self._said.read_text(v.session_part_iri("mode-choice", self._uuid), "reasoning"),
            sparql=self._said.read_text(v.session_part_iri("query", self._uuid), "sparql"),
            written_query=self._said.read_text(
                v.session_part_iri("query", self._uuid), "writtenQuery"
            ),
            step_answers=self._step_answers(),
        )

    # --- the parts ---

    def _read_probability(self, term: str) -> float | None:
        answer = v.answer_iri(self._uuid)
        return self._said.real(answer, term) if self._said.read_text(answer, term) else None

    def _step_answers(self) -> tuple[TraceStepAnswer, ...]:
        """Return separately answered question steps, in order."""
        step_answers = []
        for answer in self._said.beginning(v.session_part_iri("step-answer", self._uuid, "")):
            origins = sorted(self._said.read_texts(answer, "wasDerivedFrom"))
            places = [self._read_quotation(o) for o in origins if o.startswith(_PLACES)]
            step_answers.append(
                TraceStepAnswer(
                    self._said.number(answer, "index"),
                    self._said.read_text(answer, "query"),
                    self._said.read_text(answer, "text"),
                    next(iter(places), None),
                )
            )
        return tuple(step_answers)

    def _drawn_on(self, selections: Sequence[str]) -> set[str]:
        """Return candidates that were sources of selected points."""
        items = {self._said.read_text(s, "item") for s in selections}
        origins = {o for item in items for o in self._said.read_texts(item, "wasDerivedFrom")}
        candidates = self._said.read_texts(v.retrieval_iri(self._uuid), "candidate")
        return {c for c in candidates if self._said.read_text(c, "item") in origins}

    def _cited_candidates(self) -> set[str]:
        """Return candidates that were sources of points."""
        points = self._said.beginning(v.session_part_iri("point", self._uuid, ""))
        return {
            cited for point in points for cited in self._said.read_texts(point, "wasDerivedFrom")
        }

    def _read_matches(self) -> tuple[EntityMatch, ...]:
        members = self._said.read_numbered_iris(
            v.session_part_iri("matches", self._uuid), "hadMember"
        )
        return tuple(
            EntityMatch(
                entity=(entity := self._said.read_text(m, "entity")),
                label=self._names.recalled.entity(entity) or local_name(entity),
                concept=self._said.read_text(m, "concept"),
                score=self._said.real(m, "score"),
                method=self._said.read_text(m, "matchMethod"),
            )
            for m in members
        )

    def _answer_text(self) -> str:
        key = self._said.read_text(v.answer_text_iri(self._uuid), "contentHash")
        return self._read_text(key) if key else ""

    def _read_sentences(self) -> tuple[TraceSentence, ...]:
        return tuple(
            TraceSentence(
                iri=s,
                text=self._said.read_text(s, "text"),
                edge_selections=tuple(
                    sorted(self._said.read_texts(s, "wasDerivedFrom"), key=iri_numbers)
                ),
                citations=tuple(
                    self._read_citation(c) for c in self._said.read_numbered_iris(s, "citation")
                ),
                **self._latest_verdict(s),
            )
            for s in self._said.read_numbered_iris(v.answer_iri(self._uuid), "sentence")
        )

    def _read_notes(self) -> tuple[TraceNote, ...]:
        return tuple(
            TraceNote(
                iri=n,
                text=self._said.read_text(n, "text"),
                places=tuple(
                    map(self._read_quotation, sorted(self._said.read_texts(n, "wasDerivedFrom")))
                ),
            )
            for n in self._said.read_numbered_iris(v.answer_iri(self._uuid), "note")
        )

    def _latest_verdict(self, sentence: str) -> dict[str, str]:
        """Return the latest verification verdict on a sentence."""
        verdicts = verdicts_on(self._store, sentence)
        return (
            {"verdict": verdicts[-1].verdict, "lost_at": verdicts[-1].lost_at} if verdicts else {}
        )

    def _read_citation(self, citation: str) -> TraceQuotation:
        origins = self._said.read_texts(citation, "wasDerivedFrom")
        chosen = next(o for o in origins if o.startswith(SELECTIONS))
        evidence = max((o for o in origins if o != chosen), key=_path_depth)
        place = self._read_quotation(
            evidence,
            self._said.number(f"{citation}:position", "start"),
            self._said.number(f"{citation}:position", "end"),
            self._said.read_text(f"{citation}:quote", "exact"),
        )
        via = [o for o in sorted(origins, key=_path_depth) if o not in (chosen, evidence)]
        way = self._names.way(via, evidence)
        labels = tuple(map(self._names.display_name, way))
        return replace(place, edge_selection=chosen, via=way, way=labels)

    def _selection_places(self, selections: Sequence[str]) -> dict[str, tuple[TraceQuotation, ...]]:
        return {
            s: tuple(
                self._read_quotation(e)
                for e in sorted(self._said.read_texts(s, "wasDerivedFrom"))
                if e.startswith(_PLACES)
            )
            for s in selections
        }

    def _read_quotation(
        self, evidence: str, start: int = -1, end: int = -1, quote: str = ""
    ) -> TraceQuotation:
        if evidence.startswith(_CHUNK):
            place = RecordedPlace(evidence, *range_of_chunk(evidence), None)
        else:
            place = recorded_place(self._store, evidence)
        with suppress(ErasedTextError):
            self._pages.quote(*place)
        chunk = place.chunk
        document, page = document_of_chunk(chunk), page_of_chunk(chunk)
        if start < 0:
            start, end, quote = place.start, place.end, place.quote or ""
        else:
            with suppress(ErasedTextError):
                self._pages.check(document, page, start, end, quote)
        title, path = self._names.recalled.document(document)
        quotation = TraceQuotation(evidence, chunk, document, title, path, page, start, end, quote)
        kind = self._pages.segment_kind(chunk, start, end)
        origin = recorded_origin(self._store, evidence)
        return replace(quotation, segment_kind=kind, **origin._asdict())

    def _read_item(
        self,
        subject: str,
        edges: Mapping[str, Edge],
        places: Mapping[str, tuple[TraceQuotation, ...]],
    ) -> TraceItem:
        iri = self._said.read_text(subject, "edge") or self._said.read_text(subject, "item")
        candidate = self._said.read_text(subject, "candidate") or subject
        bridge = self._said.read_text(candidate, "bridge")
        terms: dict[str, Any] = edges[iri].named_terms if iri in edges else {}
        return TraceItem(
            iri=subject,
            kind=kind_of(iri),
            item=iri,
            label=edges[iri].text if iri in edges else self._item_label(iri),
            score=self._said.real(subject, "score"),
            reasoning=self._said.read_text(subject, "reasoning")
            or self._said.read_text(subject, "rejectionReason"),
            rank=self._said.number(candidate, "rank"),
            hop=self._said.number(candidate, "hop"),
            tokens=self._said.number(candidate, "tokenCount"),
            evidence=places.get(subject, ()),
            bridge=self._read_quotation(bridge) if bridge else None,
            authority=float(self._said.read_text(candidate, "authority") or 1),
            **terms,
        )

    def _item_label(self, iri: str) -> str:
        """Return a point's text, otherwise the item label."""
        return self._said.read_text(iri, "text") or self._names.display_name(iri)

    def _count_dropped(self) -> dict[str, int]:
        dropped_counts: dict[str, int] = {}
        for subject in sorted(self._said):
            for item in self._said.read_texts(subject, "dropped"):
                reason = self._said.read_text(item, "reason")
                dropped_counts[reason] = dropped_counts.get(reason, 0) + self._said.number(
                    item, "count"
                )
        return dropped_counts


def read_trace(store: Store, pages: Texts, summary: SessionSummary, collection: str) -> Trace:
    """Return the trace of a recorded session.

    Raise ``EvidenceError`` if a quote differs from stored text, unless the text was erased."""
    quads = store.match(None, None, None, NamedNode(summary.bundle))
    read_text = pages.librarian.get_text
    reader = TraceReader(store, read_text, summary.explain_id, quads, collection, pages)
    return reader.read()


def read_so_far(
    store: Store, pages: Texts, journal: Path, session: str, collection: str
) -> Trace | None:
    """Return a partial trace for a session not folded into the store yet.

    Return None if the journal does not exist (any more). Raise the same errors as
    ``read_trace``."""
    try:
        frames = read_journal(journal).frames
    except FileNotFoundError:
        return None
    texts: dict[str, str] = {}
    quads: list[Quad] = []
    for frame in frames:
        texts |= frame.get("texts", {})
        quads += read_trig(frame.get("quads", ""))
    return TraceReader(store, texts.__getitem__, session, quads, collection, pages).read()


_CHUNK = f"{v.URN}chunk:"
_PLACES = (_CHUNK, f"{v.URN}evidence:")
_DEPTH = ("point", "report", "finding", "summary", "entity", "claim", "edge", "chunk", "evidence")


def _path_depth(iri: str) -> int:
    """Return an item's depth between an answer and the cited characters."""
    kind = kind_of(iri)
    return _DEPTH.index(kind) if kind in _DEPTH else 0
