"""Which elements of an HTML tree a person doesn't see, and which aren't the page's content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from tgraph.ingest.base import split_words
from tgraph.ingest.blocks import count_visible
from tgraph.ingest.unit_counts import count_characters

HIDDEN = "hidden text"
CONTROL = "form control"
CONTENTS = "table of contents"
MENU = "menu"
NOTICE = "cookie notice"
FOOTER = "page footer"
REASONS = {
    HIDDEN: "the page hides the element",
    CONTROL: "a choice that a form offers states nothing",
    CONTENTS: "its entries are the headings",
    MENU: "links to other pages aren't the page's content",
    NOTICE: "a notice of the site isn't the page's content",
    FOOTER: "the site's footer isn't the page's content",
}
_SILENT = split_words(
    "script style noscript template title option datalist head rp param source track"
)
_OPAQUE = split_words("svg canvas iframe object audio video math embed")
"""Elements that stand in the text as a mark or an equation; their text is read apart."""
_CONTROLS = split_words("select button textarea")
_HEADINGS = split_words("h1 h2 h3 h4 h5 h6")
_KEPT = split_words("html body main article h1")
_CONTENT = frozenset(("main", "article"))
_SECTIONS = _CONTENT | split_words("blockquote section figure li td")
_SILENT_ROLES = split_words("doc-backlink doc-pagebreak pagebreak page-list")
_REFERENCE_ROLES = split_words("noteref doc-noteref")
_CONTENTS_ROLES = split_words("doc-toc toc landmarks loi lot")
_MENU_ROLES = split_words("navigation menu menubar search")
_SILENT_CLASSES = split_words("mw-editsection mw-cite-backlink")
_MENU_NAME = re.compile(r"(?:^|[-_ ])(?:menu|nav|navbar|navigation|sidebar|toolbar)(?:$|[-_ ])")
_HELP_NAME = re.compile(
    r"(?:^|[-_ ])(?:breadcrumbs?|skip-?links?|share|social|pagination|pager)(?:$|[-_ ])"
)
_NOTICE_NAME = re.compile(
    r"(?:cookie|gdpr|consent|onetrust|didomi|cybot)[\w-]{0,40}"
    r"(?:banner|notice|bar|popup|consent|dialog|modal|overlay|message|alert|wall|law|sdk|bot)"
)
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))")
_RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")
_SIMPLE_SELECTOR = re.compile(r"([a-z][a-z0-9]*)?([.#])([\w-]+)$")
_BACKLINKS = frozenset("↑↩^⤴⬆") | {"↩︎", "↩\ufe0f"}
_LEAST_LINKS = 3
_MENU_SHARE = 0.7
_LIST_SHARE = 0.95
_LONGEST_ITEM = 40
_LONGEST_NOTICE = 3000


@dataclass(slots=True)
class ContentSelection:
    """What of a tree isn't read: elements with the kind of loss, empty for what nobody sees."""

    left_out: dict[etree._Element, str] = field(default_factory=dict)
    note_ids: set[str] = field(default_factory=set)
    """Identifiers of elements that references of notes lead to."""

    def count_texts(self, root: etree._Element) -> tuple[Counter[str], Counter[str]]:
        """Return the characters of the visible text nodes below an element, and those of them that
        are left out with a reason."""
        kinds: list[str] = []
        kept: list[str] = []
        left: list[str] = []
        walk = etree.iterwalk(root, events=("start", "end"))
        passed = None
        for event, element in walk:
            if event == "start":
                kind = self.left_out.get(element)
                if element.tag in _OPAQUE or kind == "":
                    passed = element
                    walk.skip_subtree()
                    continue
                kinds.append(kind or (kinds[-1] if kinds else ""))
                (left if kinds[-1] else kept).append(element.text or "")
            else:
                if element is not passed:
                    kinds.pop()
                if element is not root:
                    (left if kinds and kinds[-1] else kept).append(element.tail or "")
        left_counts = count_characters(left)
        return count_characters(kept) + left_counts, left_counts


def select_content(root: etree._Element, *, with_furniture: bool = False) -> ContentSelection:
    """Return the selection of what is read of a tree.

    Menus, site footers and cookie notices are kept ``with_furniture``."""
    selection = ContentSelection()
    hiding = _read_hiding_rules(root)
    furniture = _Furniture(root, selection) if not with_furniture else None
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        if event == "start":
            kind = _classify_element(element, hiding)
            if kind is None and furniture is not None:
                kind = furniture.classify_element(element)
            if kind is not None:
                selection.left_out[element] = kind
                walk.skip_subtree()
                if furniture is not None:
                    furniture.enter_element(element)
                continue
            if furniture is not None:
                furniture.enter_element(element)
            if target := _find_note_target(element):
                selection.note_ids.add(target)
        elif furniture is not None:
            furniture.leave_element(element)
    return selection


def element_roles(element: etree._Element) -> frozenset[str]:
    """Return the roles of ARIA and the types of EPUB that an element states."""
    if not element.attrib:
        return frozenset()
    types = element.get("epub:type") or element.get("{http://www.idpf.org/2007/ops}type") or ""
    return split_words(f"{element.get('role') or ''} {types}")


def is_note_reference(element: etree._Element) -> bool:
    """Return whether an element is a link to a note."""
    if element.tag != "a" or "#" not in (element.get("href") or ""):
        return False
    if not element_roles(element).isdisjoint(_REFERENCE_ROLES):
        return True
    parent = element.getparent()
    is_raised = parent is not None and parent.tag == "sup"
    return is_raised or any(child.tag == "sup" for child in element)


def _find_note_target(element: etree._Element) -> str:
    """Return the identifier of the note that an element refers to, behind the name of the note's
    file where that is another file; empty for other elements."""
    if not is_note_reference(element):
        return ""
    path, _, name = str(element.get("href")).partition("#")
    return f"{path.rpartition('/')[2]}#{name}" if path else name


def _classify_element(element: etree._Element, hiding: frozenset[str]) -> str | None:
    """Return the kind of loss of an element that isn't read whatever the page; None for others."""
    tag = element.tag
    if tag in _SILENT:
        return None if tag == "head" else ""
    if tag in _CONTROLS:
        return None if tag == "button" and _is_heading(element) else CONTROL
    if not element.attrib or tag in ("html", "body"):
        return None
    if _is_hidden(element, hiding):
        return HIDDEN
    roles = element_roles(element)
    classes = split_words(element.get("class") or "")
    if not roles.isdisjoint(_SILENT_ROLES) or not classes.isdisjoint(_SILENT_CLASSES):
        return ""
    if not roles.isdisjoint(_CONTENTS_ROLES):
        return CONTENTS
    if tag == "a" and "".join(element.itertext()).strip() in _BACKLINKS:
        return ""
    return None


def _is_heading(button: etree._Element) -> bool:
    """Return whether a button is all there is to a heading, whose section it opens and closes."""
    heading = next(button.iterancestors(*_HEADINGS), None)
    if heading is None:
        return False
    alone = "".join(heading.itertext()).split() == "".join(button.itertext()).split()
    return alone and bool("".join(button.itertext()).strip())


def _is_hidden(element: etree._Element, hiding: frozenset[str]) -> bool:
    if "hidden" in element.attrib or element.get("aria-hidden") == "true":
        return True
    if _HIDING.search((element.get("style") or "").lower()):
        return True
    if not hiding:
        return False
    names = [f".{name}" for name in (element.get("class") or "").split()]
    names += [f"#{element.get('id')}"] if element.get("id") else []
    return any(name in hiding or f"{element.tag}{name}" in hiding for name in names)


def _read_hiding_rules(root: etree._Element) -> frozenset[str]:
    """Return the simple selectors (``.class``, ``#id``, ``tag.class``) that the page's style sheets
    hide on screens."""
    selectors = set()
    for style in root.iter("style"):
        sheet = re.sub(r"/\*.*?\*/", "", style.text or "", flags=re.S)
        depth = at = 0
        for match in re.finditer(r"[{}]", sheet):  # rules of a medium (print) stand one deeper
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                rule = _RULE.fullmatch(sheet[at : match.end()].strip())
                if rule and _HIDING.search(rule[2].lower()):
                    selectors |= set(map(str.strip, rule[1].split(",")))
                at = match.end()
    return frozenset(filter(_SIMPLE_SELECTOR.match, selectors))


class _Furniture:
    """Recognises what of a page belongs to its site: menus, footers, notices about cookies."""

    def __init__(self, root: etree._Element, selection: ContentSelection) -> None:
        self._selection = selection
        self._has_main = _is_inside(root, _CONTENT)
        self._has_title = _is_inside(root, frozenset(("h1",)))
        self._inside: Counter[str] = Counter()
        self._measures: list[_Measure] = []
        self._total = count_visible("".join(root.itertext()))
        self._title_passed = False

    def classify_element(self, element: etree._Element) -> str | None:
        tag = element.tag
        if tag in _KEPT:
            return None
        roles = element_roles(element)
        if tag in ("nav", "search") or not roles.isdisjoint(_MENU_ROLES):
            return MENU
        in_section = any(self._inside[name] for name in _SECTIONS)
        if (tag == "footer" and not in_section) or "contentinfo" in roles:
            return FOOTER
        return None

    def enter_element(self, element: etree._Element) -> None:
        self._inside[element.tag] += 1
        self._title_passed |= element.tag == "h1"
        measure = _Measure()
        measure.characters = count_visible(element.text or "")
        self._measures.append(measure)

    def leave_element(self, element: etree._Element) -> None:
        """Leave an element, and mark the element where it turns out to be a menu or a notice."""
        self._inside[element.tag] -= 1
        measure = self._measures.pop()
        if element.tag == "a":
            measure.linked, measure.links = measure.characters, 1
        measure.holds_content |= element.tag in _KEPT
        if element not in self._selection.left_out and not measure.holds_content:
            if self._is_notice(element, measure):
                self._selection.left_out[element] = NOTICE
            elif self._is_menu(element, measure):
                self._selection.left_out[element] = MENU
        if self._measures:
            self._measures[-1].add_inner(measure)
            self._measures[-1].characters += count_visible(element.tail or "")

    def _is_notice(self, element: etree._Element, measure: _Measure) -> bool:
        is_small = measure.characters <= min(_LONGEST_NOTICE, self._total // 2)
        is_content = self._inside["main"] or self._inside["article"]
        return is_small and not is_content and bool(_NOTICE_NAME.search(_names(element)))

    def _is_menu(self, element: etree._Element, measure: _Measure) -> bool:
        if measure.links < _LEAST_LINKS or not measure.characters:
            return False
        share = measure.linked / measure.characters
        is_content = self._inside["main"] or self._inside["article"]
        is_outside = not is_content or self._inside["header"] > 0
        names = _names(element)
        is_named = _HELP_NAME.search(names) or (is_outside and _MENU_NAME.search(names))
        if is_named and share >= _MENU_SHARE:
            return True
        if element.tag not in ("ul", "ol") or share < _LIST_SHARE:
            return False
        is_before = self._has_title and not self._title_passed
        is_short = measure.characters <= _LONGEST_ITEM * measure.links
        return is_outside and is_short and (self._has_main or is_before)


@dataclass(slots=True)
class _Measure:
    """How many characters an element has, how many of them in links, and how many links."""

    characters: int = 0
    linked: int = 0
    links: int = 0
    holds_content: bool = False

    def add_inner(self, inner: _Measure) -> None:
        self.characters += inner.characters
        self.linked += inner.linked
        self.links += inner.links
        self.holds_content |= inner.holds_content


def _names(element: etree._Element) -> str:
    """Return class and identifier of an element in lower case."""
    return f"{element.get('class') or ''} {element.get('id') or ''}".lower().strip()


def _is_inside(root: etree._Element, tags: frozenset[str]) -> bool:
    return next(_descendants(root, tags), None) is not None


def _descendants(root: etree._Element, tags: frozenset[str]) -> Iterator[etree._Element]:
    return (element for element in root.iter(*tags) if element is not root)
