"""What a graph can tell of itself: its sessions, documents, audits, and anything SPARQL asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tgraph import vocabulary as v
from tgraph.engine.opened import Opened
from tgraph.engine.progress import OnProgress, silent
from tgraph.errors import UsageError
from tgraph.explain.influence_runs import REPEATS, SAMPLES
from tgraph.store.snapshot import Snapshot, read_pointer

if TYPE_CHECKING:
    from pyoxigraph import QueryBoolean, QuerySolutions, Triple

    from tgraph.engine.influence_prepared import Influencing
    from tgraph.engine.replaying import Replay
    from tgraph.explain.audit import AuditResult
    from tgraph.explain.compared import Comparison
    from tgraph.explain.documents import DocumentSummary
    from tgraph.explain.entities import Merge, Split
    from tgraph.explain.extraction import SourceTree
    from tgraph.explain.influence import Influence, InfluenceEstimate
    from tgraph.explain.read_again import Asked
    from tgraph.explain.sessions import SessionList, SessionSummary
    from tgraph.explain.sparql import Bounds
    from tgraph.explain.trace import Trace
    from tgraph.explain.verified import Verification
    from tgraph.explain.whynot import WhyNot


class Explaining(Opened):
    """The reading half of ``KnowledgeGraph``."""

    # --- sessions ---

    def sessions(self, limit: int | None = None) -> SessionList:
        """The recorded sessions, newest first; a notebook shows the list as a table."""
        from tgraph.explain.sessions import list_sessions

        return list_sessions(self.read(), self._catalogue, limit)

    def find_session(self, name: str) -> SessionSummary:
        """The session of an IRI, a UUID, an unambiguous beginning of one, or ``last``."""
        from tgraph.explain.sessions import find_session

        return find_session(self.read(), self._catalogue, name)

    def trace(self, session: str = "last") -> Trace:
        """The record of a session as a tree; ``to_html`` writes it as a report."""
        from tgraph.explain.trace import read_trace
        from tgraph.record.invalidation import questioned

        summary = self.find_session(session)
        trace = read_trace(self.read(), self.librarian, summary, self.settings.explain_collection)
        doubt = questioned(self.read()).get(summary.explain_id)
        return replace(
            trace,
            report=partial(self.report, summary.explain_id),
            questioned=f"{doubt.time}: {doubt.reason}" if doubt else "",
        )

    def report(self, session: str = "last") -> str:
        """The record of a session as one HTML file, its RDF included."""
        from tgraph.explain.asked import read_request
        from tgraph.explain.carried import carried_quads, carried_trig
        from tgraph.explain.erased import page_text
        from tgraph.explain.names import Names
        from tgraph.explain.record_quads import catalogue_quads
        from tgraph.explain.render.picture import picture
        from tgraph.explain.render.report import to_html
        from tgraph.index.sources import Texts

        store, summary = self.read(), self.find_session(session)
        quads = carried_quads(store, summary.bundle, summary.explain_id)
        drawn = picture(quads, Names(store, self.librarian.get_text).known)
        quads += catalogue_quads(store, summary.bundle, self._catalogue)
        record = carried_trig(quads, summary.explain_id)
        pages = page_text(Texts(store, self.librarian))
        request = partial(read_request, store, self.librarian.get_text)
        return to_html(self.trace(session), record, drawn, pages, request)

    def trace_so_far(self, session: str) -> Trace:
        """The record of a session that is being asked in this process, as far as it has come."""
        from tgraph.explain.trace import read_so_far

        uuid = session.removeprefix(v.session_iri(""))
        if self._knowledge is not None:
            journal = self._folder.journals / f"{uuid}.journal"
            collection = self.settings.explain_collection
            trace = read_so_far(self._knowledge.store, journal, session, collection)
            if trace is not None:
                return trace
        return self.trace(session)

    def export(
        self,
        session: str = "last",
        format: str = "trig",
        *,
        vocabulary: str = "tgraph",
        classic: bool = False,
    ) -> bytes:
        """The record of a session with all that it refers to: RDF, a format of PROV, or a picture.

        The IRI of a verification, an influence analysis or another record of its own gives that.
        ``vocabulary`` may be ``trustgraph``, whose reader then parses it; ``classic`` writes edges
        without triple terms. ``UsageError`` for a format or vocabulary that there is not.
        """
        from tgraph.explain.carried import carried_quads
        from tgraph.explain.export import PICTURES, serialise
        from tgraph.explain.names import Names
        from tgraph.explain.record_quads import bundle_of, catalogue_quads, session_quads
        from tgraph.explain.render.picture import picture
        from tgraph.explain.trustgraph import trustgraph_quads

        if vocabulary not in ("tgraph", "trustgraph"):
            raise UsageError(
                f"There is no vocabulary {vocabulary!r}.", "There are: tgraph, trustgraph."
            )
        if vocabulary == "trustgraph":
            return serialise(trustgraph_quads(self.trace(session)), format, without_terms=classic)
        store = self.read()
        bundle = bundle_of(store, self._catalogue, session)
        if bundle is None:
            summary = self.find_session(session)
            bundle = summary.bundle
            if format in PICTURES:
                quads = carried_quads(store, bundle, summary.explain_id)
                names = Names(store, self.librarian.get_text).known
                return PICTURES[format](picture(quads, names))
        quads = session_quads(store, bundle) + catalogue_quads(store, bundle, self._catalogue)
        return serialise(quads, format, without_terms=classic)

    def why_not(self, session: str, expected: str) -> WhyNot:
        """Why an entity, fact, chunk, document or text, named in whatever way, is not in the answer
        of a session: exactly one cause, from the record and the store alone."""
        from tgraph.explain.whynot import why_not

        store, summary = self.read(), self.find_session(session)
        asked = partial(self._how_asked, summary)
        return why_not(store, self.librarian, self._folder.vectors, summary, expected, asked)

    def _how_asked(self, summary: SessionSummary, trace: Trace) -> Asked:
        """How a session was asked, as far as its record can be read."""
        from tgraph.engine.parameters import filters_of, history_of, restored
        from tgraph.explain.read_again import Asked
        from tgraph.explain.recorded import read_recorded
        from tgraph.retrieve.base import Question

        settings, embedder, rank = self.settings, None, None
        with suppress(UsageError):
            settings = restored(settings, trace.mode, trace.parameters)
        with suppress(UsageError):
            found = read_recorded(self.read(), self.librarian, summary.bundle, summary.explain_id)
            ranked = any(call.kind == "rerank" for call in found.calls.calls)
            embedder, rank = found.embedder, found.calls.rank if ranked else None
        question = Question(trace.question, history_of(trace.parameters), trace.concepts)
        filters = filters_of(trace.parameters)
        return Asked(question, settings, filters, self._parts.embedder, embedder, rank)

    def verify(
        self, session: str = "last", *, lexical: bool = False, progress: OnProgress = silent
    ) -> Verification:
        """Whether each sentence of a session's answer is entailed by what it cites, and where that
        was lost if it is not; the verdicts are recorded in a bundle of their own.

        The model judges, or words do where there is none or ``lexical`` is set. ``UsageError``
        where the session has no answer.
        """
        from tgraph.answer.support import LexicalJudge
        from tgraph.engine.verifying import VerificationRun
        from tgraph.record.verification import VerificationRecord

        summary, store = self.find_session(session), self.read()
        judge = LexicalJudge() if lexical else self._parts.support_judge()
        record = VerificationRecord(self._folder.journals, self._uuid(), self._clock)
        pointer = read_pointer(self._folder)
        generation = pointer.generation if pointer else 0
        collection = self.settings.explain_collection
        return VerificationRun(summary, judge, record, collection, generation, progress).run(
            store, self.librarian
        )

    def influence(
        self,
        session: str = "last",
        *,
        budget: int | None = None,
        repeats: int = REPEATS,
        samples: int = SAMPLES,
        progress: OnProgress = silent,
    ) -> Influence:
        """Which of the selected items a session's answer depends on: it is written again without
        them. Recorded in a bundle of its own.

        It makes at most ``budget`` calls; ``repeats`` of them with nothing removed, ``samples``
        with random halves where more than twenty items were selected. Replies are kept, so that
        the same analysis costs nothing again. ``UsageError`` where there is no answer, nothing was
        selected for it, its selection can't be had as it was, parts of it were erased, or the
        budget is too small.
        """
        from tgraph.record.influence import InfluenceRecord

        prepared = self._influencing(session, budget, repeats, samples)
        if told := prepared.told():
            self._message(told)
        record = InfluenceRecord(self._folder.journals, self._uuid(), self._clock)
        return prepared.run(record, self.settings.explain_collection, progress)

    def influence_estimate(
        self,
        session: str = "last",
        *,
        budget: int | None = None,
        repeats: int = REPEATS,
        samples: int = SAMPLES,
    ) -> InfluenceEstimate:
        """What ``influence`` with the same arguments would cost; nothing is called or recorded."""
        return self._influencing(session, budget, repeats, samples).estimate()

    def _influencing(
        self, session: str, budget: int | None, repeats: int, samples: int
    ) -> Influencing:
        from tgraph.engine.influence_prepared import check, prepare
        from tgraph.engine.regenerating import Recollection
        from tgraph.explain.erased import check_whole
        from tgraph.explain.recorded import read_recorded

        summary, trace = self.find_session(session), self.trace(session)
        check_whole(self.read(), summary.bundle, summary.explain_id, "measured")
        check(trace)
        found = read_recorded(self.read(), self.librarian, summary.bundle, summary.explain_id)
        context = self._open_context()
        recollection = Recollection(
            found, context, self._generation(), self._parts, self.settings, self.librarian
        )
        cache = self._folder.cache / "replies"
        return prepare(trace, recollection, cache, budget, repeats, samples)

    def replay(self, session: str = "last", *, live: bool = False) -> Replay:
        """Ask a recorded session once more, with its recorded replies and without any call, and
        compare the two records. ``live`` calls the models again. Nothing of it is recorded.

        ``UsageError`` where the session has no end, or parts of it were erased.
        """
        from tgraph.engine.replaying import Replaying
        from tgraph.explain.erased import check_whole
        from tgraph.explain.recorded import read_recorded

        summary = self.find_session(session)
        check_whole(self.read(), summary.bundle, summary.explain_id)
        context = self._open_context()
        found = read_recorded(self.read(), self.librarian, summary.bundle, summary.explain_id)
        run = Replaying(
            found, context, self._generation(), self._parts, self.settings, self.librarian
        )
        return run.run(live=live)

    def compare(self, before: str, after: str = "last") -> Comparison:
        """What differs between two sessions: what was asked, retrieved, selected, said, cited."""
        from tgraph.explain.compared import compare

        return compare(self.trace(before), self.trace(after))

    # --- documents ---

    def documents(self) -> list[DocumentSummary]:
        """Every document under every path it was taken in by, those that stand first."""
        from tgraph.explain.documents import list_documents

        return list_documents(self.read())

    def source(self, document: str) -> SourceTree:
        """What was extracted from a document (named by path, title, IRI or hash), and where."""
        from tgraph.explain.extraction import read_source

        return read_source(self.read(), self.librarian, document)

    def source_text(self, document: str, page: int | None = None) -> str:
        """The stored text of a page, or of the whole document: what citations count in."""
        from tgraph.explain.extraction import source_text

        return source_text(self.read(), self.librarian, document, page)

    # --- names ---

    def merges(self) -> list[Merge]:
        """The names that stand for another entity, each with the grounds for it."""
        from tgraph.explain.entities import Entities

        return Entities(self.read()).merges()

    def splits(self) -> list[Split]:
        """The names that ``split`` told apart, as far as ``rejoin`` has not taken it back."""
        from tgraph.explain.entities import Entities

        return Entities(self.read()).splits()

    # --- questions about the record ---

    def audit(self, name: str, *arguments: str) -> AuditResult:
        """Run a named audit (``tgraph.explain.audit.list_audits`` has them all)."""
        from tgraph.explain.audit import find_audit, run_audit

        return run_audit(self.read(), self._catalogue, find_audit(name), arguments)

    def sparql(self, query: str, **bounds: Any) -> QuerySolutions | QueryBoolean | list[Triple]:
        """The result of a read-only query over the union of all graphs.

        ``bounds`` are ``timeout`` (seconds), ``memory`` (bytes) and ``limit`` (rows). Raises
        ``QueryError`` where the query is wrong, refused, or was stopped.
        """
        from pyoxigraph import QueryResultsFormat, RdfFormat, parse, parse_query_results

        from tgraph.explain.guard import gives_triples
        from tgraph.explain.sparql import Bounds

        triples = gives_triples(query)
        chosen = "ntriples" if triples else "json"
        data = b"".join(self.sparql_stream(query, chosen, Bounds(**bounds)))
        if triples:
            return [quad.triple for quad in parse(data, RdfFormat.N_TRIPLES)]
        return parse_query_results(data, QueryResultsFormat.JSON)

    def sparql_stream(self, query: str, format: str, bounds: Bounds) -> Iterator[bytes]:
        """The same in a format of ``tgraph.explain.sparql.FORMATS``, piece by piece."""
        from tgraph.explain.sparql import stream_query

        self.read()
        snapshot = Snapshot.open(self._folder)
        assert snapshot is not None  # read() has just opened one
        try:
            yield from stream_query(snapshot.path / "store", query, format, bounds)
        finally:
            snapshot.close()
