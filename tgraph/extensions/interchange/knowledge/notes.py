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
from tgraph.rendering import escape_controls

_LONGEST_NAME = 80
_QUOTES = 3
"""Of what is said of one thing at most so many places are quoted."""

_UNFIT = re.compile(r"[^\w -]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)")
_ACTIVE = re.compile(r"([\\`*_\[\]<>$%=#|~^!{}])")


def write_notes(source: KnowledgeSource, folder: Path) -> None:
    """Write ``index.md``, ``entities/`` and ``communities/`` into a new or empty folder."""
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
    """Return file names by IRI: safe for all file systems, similar to labels, unique regardless
    of letter case."""
    file_names_by_iri: dict[str, str] = {}
    used_names: set[str] = set()
    for iri, label in named:
        name = _file_name(label)
        if name.casefold() in used_names or not name:
            name = f"{name} {v.digest_parts(iri)[:8]}".strip()
        used_names.add(name.casefold())
        file_names_by_iri[iri] = name
    return file_names_by_iri


def _file_name(label: str) -> str:
    name = " ".join(_UNFIT.sub(" ", label).split())[:_LONGEST_NAME].strip(" -")
    name = name.encode("utf-8", "ignore")[:200].decode("utf-8", "ignore").strip()
    return f"{name} note" if _RESERVED.fullmatch(name) else name


def escape_markdown(text: str) -> str:
    """Return text on a single line, with active Markdown and Obsidian characters escaped."""
    return _ACTIVE.sub(r"\\\1", escape_controls(" ".join(text.split())))


class _NoteBook:
    """Markdown notes of a graph."""

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
        """Yield entity IRIs with note lines."""
        return ((entity.iri, self._entity_lines(entity)) for entity in self._entities)

    def report_notes(
        self, reports: Mapping[str, CommunityReport]
    ) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield report IRIs with note lines."""
        communities = {c.iri: c for c in read_communities(self._source.store, edges=False)}
        for report in reports.values():
            community = communities.get(report.community)
            yield report.iri, self._report_lines(report, community.members if community else ())

    def index(self, reports: Mapping[str, CommunityReport]) -> str:
        """Return an index note linking all other notes."""
        lines = ["# Knowledge", "", f"{len(self._entities):,} entities", ""]
        ordered = sorted(reports.values(), key=lambda r: (r.level, -r.rating, r.iri))
        lines += [
            f"- [[communities/{self._titles[r.iri]}|{_link_alias(r.title)}]]" for r in ordered
        ]
        sorted_entities = sorted(self._entities, key=lambda e: (e.label.casefold(), e.iri))
        lines += ["", *(f"- {self._entity_link(entity.iri)}" for entity in sorted_entities)]
        return "\n".join(lines).rstrip() + "\n"

    def _entity_lines(self, entity: ExportedEntity) -> Iterator[str]:
        yield from _front_matter(
            {"iri": entity.iri, "type": entity.type, "aliases": entity.aliases}
        )
        yield from (f"# {escape_markdown(entity.label)}", "")
        for text in entity.descriptions:
            yield from (escape_markdown(text), "")
        if edges := self._edges.get(entity.iri):
            yield from ("## Facts", "")
            for edge in edges:
                yield from self._fact_lines(edge)
        if claims := self._claims.get(entity.iri):
            yield from ("", "## Claims", "")
            for claim in claims:
                object_note = f" (about {self._entity_link(claim.object)})" if claim.object else ""
                kind, text = map(escape_markdown, (claim.type, claim.description))
                yield f"- {kind}, {claim.status}{object_note}: {text}"
                yield from self._quote_lines(claim.iri)
        yield from ("", "## Mentions", "", *self._quote_lines(entity.iri, ""))

    def _fact_lines(self, edge: ExportedEdge) -> Iterator[str]:
        object_text = (
            escape_markdown(edge.object) if edge.is_attribute else self._entity_link(edge.object)
        )
        description = (
            f": {escape_markdown(' '.join(edge.descriptions))}" if edge.descriptions else ""
        )
        subject, relation = self._entity_link(edge.subject), escape_markdown(edge.relation)
        yield f"- {subject} — {relation} — {object_text}{description}"
        yield from self._quote_lines(edge.iri)

    def _report_lines(self, report: CommunityReport, members: Iterable[str]) -> Iterator[str]:
        yield from _front_matter({"iri": report.iri, "level": str(report.level)})
        yield from (f"# {escape_markdown(report.title)}", "", escape_markdown(report.summary), "")
        yield from (f"Rating {report.rating:g}: {escape_markdown(report.rating_explanation)}", "")
        for finding in report.findings:
            yield from (
                f"## {escape_markdown(finding.summary)}",
                "",
                escape_markdown(finding.explanation),
                "",
            )
        yield from ("## Members", "", *(f"- {self._entity_link(member)}" for member in members))

    def _quote_lines(self, subject: str, indent: str = "  ") -> Iterator[str]:
        for place in self._places.get(subject, ())[:_QUOTES]:
            yield f"{indent}> {escape_markdown(place.quote)}"
            yield f"{indent}> — {_format_place(place)}"
            yield indent.rstrip()

    def _entity_link(self, iri: str) -> str:
        label = self._labels.get(iri, iri)
        return (
            f"[[{self._files[iri]}|{_link_alias(label)}]]"
            if iri in self._files
            else escape_markdown(label)
        )


def _format_place(place: Evidence) -> str:
    page = f", page {place.page}" if place.page is not None else ""
    return f"{escape_markdown(place.path)}{page}, characters {place.start}–{place.end}"


def _link_alias(label: str) -> str:
    """Return a label usable as link text, where escapes don't work."""
    return " ".join(re.sub(r"[\[\]|#^`<>]+", " ", escape_controls(label)).split())


def _front_matter(values: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    """Yield front matter lines in YAML, with JSON strings and lists as values."""
    yield "---"
    for name, value in values.items():
        if value:
            safe_value = (
                escape_controls(value)
                if isinstance(value, str)
                else list(map(escape_controls, value))
            )
            yield f"{name}: {json.dumps(safe_value, ensure_ascii=False)}"
    yield from ("---", "")
