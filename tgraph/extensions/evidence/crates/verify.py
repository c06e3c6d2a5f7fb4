"""Evidence package verification: every statement is recomputed from package contents.

Packages may come from anyone. Nothing is trusted before recomputation, and unreadable contents
end in a finding, never in a program crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal as OneOf

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.rerun.replay import Replay
from tgraph.errors import ErasedTextError, EvidenceError, TgraphError
from tgraph.explain.integrity.check import wrong_bundles
from tgraph.explain.integrity.entries import (
    ChainEntry,
    Problem,
    broken_links,
    signature_holds,
    term_text,
    values_by_property,
)
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.explain.integrity.texts import check_citation
from tgraph.explain.trace.recorded_session import RecordedSession, read_recorded
from tgraph.extensions.evidence.crates.container import (
    MANIFEST,
    format_manifest,
    read_package,
    zip_files,
)
from tgraph.extensions.evidence.crates.contents import (
    ANSWER,
    READS,
    RECORD,
    PackageContents,
    TextsOfPackage,
    find_misnamed_files,
)
from tgraph.extensions.evidence.crates.reads import Reads
from tgraph.index.evidence import recorded_place
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, parts_of_page
from tgraph.model import Evidence
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import hash_of_bundle
from tgraph.record.signing import KIND, PublicKey
from tgraph.rendering import format_count
from tgraph.store.statements import edge_of
from tgraph.version import __version__

CheckState = OneOf["ok", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class PackageCheck:
    """One package check: state, result text and problems."""

    name: str
    state: CheckState
    said: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageVerification:
    """Package verification results. ``manifest`` is the manifest's SHA-256, which identifies
    the package; ``ok`` tells whether no problem was found."""

    ok: bool
    file: str
    session: str
    question: str
    manifest: str
    checks: tuple[PackageCheck, ...]

    @property
    def problems(self) -> list[Problem]:
        return [problem for check in self.checks for problem in check.problems]


def check_files(file: Path) -> PackageCheck:
    """Compare package files with the manifest byte for byte.

    Raise ``UsageError`` if the file is missing, ``StoreError`` if the file is not a tgraph
    package."""
    return _run_check("Files", partial(_check_manifest, *read_package(file)))


def check_package(file: Path, key: PublicKey | None = None) -> PackageVerification:
    """Check the package, and replay it, in this process. Raises as ``check_files``."""
    files, data = read_package(file)
    manifest_hash = sha256(files.get(MANIFEST, b"")).hexdigest()
    first = _run_check("Files", partial(_check_manifest, files, data))
    try:
        contents = PackageContents(files)
        question = contents.trace.question
    except Exception as error:
        problem = Problem(
            "altered", "package", RECORD, f"It can't be read: {_shorten_error(error)}"
        )
        checks = (first, PackageCheck("Record", "failed", "It can't be read.", (problem,)))
        return PackageVerification(False, str(file), "", "", manifest_hash, checks)
    every = (first, *_run_checks(contents, key))
    ok = not any(check.state == "failed" for check in every)
    return PackageVerification(
        ok, str(file), contents.about.session, question, manifest_hash, every
    )


CheckOutcome = tuple[CheckState, str, list[Problem]]


def _run_checks(contents: PackageContents, key: PublicKey | None) -> Iterator[PackageCheck]:
    steps: Mapping[str, Callable[[], CheckOutcome]] = {
        "Record": lambda: _check_record(contents),
        "Signature": lambda: _check_signature(contents, key),
        "Quotes": lambda: _check_quotes(contents),
        "Answer": lambda: _check_answer(contents),
        "Report": lambda: _check_derived_files(contents),
        "Shapes": lambda: _check_shapes(contents),
        "Replay": lambda: _check_replay(contents),
    }
    for name, step in steps.items():
        yield _run_check(name, step)


def _run_check(name: str, check: Callable[[], CheckOutcome]) -> PackageCheck:
    try:
        state, result_text, problems = check()
    except Exception as error:
        result_text = f"It can't be checked: {_shorten_error(error)}"
        return PackageCheck(
            name, "failed", result_text, (Problem("altered", "package", name, result_text),)
        )
    return PackageCheck(name, "failed" if problems else state, result_text, tuple(problems))


def _shorten_error(error: Exception) -> str:
    error_text = str(error) if isinstance(error, TgraphError | ValueError) else type(error).__name__
    return " ".join(error_text.split())[:300]


# --- files ---


def _check_manifest(files: Mapping[str, bytes], data: bytes) -> CheckOutcome:
    problems = list(_compare_manifests(files.get(MANIFEST, b""), format_manifest(files)))
    sums = {name: sha256(data_bytes).hexdigest() for name, data_bytes in files.items()}
    for name in find_misnamed_files(files, sums):
        if name not in {problem.subject for problem in problems}:
            problems.append(
                Problem("altered", "file", name, "The name of the file is not the file's SHA-256.")
            )
    if not problems and zip_files(files) != data:
        detail = "Bytes between the files differ from the form that tgraph writes."
        problems.append(Problem("altered", "file", "the package", detail))
    count = format_count(len(files) - 1, "file is", "files are")
    return "ok", f"{count} as the manifest lists them.", problems


def _compare_manifests(listed: bytes, found: bytes) -> Iterator[Problem]:
    """Yield problems for manifest lines that differ from actual files."""
    expected, true = (
        {line[66:]: line[:64] for line in manifest_bytes.split(b"\n")}
        for manifest_bytes in (listed, found)
    )
    for name in sorted(expected.keys() | true.keys()):
        file_name = name.decode("utf-8", "replace")
        if name not in true:
            yield Problem(
                "missing",
                "file",
                file_name,
                "The manifest lists the file, but the file is missing.",
            )
        elif name not in expected:
            yield Problem("added", "file", file_name, "The manifest does not list the file.")
        elif expected[name] != true[name]:
            yield Problem(
                "altered", "file", file_name, "The SHA-256 of the file differs from the manifest."
            )
    if listed != found and expected == true:
        yield Problem(
            "altered",
            "file",
            MANIFEST,
            "The form of the file differs from the form that tgraph writes.",
        )


# --- the record and its chain ---


def _check_record(contents: PackageContents) -> CheckOutcome:
    entries, description = contents.entries, contents.about
    session_entry = next((entry for entry in entries if entry.subject == description.bundle), None)
    if session_entry is None:
        detail = "The package has no chain entry for the session."
        return (
            "ok",
            "The session has no seal.",
            [Problem("missing", "entry", description.bundle, detail)],
        )
    before = "missing", entries[0].subject  # those before the first are in the graph alone
    problems = [p for p in broken_links(entries) if (p.kind, p.subject) != before]
    rewritings = Rewritings(contents.store, entries)
    sealed = [
        replace(entry, hash=rewritings.hash_of(entry.subject, entry.hash))
        for entry in _sealed_entries(contents)
    ]
    hashes = {
        e.subject: hash_of_bundle(contents.store, NamedNode(e.subject), e.kind) for e in sealed
    }
    problems += wrong_bundles(sealed, hashes)
    problems += [*_find_foreign_quads(contents), *_find_misnamed_edges(contents.record)]
    result_text = (
        f"The session's RDFC-1.0 hash is that of entry {session_entry.sequence} of the chain"
    )
    if rewritings.hash_of(session_entry.subject, session_entry.hash) != session_entry.hash:
        when = ", ".join(
            rewriting.what.time[:10] for rewriting in rewritings.all if rewriting.hashes
        )
        result_text += f", rewritten by an erasure on {when}, not tampered with"
    return "ok", f"{result_text}. Head after it: {session_entry.chain}.", problems


def _sealed_entries(contents: PackageContents) -> list[ChainEntry]:
    """Return chain entries whose bundles the package contains: the session and erasures that
    changed it.

    Other entries may be in the chain without their bundles."""
    graphs = {term_text(quad.graph_name) for quad in contents.record}
    session_bundle = contents.about.bundle
    kinds = ((e, e.subject == session_bundle or e.kind == ERASURE.name) for e in contents.entries)
    return [entry for entry, is_relevant in kinds if is_relevant and entry.subject in graphs]


def _find_foreign_quads(contents: PackageContents) -> Iterator[Problem]:
    """Yield problems for quads in graphs foreign to packages."""
    allowed_graphs = {entry.subject for entry in _sealed_entries(contents)}
    allowed_graphs |= {v.SOURCE_GRAPH.value, contents.about.catalogue}
    for quad in contents.record:
        if term_text(quad.graph_name) not in allowed_graphs:
            yield Problem("added", "quad", str(quad), "The statement is in a graph without a seal.")


def _find_misnamed_edges(quads: list[Quad]) -> Iterator[Problem]:
    """Yield problems for edges whose IRI does not match their triple."""
    for quad in quads:
        edge_iri, triple = term_text(quad.subject), quad.object
        if quad.predicate != v.RDF_REIFIES or not isinstance(triple, Triple):
            continue
        if edge_of(triple) != edge_iri:
            yield Problem(
                "altered", "edge", edge_iri, "The name of the edge does not match the triple."
            )


def _check_signature(contents: PackageContents, key: PublicKey | None) -> CheckOutcome:
    entries = contents.entries
    signatures = [entry for entry in entries if entry.kind == KIND]
    if key is None:
        signed = (
            "The chain is signed; name the public key to verify the signatures."
            if signatures
            else "The chain is not signed."
        )
        return "not checked", f"{signed} What nobody signed could have been made anew.", []
    last = max((entry.sequence for entry in _sealed_entries(contents)), default=0)
    for entry in signatures:
        signer = values_by_property(entry.quads).get(v.prov("wasAttributedTo"))
        if entry.sequence <= last or signer != key.agent:
            continue  # it covers only what stands before it
        if signature_holds(entry, contents.about.catalogue, key):
            entry_text = f"entry {entry.sequence - 1}, signed {entry.time}"
            return "ok", f"The key {key.id[:16]} signed the chain up to {entry_text}.", []
        detail = "The signature does not match this key and the chain before the entry."
        return (
            "ok",
            "A signature is wrong.",
            [Problem("altered", "signature", entry.subject, detail)],
        )
    detail = "No signature with this key in the package covers the session's entry."
    return "ok", detail, [Problem("missing", "signature", key.agent, detail)]


# --- quotes and answer ---


@dataclass
class _QuoteCheck:
    """Comparison of quotes with package pages, with counts and problems."""

    texts: TextsOfPackage
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def __call__(
        self, what: str, subject: str, page: tuple[str, int | None], compare: Callable[[], object]
    ) -> None:
        if not self.texts.has_text(*page):
            self.counts["not there"] += 1
            return
        try:
            compare()
            self.counts["there"] += 1
        except ErasedTextError:
            self.counts["erased"] += 1
        except EvidenceError as error:
            self.problems.append(Problem("altered", what, subject, error.message))


def _check_quotes(contents: PackageContents) -> CheckOutcome:
    store, texts = contents.store, Texts(contents.store, contents.librarian)
    check = _QuoteCheck(contents.texts)
    for quad in store.match(None, v.oa("exact"), None, NamedNode(contents.about.bundle)):
        citation = term_text(quad.subject).removesuffix(":quote")
        page = _page_of_citation(contents, citation)
        check("citation", citation, page, partial(check_citation, store, texts, quad))
    for quad in store.match(None, v.RDF_TYPE, v.tg("Evidence"), v.SOURCE_GRAPH):
        place = recorded_place(store, term_text(quad.subject))
        page = document_of_chunk(place.chunk), page_of_chunk(place.chunk)
        check("evidence", term_text(quad.subject), page, partial(texts.quote, *place))
    for evidence in _retrieved_evidence(contents):
        page = evidence.document, evidence.page
        comparison = partial(texts.check, *page, evidence.start, evidence.end, evidence.quote)
        check("candidate", evidence.iri, page, comparison)
    state: CheckState = "ok" if contents.about.texts else "not checked"
    return state, _describe_quotes(contents, check.counts), check.problems


def _page_of_citation(contents: PackageContents, citation: str) -> tuple[str, int | None]:
    target = NamedNode(f"{citation}:target")
    bundle = NamedNode(contents.about.bundle)
    source_quads = contents.store.match(target, v.oa("hasSource"), None, bundle)
    return parts_of_page(next((term_text(quad.object) for quad in source_quads), ""))


def _retrieved_evidence(contents: PackageContents) -> Iterator[Evidence]:
    """Yield evidence of retrieved candidates, as noted for replay."""
    if READS in contents.files:
        for noted_retrieval in Reads.from_json(contents.files[READS]).retrievals:
            for candidate in noted_retrieval.found.candidates:
                yield from candidate.evidence


def _describe_quotes(contents: PackageContents, counts: Mapping[str, int]) -> str:
    if not contents.about.texts:
        pages = sum(1 for _ in contents.store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH))
        page_count = format_count(pages, "page")
        return (
            f"The package has no texts: {format_count(counts['not there'], 'quote')} could not"
            " be compared."
            f" It has the SHA-256 of {page_count}, with which a page that you have can be."
        )
    summary = f"{format_count(counts['there'], 'quote')} stand in their pages at their offsets."
    if counts["not there"]:
        summary += (
            f" {counts['not there']} more, of what was only seen, are in pages that it lacks."
        )
    if counts["erased"]:
        summary += f" Of {counts['erased']} the text was erased."
    return summary if counts["there"] or counts["not there"] else "Nothing is quoted."


def _check_answer(contents: PackageContents) -> CheckOutcome:
    """Check answer text against the recorded hash and recorded sentences."""
    reader, trace = contents.bundle_reader, contents.trace
    key = reader.read_text(v.answer_text_iri(contents.about.uuid), "contentHash")
    answer = contents.files.get(ANSWER)
    if not key and answer is None:
        return "ok", "The session has no answer, and the package none.", []
    if answer is None or sha256(answer).hexdigest() != key:
        detail = "The text differs from the text named in the record."
        if answer is None and _was_removed(contents, key):
            return "not checked", "The answer was erased.", []
        return (
            "ok",
            "The answer differs from the record.",
            [Problem("altered", "answer", ANSWER, detail)],
        )
    text, at, problems = answer.decode("utf-8", "surrogatepass"), 0, list[Problem]()
    for sentence in trace.sentences:
        position = text.find(sentence.text, at)
        if position < 0:
            detail = "The answer does not contain the sentence."
            problems.append(Problem("missing", "sentence", sentence.iri, detail))
        at = max(at, position)
    sentences = format_count(len(trace.sentences), "sentence")
    return "ok", f"The answer is the text that the record names: {sentences}.", problems


def _was_removed(contents: PackageContents, key: str) -> bool:
    rewritings = Rewritings(contents.store, contents.entries)
    return rewritings.was_removed(key)


def _check_derived_files(contents: PackageContents) -> CheckOutcome:
    """Compare report, method and metadata with files derived anew from the record."""
    package_version = contents.about.tgraph
    problems = [
        Problem(
            "altered", "file", name, "The file differs from the file generated from the record."
        )
        for name, data in contents.derive_files().items()
        if contents.files.get(name) != data
    ]
    if problems and package_version != __version__:
        warning = (
            f"Report and metadata are not what tgraph {__version__} draws from the record. They say"
            f" that {package_version} drew them: don't rely on them before that has checked"
            " the package."
        )
        return "not checked", warning, []
    return "ok", "Report, method and metadata match the record.", problems


def _check_shapes(contents: PackageContents) -> CheckOutcome:
    from tgraph.explain.audit.shacl import check_shapes

    violations = check_shapes(contents.store, contents.about.catalogue, contents.about.session)
    problems = [
        Problem("altered", "shape", focus, f"{path} {value}: {message}".strip())
        for _, focus, path, value, message in violations
    ]
    return "ok", "The record conforms to tgraph's SHACL shapes.", problems


# --- replay ---


def _check_replay(contents: PackageContents) -> CheckOutcome:
    description = contents.about
    if description.no_replay:
        return "not checked", f"It was not replayed: {description.no_replay}", []
    replay = replay_package(contents)
    if replay.is_same:
        replay_text = what_was_replayed(contents)
        return "ok", f"The same replay hash, {replay.recorded_hash}. {replay_text}", []
    first = replay.differences[0] if replay.differences else None
    detail = replay.problem or (f"It differs at {first.subject}." if first else "")
    if description.tgraph != __version__:
        detail += f" The session was packed by tgraph {description.tgraph}; this is {__version__}."
    problem = Problem("altered", "replay", description.session, detail)
    return "ok", "The record of the replay differs from the recorded session.", [problem]


def _read_session(contents: PackageContents) -> RecordedSession:
    description = contents.about
    return read_recorded(
        contents.store, contents.librarian, description.bundle, description.session
    )


def replay_package(contents: PackageContents) -> Replay:
    """Return the replay of a packaged session. Raise ``UsageError`` if recorded calls are
    missing."""
    from tgraph.extensions.evidence.crates.replay import ReplayFromCrate

    reads = Reads.from_json(contents.files[READS])
    session = _read_session(contents)
    run = ReplayFromCrate.from_package(
        session, contents.store, contents.librarian, reads, contents.collection
    )
    return run.run()


def what_was_replayed(contents: PackageContents) -> str:
    """Describe session steps taken from the record, and steps repeated."""
    from tgraph.extensions.evidence.crates.replay import what_is_replayed

    return what_is_replayed(_read_session(contents), Reads.from_json(contents.files[READS]))
