"""JATS: articles of journals, with their authors, sections and references."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lxml import etree

from tgraph.ingest.base import split_words
from tgraph.ingest.blocks import LossList
from tgraph.ingest.html_blocks import LABEL, MARK
from tgraph.ingest.xml_tree import (
    XmlConverter,
    add_element,
    append_text,
    plain_text,
    read_texts,
)
from tgraph.ingest.xml_vocabulary import XmlVocabulary, local_name

_SECTIONS = {
    "abstract": "Abstract",
    "trans-abstract": "Abstract",
    "ack": "Acknowledgments",
    "ref-list": "References",
    **dict.fromkeys(split_words("sec app glossary notes bio fn-group app-group"), ""),
}
_FRONT_TEXTS = split_words("aff author-notes abstract trans-abstract permissions funding-statement")
_FRONTS = split_words("front front-stub")
_CITATIONS = split_words("element-citation nlm-citation")
_NAMES = split_words("person-group name string-name collab etal")
_TITLES = split_words("article-title chapter-title part-title data-title trans-title")
_FIRST_NUMBERS = split_words("volume issue fpage lpage elocation-id")
_UNREAD = frozenset(("", "object-id", "alt-text", "long-desc"))


def is_jats(root: etree._Element) -> bool:
    """Return whether a root element is that of a JATS article."""
    parts = {local_name(child) for child in root}
    return local_name(root) == "article" and not parts.isdisjoint(("front", "body"))


class JatsConverter(XmlConverter):
    """Converts an article: its title and authors, abstract, sections, references."""

    names_values = False

    def __init__(self, losses: LossList, vocabulary: XmlVocabulary) -> None:
        super().__init__(losses, vocabulary)
        self.metadata: dict[str, str] = {}
        self.title = ""

    def convert(self, source: etree._Element, target: etree._Element, level: int) -> None:
        name = local_name(source)
        if name == "xref" and local_name(source.getparent()) == "sup":
            link = add_element(target, "a")
            link.set("role", "doc-noteref")
            self.convert_content(source, link, level)
        elif add := _CONVERTERS.get(name):
            add(self, source, target, level)
        else:
            super().convert(source, target, level)

    def _add_part(self, source: etree._Element, target: etree._Element, level: int) -> None:
        self.convert_content(source, add_element(target, "div"), level + 1)

    def _add_entry(self, source: etree._Element, target: etree._Element, _: int) -> None:
        append_text(target, f" {self._write_citation(source)}")

    def _add_name(self, source: etree._Element, target: etree._Element, _: int) -> None:
        append_text(target, _write_name(source, "surname", "given-names"))

    def _add_affiliation(self, source: etree._Element, target: etree._Element, _: int) -> None:
        add_element(target, "p", " ".join(filter(str.strip, read_texts(source))))

    def _add_item(self, source: etree._Element, target: etree._Element, level: int) -> None:
        item = add_element(target, "li")
        label = source.find("{*}label")
        if label is not None:
            add_element(item, LABEL, plain_text(label))
        for child in source:
            if local_name(child) and child is not label:
                self.convert(child, item, level)

    def _add_front(self, front: etree._Element, target: etree._Element, level: int) -> None:
        """Append title, authors, journal, date, keywords, abstract and rights."""
        title = next((e for e in front.iter("{*}article-title")), None)
        main = title is not None and not self.title
        if title is not None:
            self.convert_content(title, add_element(target, f"h{min(level, 6)}"), level)
            self.title = self.title or plain_text(title)
        authors = list(filter(None, map(_write_contributor, front.iter("{*}contrib"))))
        date = _write_date(front)
        keywords = [plain_text(word) for word in front.iter("{*}kwd")]
        doi = (plain_text(e) for e in front.iter("{*}article-id") if e.get("pub-id-type") == "doi")
        fields = {
            "Authors": ", ".join(authors),
            "Journal": plain_text(next(front.iter("{*}journal-title"), None)),
            "Published": date,
            "DOI": next(doi, ""),
            "Keywords": ", ".join(keywords),
        }
        listed = add_element(target, "dl")
        for key, value in fields.items():
            if value:
                add_element(listed, "dt", key)
                add_element(listed, "dd", value)
        if main:
            values = {"author": fields["Authors"], "date": date, "tags": fields["Keywords"]}
            self.metadata = {key: value for key, value in values.items() if value}
        for element in front.iter():
            if local_name(element) in _FRONT_TEXTS:
                self.convert(element, target, level + 1)

    def _add_section(self, source: etree._Element, target: etree._Element, level: int) -> None:
        name = local_name(source)
        section = add_element(target, "div")
        label, title = source.find("{*}label"), source.find("{*}title")
        lead = f"{plain_text(label)} " if label is not None else ""
        if title is not None or lead or _SECTIONS[name]:
            heading = add_element(section, f"h{min(level, 6)}", lead)
            if title is None:
                append_text(heading, _SECTIONS[name])
            else:
                self.convert_content(title, heading, level)
        holder = add_element(section, "ul") if name == "ref-list" else section
        for child in source:
            if local_name(child) and child is not label and child is not title:
                is_entry = local_name(child) == "ref"
                self.convert(child, holder if is_entry else section, level + 1)

    def _add_figure(self, source: etree._Element, target: etree._Element, level: int) -> None:
        """Append a figure, table or box: label and title as a caption, then its content."""
        figure = add_element(target, "figure")
        label, caption = source.find("{*}label"), source.find("{*}caption")
        title = caption.find("{*}title") if caption is not None else None
        head = add_element(figure, "figcaption", plain_text(label))
        if title is not None:
            append_text(head, ". " if head.text and not head.text.endswith(".") else " ")
            self.convert_content(title, head, level)
        for child in caption if caption is not None else ():
            if local_name(child) and child is not title:
                self.convert(child, figure, level)
        for child in source:
            if local_name(child) == "media":
                add_element(figure, MARK, "attachment")
                self.losses.add("attachment", "index the attached file by itself", marked=True)
            elif child not in (label, caption) and local_name(child) not in _UNREAD:
                self.convert(child, figure, level)

    def _add_listed_entry(self, source: etree._Element, target: etree._Element, level: int) -> None:
        item = add_element(target, "li")
        if (label := plain_text(source.find("{*}label"))) != "":
            add_element(item, LABEL, label)
        for child in source:
            if local_name(child) == "citation-alternatives" and len(child):
                self.convert(child[0], item, level)
            elif local_name(child) in _CITATIONS:
                self.convert(child, item, level)
            elif local_name(child) not in ("", "label"):
                self.convert_content(child, item, level)

    def _write_citation(self, source: etree._Element) -> str:
        """Return an entry whose parts stand apart: Names (year) Title. Source volume(issue):
        pages. Rest."""
        parts = [child for child in source if local_name(child)]
        first = {name: plain_text(source.find(f"{{*}}{name}")) for name in _FIRST_NUMBERS}
        year = plain_text(source.find("{*}year"))
        people = [
            text for p in parts if local_name(p) in _NAMES for text in _write_people(p) if text
        ]
        titles = [plain_text(p) for p in parts if local_name(p) in _TITLES]
        place = plain_text(source.find("{*}source"))
        issue = f"({first['issue']})" if first["issue"] else ""
        pages = "–".join(filter(None, (first["fpage"], first["lpage"]))) or first["elocation-id"]
        numbers = f"{first['volume']}{issue}{': ' if pages else ''}{pages}".strip(": ")
        known = _NAMES | _TITLES | _FIRST_NUMBERS | {"year", "source"}
        rest = [plain_text(p) for p in parts if local_name(p) not in known]
        dated = f"{', '.join(people)} ({year})" if year else ", ".join(people)
        sentences = [dated, *titles, f"{place} {numbers}".strip(), *rest]
        return ". ".join(text.rstrip(".") for text in sentences if text) + "."


_CONVERTERS: dict[str, Callable[[JatsConverter, etree._Element, etree._Element, int], None]] = {
    **dict.fromkeys(_FRONTS, JatsConverter._add_front),
    **dict.fromkeys(_SECTIONS, JatsConverter._add_section),
    **dict.fromkeys(("sub-article", "response", "body", "back"), JatsConverter._add_part),
    **dict.fromkeys(
        ("fig", "table-wrap", "boxed-text", "supplementary-material"), JatsConverter._add_figure
    ),
    **dict.fromkeys(_CITATIONS, JatsConverter._add_entry),
    "ref": JatsConverter._add_listed_entry,
    "name": JatsConverter._add_name,
    "aff": JatsConverter._add_affiliation,
    "list-item": JatsConverter._add_item,
}


def _write_people(element: etree._Element) -> Iterator[str]:
    """Yield the names of an entry: ``Doe J``."""
    if local_name(element) == "person-group":
        for child in element:
            yield from _write_people(child)
    elif local_name(element) == "name":
        yield _write_name(element, "surname", "given-names")
    elif local_name(element) == "etal":
        yield plain_text(element) or "et al."
    elif local_name(element):
        yield plain_text(element)


def _write_name(name: etree._Element, *order: str) -> str:
    """Return a name's parts in an order, then its suffix."""
    parts = (plain_text(name.find(f"{{*}}{part}")) for part in ("prefix", *order, "suffix"))
    return " ".join(filter(None, parts))


def _write_contributor(contributor: etree._Element) -> str:
    """Return an author's name; empty for editors and others."""
    if contributor.get("contrib-type", "author") != "author":
        return ""
    name = next(contributor.iter("{*}name"), None)
    if name is not None:
        return _write_name(name, "given-names", "surname")
    parts = (plain_text(contributor.find(f"{{*}}{part}")) for part in ("string-name", "collab"))
    return next(filter(None, parts), "")


def _write_date(front: etree._Element) -> str:
    """Return the first date of publication as far as it is stated: ``2020-06-17``."""
    for date in front.iter("{*}pub-date"):
        year, month, day = (plain_text(date.find(f"{{*}}{p}")) for p in ("year", "month", "day"))
        if year:
            numbers = [year, *([month.zfill(2)] if month.isdigit() else [])]
            return "-".join([*numbers, *([day.zfill(2)] if month.isdigit() and day else [])])
    return ""
