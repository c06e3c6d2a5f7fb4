"""An evidence package, checked: every statement that it makes is computed again from what it holds.

It may be anybody's. So nothing in it is believed before it was computed, and what can't be read
ends in a finding, never in the program's end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal as OneOf

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.rerun.replay import Replay
from tgraph.errors import ErasedTextError, EvidenceError, TgraphError
from tgraph.explain.integrity.entries import (
    ChainEntry,
    Problem,
    broken_links,
    stated,
    term_text,
)
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.explain.integrity.texts import check_citation
from tgraph.explain.trace.recorded_session import RecordedSession, read_recorded
from tgraph.extensions.evidence.crates.container import MANIFEST, manifest, packed, read_package
from tgraph.extensions.evidence.crates.contents import (
    ANSWER,
    READS,
    RECORD,
    PackageContents,
    TextsOfPackage,
    misnamed,
)
from tgraph.extensions.evidence.crates.reads import Reads
from tgraph.index.evidence import recorded_place
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, parts_of_page
from tgraph.model import Evidence
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import Head, hash_of_graph
from tgraph.record.signing import KIND, PublicKey, statement_of
from tgraph.rendering import many
from tgraph.store.statements import edge_of
from tgraph.version import __version__

State = OneOf["ok", "failed", "not checked"]


@dataclass(frozen=True, slots=True)
class PackageCheck:
    """One thing that was checked: what came of it, in words, and what is wrong."""

    name: str
    state: State
    said: str
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class PackageVerification:
    """What the check of a package found. ``manifest`` is the SHA-256 of its manifest, by which the
    package as a whole is known; ``ok`` is whether nothing is wrong."""

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
    """Whether the package is, byte for byte, what its manifest lists. ``UsageError`` where there is
    no such file, ``StoreError`` where it is no package of tgraph's."""
    return _checked("Files", partial(_files, *read_package(file)))


def check_package(file: Path, key: PublicKey | None = None) -> PackageVerification:
    """Check the package, and replay it, in this process. Raises as ``check_files``."""
    files, data = read_package(file)
    known = sha256(files.get(MANIFEST, b"")).hexdigest()
    first = _checked("Files", partial(_files, files, data))
    try:
        contents = PackageContents(files)
        question = contents.trace.question
    except Exception as error:
        problem = Problem("altered", "package", RECORD, f"It can't be read: {_brief(error)}")
        checks = (first, PackageCheck("Record", "failed", "It can't be read.", (problem,)))
        return PackageVerification(False, str(file), "", "", known, checks)
    every = (first, *_all(contents, key))
    ok = not any(check.state == "failed" for check in every)
    return PackageVerification(ok, str(file), contents.about.session, question, known, every)


Found = tuple[State, str, list[Problem]]


def _all(contents: PackageContents, key: PublicKey | None) -> Iterator[PackageCheck]:
    steps: Mapping[str, Callable[[], Found]] = {
        "Record": lambda: _record(contents),
        "Signature": lambda: _signature(contents, key),
        "Quotes": lambda: _quotes(contents),
        "Answer": lambda: _answer(contents),
        "Report": lambda: _drawn(contents),
        "Shapes": lambda: _shapes(contents),
        "Replay": lambda: _replay(contents),
    }
    for name, step in steps.items():
        yield _checked(name, step)


def _checked(name: str, check: Callable[[], Found]) -> PackageCheck:
    try:
        state, said, problems = check()
    except Exception as error:
        said = f"It can't be checked: {_brief(error)}"
        return PackageCheck(name, "failed", said, (Problem("altered", "package", name, said),))
    return PackageCheck(name, "failed" if problems else state, said, tuple(problems))


def _brief(error: Exception) -> str:
    said = str(error) if isinstance(error, TgraphError | ValueError) else type(error).__name__
    return " ".join(said.split())[:300]


# --- files ---


def _files(files: Mapping[str, bytes], data: bytes) -> Found:
    problems = list(_differing(files.get(MANIFEST, b""), manifest(files)))
    sums = {name: sha256(each).hexdigest() for name, each in files.items()}
    for name in misnamed(files, sums):
        if name not in {problem.subject for problem in problems}:
            problems.append(Problem("altered", "file", name, "Its name is not its SHA-256."))
    if not problems and packed(files) != data:
        detail = "Bytes around its files are not as tgraph writes them."
        problems.append(Problem("altered", "file", "the package", detail))
    count = many(len(files) - 1, "file is", "files are")
    return "ok", f"{count} as the manifest lists them.", problems


def _differing(listed: bytes, found: bytes) -> Iterator[Problem]:
    """The lines of the manifest that are not those of the files."""
    told, true = ({line[66:]: line[:64] for line in each.split(b"\n")} for each in (listed, found))
    for name in sorted(told.keys() | true.keys()):
        shown = name.decode("utf-8", "replace")
        if name not in true:
            yield Problem("missing", "file", shown, "The manifest lists it, and it is not there.")
        elif name not in told:
            yield Problem("added", "file", shown, "The manifest does not list it.")
        elif told[name] != true[name]:
            yield Problem("altered", "file", shown, "Its SHA-256 is not the manifest's.")
    if listed != found and told == true:
        yield Problem("altered", "file", MANIFEST, "It is not written as tgraph writes it.")


# --- the record and its chain ---


def _record(contents: PackageContents) -> Found:
    entries, about = contents.entries, contents.about
    own = next((entry for entry in entries if entry.subject == about.bundle), None)
    if own is None:
        detail = "The package has no entry of the chain for it."
        return "ok", "It was sealed nowhere.", [Problem("missing", "entry", about.bundle, detail)]
    before = "missing", entries[0].subject  # those before the first are in the graph alone
    problems = [p for p in broken_links(entries) if (p.kind, p.subject) != before]
    rewritings = Rewritings(contents.store, entries)
    for entry in _sealed(contents):
        wanted = rewritings.hash_of(entry.subject, entry.hash)
        if hash_of_graph(contents.store, NamedNode(entry.subject)).hash != wanted:
            detail = f"Its quads were changed; it was sealed as {wanted}."
            problems.append(Problem("altered", "bundle", entry.subject, detail))
    problems += [*_strangers(contents), *_misnamed(contents.record)]
    said = f"The session's RDFC-1.0 hash is that of entry {own.sequence} of the chain"
    if rewritings.hash_of(own.subject, own.hash) != own.hash:
        when = ", ".join(done.what.time[:10] for done in rewritings.all if done.hashes)
        said += f", rewritten by an erasure on {when}, not tampered with"
    return "ok", f"{said}. Head after it: {own.chain}.", problems


def _sealed(contents: PackageContents) -> list[ChainEntry]:
    """The entries whose bundles the package has: the session's, and those of erasures that changed
    it. What others sealed may be in the chain too; it is not in the package."""
    held = {term_text(quad.graph_name) for quad in contents.record}
    own = contents.about.bundle
    kinds = ((e, e.subject == own or e.kind == ERASURE.name) for e in contents.entries)
    return [entry for entry, wanted in kinds if wanted and entry.subject in held]


def _strangers(contents: PackageContents) -> Iterator[Problem]:
    """Quads in graphs that no package has."""
    known = {entry.subject for entry in _sealed(contents)}
    known |= {v.SOURCE_GRAPH.value, contents.about.catalogue}
    for quad in contents.record:
        if term_text(quad.graph_name) not in known:
            yield Problem("added", "quad", str(quad), "It is in a graph that is not sealed.")


def _misnamed(quads: list[Quad]) -> Iterator[Problem]:
    """Edges whose name is not that of their triple."""
    for quad in quads:
        named, triple = term_text(quad.subject), quad.object
        if quad.predicate != v.RDF_REIFIES or not isinstance(triple, Triple):
            continue
        if edge_of(triple) != named:
            yield Problem("altered", "edge", named, "Its name is not that of its triple.")


def _signature(contents: PackageContents, key: PublicKey | None) -> Found:
    entries = contents.entries
    made = [entry for entry in entries if entry.kind == KIND]
    if key is None:
        signed = (
            "It is signed; name the public key to verify that." if made else "It is not signed."
        )
        return "not checked", f"{signed} What nobody signed could have been made anew.", []
    last = max((entry.sequence for entry in _sealed(contents)), default=0)
    for entry in made:
        said = stated(entry.quads)
        if entry.sequence <= last or said.get(v.prov("wasAttributedTo")) != key.agent:
            continue  # it covers only what stands before it
        statement = statement_of(contents.about.catalogue, Head(entry.sequence - 1, entry.previous))
        if key.signed(statement, said.get(v.tg("signature"), "")):
            which = f"entry {entry.sequence - 1}, signed {entry.time}"
            return "ok", f"The key {key.id[:16]} signed the chain up to {which}.", []
        detail = "It is no signature by this key over the chain before it."
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
    """Compares what is quoted with the pages that the package has, and counts."""

    texts: TextsOfPackage
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def __call__(
        self, what: str, subject: str, page: tuple[str, int | None], compare: Callable[[], object]
    ) -> None:
        if not self.texts.has(*page):
            self.counts["not there"] += 1
            return
        try:
            compare()
            self.counts["there"] += 1
        except ErasedTextError:
            self.counts["erased"] += 1
        except EvidenceError as error:
            self.problems.append(Problem("altered", what, subject, error.message))


def _quotes(contents: PackageContents) -> Found:
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
    for each in _retrieved(contents):
        page = each.document, each.page
        told = partial(texts.check, *page, each.start, each.end, each.quote)
        check("candidate", each.iri, page, told)
    state: State = "ok" if contents.about.texts else "not checked"
    return state, _counted(contents, check.counts), check.problems


def _page_of_citation(contents: PackageContents, citation: str) -> tuple[str, int | None]:
    target = NamedNode(f"{citation}:target")
    bundle = NamedNode(contents.about.bundle)
    found = contents.store.match(target, v.oa("hasSource"), None, bundle)
    return parts_of_page(next((term_text(quad.object) for quad in found), ""))


def _retrieved(contents: PackageContents) -> Iterator[Evidence]:
    """The places of what was retrieved, as the package tells a replay of them."""
    if READS in contents.files:
        for each in Reads.from_json(contents.files[READS]).retrievals:
            for candidate in each.found.candidates:
                yield from candidate.evidence


def _counted(contents: PackageContents, counts: Mapping[str, int]) -> str:
    if not contents.about.texts:
        pages = sum(1 for _ in contents.store.match(None, v.tg("textHash"), None, v.SOURCE_GRAPH))
        kept = many(pages, "page")
        return (
            f"The package has no texts: {many(counts['not there'], 'quote')} could not be compared."
            f" It has the SHA-256 of {kept}, with which a page that you have can be."
        )
    said = f"{many(counts['there'], 'quote')} stand in their pages at their offsets."
    if counts["not there"]:
        said += f" {counts['not there']} more, of what was only seen, are in pages that it lacks."
    if counts["erased"]:
        said += f" Of {counts['erased']} the text was erased."
    return said if counts["there"] or counts["not there"] else "Nothing is quoted."


def _answer(contents: PackageContents) -> Found:
    """The answer is the text that the record names, and has the sentences that it states."""
    said, trace = contents.said, contents.trace
    key = said.one(v.answer_text_iri(contents.about.uuid), "contentHash")
    answer = contents.files.get(ANSWER)
    if not key and answer is None:
        return "ok", "The session has no answer, and the package none.", []
    if answer is None or sha256(answer).hexdigest() != key:
        detail = "It is not the text that the record names."
        if answer is None and _was_removed(contents, key):
            return "not checked", "The answer was erased.", []
        return "ok", "The answer is another.", [Problem("altered", "answer", ANSWER, detail)]
    text, at, problems = answer.decode("utf-8", "surrogatepass"), 0, list[Problem]()
    for sentence in trace.sentences:
        found = text.find(sentence.text, at)
        if found < 0:
            detail = "The answer does not have it."
            problems.append(Problem("missing", "sentence", sentence.iri, detail))
        at = max(at, found)
    sentences = many(len(trace.sentences), "sentence")
    return "ok", f"The answer is the text that the record names: {sentences}.", problems


def _was_removed(contents: PackageContents, key: str) -> bool:
    rewritings = Rewritings(contents.store, contents.entries)
    return rewritings.was_removed(key)


def _drawn(contents: PackageContents) -> Found:
    """Report, method and metadata are what is drawn from the record anew."""
    made = contents.about.tgraph
    problems = [
        Problem("altered", "file", name, "It is not what is drawn from the record.")
        for name, data in contents.drawn().items()
        if contents.files.get(name) != data
    ]
    if problems and made != __version__:
        said = (
            f"Report and metadata are not what tgraph {__version__} draws from the record. They say"
            f" that {made} drew them: don't rely on them before that has checked the package."
        )
        return "not checked", said, []
    return "ok", "Report, method and metadata are what is drawn from the record.", problems


def _shapes(contents: PackageContents) -> Found:
    from tgraph.explain.audit.shacl import check_shapes

    found = check_shapes(contents.store, contents.about.catalogue, contents.about.session)
    problems = [
        Problem("altered", "shape", focus, f"{path} {value}: {message}".strip())
        for _, focus, path, value, message in found
    ]
    return "ok", "The record has the form that tgraph's SHACL shapes ask for.", problems


# --- replay ---


def _replay(contents: PackageContents) -> Found:
    about = contents.about
    if about.no_replay:
        return "not checked", f"It was not replayed: {about.no_replay}", []
    found = replayed(contents)
    if found.same:
        said = what_was_replayed(contents)
        return "ok", f"The same replay hash, {found.recorded_hash}. {said}", []
    first = found.differences[0] if found.differences else None
    detail = found.problem or (f"It differs at {first.subject}." if first else "")
    if about.tgraph != __version__:
        detail += f" The session was packed by tgraph {about.tgraph}; this is {__version__}."
    problem = Problem("altered", "replay", about.session, detail)
    return "ok", "The replay came to another record.", [problem]


def _recorded(contents: PackageContents) -> RecordedSession:
    about = contents.about
    return read_recorded(contents.store, contents.librarian, about.bundle, about.session)


def replayed(contents: PackageContents) -> Replay:
    """The session asked again from the package. ``UsageError`` where calls are not in it."""
    from tgraph.extensions.evidence.crates.replay import ReplayFromCrate

    reads = Reads.from_json(contents.files[READS])
    session = _recorded(contents)
    run = ReplayFromCrate.over(
        session, contents.store, contents.librarian, reads, contents.collection
    )
    return run.run()


def what_was_replayed(contents: PackageContents) -> str:
    """What was taken from the record, and what was done again."""
    from tgraph.extensions.evidence.crates.replay import what_is_replayed

    return what_is_replayed(_recorded(contents), Reads.from_json(contents.files[READS]))
