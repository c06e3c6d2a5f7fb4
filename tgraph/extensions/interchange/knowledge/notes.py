"""Knowledge as notes: a Markdown file for each entity and report, linked as Obsidian links them.

The names of files are made of letters, digits, spaces and hyphens of what they are about; texts are
written so that nothing in them is a link, mark-up, a query or HTML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tgraph import vocabulary as v
from tgraph.extensions.interchange.knowledge.statements import (
    ExportedClaim,
    ExportedEdge,
    ExportedEntity,
    KnowledgeSource,
)
from tgraph.index.communities.communities import read_communities
from tgraph.index.reports.report import read_reports
from tgraph.model import CommunityReport, Evidence
from tgraph.rendering import safe

_LONGEST_NAME = 80
_QUOTES = 3
"""Of what is said of one thing at most so many places are quoted."""

_UNFIT = re.compile(r"[^\w -]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)")
_ACTIVE = re.compile(r"([\\`*_\[\]<>$%=#|~^!{}])")


def write_notes(source: KnowledgeSource, folder: Path) -> None:
    """``index.md``, ``entities/`` and ``communities/``; a folder that is empty or new."""
    entities = list(source.knowledge.entities())
    files = file_names((entity.iri, entity.label) for entity in entities)
    reports = read_reports(source.store)
    titles = file_names((report.iri, report.title) for report in reports.values())
    book = _NoteBook(source, files, titles, entities)
    _write_all(folder / "entities", files, book.entity_notes())
    _write_all(folder / "communities", titles, book.report_notes(reports))
    (folder / "index.md").write_text(book.index(reports), encoding="utf-8", newline="\n")


def _write_all(
    folder: Path, names: Mapping[str, str], notes: Iterable[tuple[str, Iterable[str]]]
) -> None:
    folder.mkdir()
    for iri, lines in notes:
        text = "\n".join(lines).rstrip() + "\n"
        (folder / f"{names[iri]}.md").write_text(text, encoding="utf-8", newline="\n")


def file_names(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """For each IRI a name that any file system takes, like its label, and no other's whatever the
    case of letters."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for iri, label in named:
        name = _file_name(label)
        if name.casefold() in taken or not name:
            name = f"{name} {v.digest(iri)[:8]}".strip()
        taken.add(name.casefold())
        found[iri] = name
    return found


def _file_name(label: str) -> str:
    name = " ".join(_UNFIT.sub(" ", label).split())[:_LONGEST_NAME].strip(" -")
    name = name.encode("utf-8", "ignore")[:200].decode("utf-8", "ignore").strip()
    return f"{name} note" if _RESERVED.fullmatch(name) else name


def plain(text: str) -> str:
    """The text on one line, with nothing in it that Markdown or Obsidian would act on."""
    return _ACTIVE.sub(r"\\\1", safe(" ".join(text.split())))


class _NoteBook:
    """All notes of a graph."""

    def __init__(
        self,
        source: KnowledgeSource,
        files: Mapping[str, str],
        titles: Mapping[str, str],
        entities: Sequence[ExportedEntity],
    ) -> None:
        self._source = source
        self._files = files
        self._titles = titles
        self._entities = entities
        self._labels = {entity.iri: entity.label for entity in entities}
        self._edges: dict[str, list[ExportedEdge]] = {}
        for edge in source.knowledge.edges():
            for end in dict.fromkeys((edge.subject, edge.object)):
                self._edges.setdefault(end, []).append(edge)
        self._claims: dict[str, list[ExportedClaim]] = {}
        for claim in source.knowledge.claims():
            for end in dict.fromkeys(filter(None, (claim.subject, claim.object))):
                self._claims.setdefault(end, []).append(claim)
        self._places = dict(source.places())

    def entity_notes(self) -> Iterator[tuple[str, Iterator[str]]]:
        """Each entity with the lines of its note."""
        return ((entity.iri, self._entity(entity)) for entity in self._entities)

    def report_notes(
        self, reports: Mapping[str, CommunityReport]
    ) -> Iterator[tuple[str, Iterator[str]]]:
        """Each report with the lines of its note."""
        communities = {c.iri: c for c in read_communities(self._source.store, edges=False)}
        for report in reports.values():
            known = communities.get(report.community)
            yield report.iri, self._report(report, known.members if known else ())

    def index(self, reports: Mapping[str, CommunityReport]) -> str:
        """The note that leads to all others."""
        lines = ["# Knowledge", "", f"{len(self._entities):,} entities", ""]
        ordered = sorted(reports.values(), key=lambda r: (r.level, -r.rating, r.iri))
        lines += [f"- [[communities/{self._titles[r.iri]}|{_alias(r.title)}]]" for r in ordered]
        named = sorted(self._entities, key=lambda e: (e.label.casefold(), e.iri))
        lines += ["", *(f"- {self._link(entity.iri)}" for entity in named)]
        return "\n".join(lines).rstrip() + "\n"

    def _entity(self, entity: ExportedEntity) -> Iterator[str]:
        yield from _front({"iri": entity.iri, "type": entity.type, "aliases": entity.aliases})
        yield from (f"# {plain(entity.label)}", "")
        for text in entity.descriptions:
            yield from (plain(text), "")
        if edges := self._edges.get(entity.iri):
            yield from ("## Facts", "")
            for edge in edges:
                yield from self._fact(edge)
        if claims := self._claims.get(entity.iri):
            yield from ("", "## Claims", "")
            for claim in claims:
                about = f" (about {self._link(claim.object)})" if claim.object else ""
                yield f"- {plain(claim.type)}, {claim.status}{about}: {plain(claim.description)}"
                yield from self._quotes(claim.iri)
        yield from ("", "## Mentions", "", *self._quotes(entity.iri, ""))

    def _fact(self, edge: ExportedEdge) -> Iterator[str]:
        other = plain(edge.object) if edge.is_attribute else self._link(edge.object)
        told = f": {plain(' '.join(edge.descriptions))}" if edge.descriptions else ""
        yield f"- {self._link(edge.subject)} — {plain(edge.relation)} — {other}{told}"
        yield from self._quotes(edge.iri)

    def _report(self, report: CommunityReport, members: Iterable[str]) -> Iterator[str]:
        yield from _front({"iri": report.iri, "level": str(report.level)})
        yield from (f"# {plain(report.title)}", "", plain(report.summary), "")
        yield from (f"Rating {report.rating:g}: {plain(report.rating_explanation)}", "")
        for finding in report.findings:
            yield from (f"## {plain(finding.summary)}", "", plain(finding.explanation), "")
        yield from ("## Members", "", *(f"- {self._link(member)}" for member in members))

    def _quotes(self, subject: str, indent: str = "  ") -> Iterator[str]:
        for place in self._places.get(subject, ())[:_QUOTES]:
            yield f"{indent}> {plain(place.quote)}"
            yield f"{indent}> — {_where(place)}"
            yield indent.rstrip()

    def _link(self, iri: str) -> str:
        label = self._labels.get(iri, iri)
        return f"[[{self._files[iri]}|{_alias(label)}]]" if iri in self._files else plain(label)


def _where(place: Evidence) -> str:
    page = f", page {place.page}" if place.page is not None else ""
    return f"{plain(place.path)}{page}, characters {place.start}–{place.end}"


def _alias(label: str) -> str:
    """A label as the shown part of a link, which nothing escapes."""
    return " ".join(re.sub(r"[\[\]|#^`<>]+", " ", safe(label)).split())


def _front(values: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    """Front matter: YAML, of which JSON's strings and lists are a part."""
    yield "---"
    for name, value in values.items():
        if value:
            shown = safe(value) if isinstance(value, str) else list(map(safe, value))
            yield f"{name}: {json.dumps(shown, ensure_ascii=False)}"
    yield from ("---", "")
