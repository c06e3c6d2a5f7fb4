"""What surrounds a text and isn't it: bibliographies, contents, menus, licences.

They are told by their form: an entry of a bibliography has initials, a year in brackets, pages; a
menu is nothing but links; contents end in dots and a page's number. Names of sections only lower
how much of it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tgraph.model import Segment, SegmentKind
from tgraph.resources import name_list

_TEXT = frozenset(("prose", "item", "display", "row"))
_REFERENCE_SECTIONS = frozenset(name_list("apparatus", "references"))
_CONTENTS_SECTIONS = frozenset(name_list("apparatus", "contents"))
_LEAST_RUN = 3
_LEAST_LEAD = 3
_LONGEST_GAP = 6
_LONGEST_ENTRY = 600
# Each sign counts once. None of them backtracks over more than a few characters.
_SIGNS = (
    re.compile(r"\(?\b(?:1[5-9]|20)\d\d[a-z]?\)?[.,:;)]"),
    re.compile(r"\b[^\W\d_]{2,30}, (?:[^\W\d_]\.[ -]?){1,4}"),
    re.compile(r"(?:^|[\s(])(?:[A-Z]\.[ -]?){1,3} ?[A-Z][^\W\d_]{1,30}(?:,|\.| and| &)"),
    re.compile(r"\b(?:doi|DOI|ISBN|ISSN|arXiv|PMID|OCLC)\b|https?://"),
    re.compile(
        r"\bpp?\. ?\d|\b[Vv]ol\. ?\d|\b[Nn]o\. ?\d|\b\d{1,4} ?\(\d{1,3}\) ?[:,]|\d[–-]\d{2,4}\.?$"
    ),
    re.compile(
        r"\b(?:Retrieved|Accessed|Archived|Abgerufen|Consulté)\b|\bet al\b|\bIn: |\b[Ee]ds?\.\B"
    ),
    re.compile(r"\b(?:Press|Verlag|Publishers?|Proceedings|Proc\.|Journal|Univ\.|Books)\b"),
    re.compile(r"^\^|[\"“][^\"”]{8,200}[.,]?[\"”]"),
)
_CONTENTS = re.compile(r"(?:(?<!\.)(?<!\. )(?:\. ?){4,}+|(?:· ?){4,}+|(?:… ?){2,}+)[\divxlc]{1,6}$")
_LICENCE = re.compile(
    r"(?i)permission is hereby granted|without (?:any )?warrant(?:y|ies)|redistribution and use in"
    r"|all rights reserved|licensed under the (?:terms|apache|mit|bsd|gnu|creative)"
    r"|merchantability|project gutenberg(?:™|-tm)? (?:license|electronic|literary)"
    r"|subject to the following conditions|(?:©|\bcopyright \(c\)|\bcopyright ©) ?(?:1[5-9]|20)\d\d"
)
_OF_LICENCES = (
    *("permission is hereby", "without warrant", "without any warrant", "redistribution and use"),
    *("all rights reserved", "licensed under the", "merchantability", "project gutenberg"),
    *("subject to the following", "©", "copyright"),
)
"""One of these is in whatever ``_LICENCE`` finds; it takes a hundredth of the time."""
_PUBLIC = re.compile(
    r"(?i)\b(?:project gutenberg(?:™|-tm)?|creative commons|apache|mit|bsd|mozilla|eclipse|gnu"
    r"|european union|[al]?gpl|cc[ -]by[a-z-]*)\b[^.\n]{0,60}\blicen[cs]e"
    r"|project gutenberg(?:™|-tm)"
)
_LONGEST_NOTICE = 120
_LEGAL = re.compile(
    r"(?i)\b(?:licen[cs]es?|liable|liability|damages|copyright|warrant\w{1,4}|terms)\b"
)


def recognise_apparatus(found: Sequence[Segment], linked: Sequence[bool]) -> Iterator[Segment]:
    """Yield segments, marking a text's apparatus by kind; ``linked`` states for each segment
    whether all text is a link."""
    at = 0
    for _, group in groupby(found, lambda segment: segment.headings):
        section = list(group)
        yield from _mark_section(section, linked[at : at + len(section)])
        at += len(section)


def is_address(text: str) -> bool:
    """Return whether a text is purely a Web address."""
    return text.startswith(("http://", "https://", "www.")) and not any(map(str.isspace, text))


def _mark_section(section: Sequence[Segment], linked: Sequence[bool]) -> Iterator[Segment]:
    kinds = [_single_kind(segment) for segment in section]
    _fill_licences(section, kinds)
    _mark_references(section, kinds)
    _mark_menus(section, linked, kinds)
    for segment, kind in zip(section, kinds, strict=True):
        yield segment if kind is None or kind == segment.kind else replace(segment, kind=kind)


def _single_kind(segment: Segment) -> SegmentKind | None:
    """Return the segment's apparatus kind, judged alone; None for ordinary text."""
    if segment.kind not in _TEXT:
        return None
    if _CONTENTS.search(segment.text[-80:]):
        return "navigation"
    return "licence" if _is_licence(segment.text) else None


def capitals_of(text: str) -> float:
    """Return the share of capitals among a text's letters."""
    return sum(map(str.isupper, text)) / max(1, sum(map(str.isalpha, text)))


def _is_licence(text: str) -> bool:
    lowered = text.lower()
    may_be = any(map(lowered.__contains__, _OF_LICENCES))
    signs = len(set(map(str.lower, _LICENCE.findall(text)))) if may_be else 0
    if not signs:
        shouted = len(text) > 200 and capitals_of(text) > 0.6
        return shouted and len(_LEGAL.findall(text)) > 1
    legal = len(_LEGAL.findall(text))
    is_public = legal > 1 and _PUBLIC.search(text) is not None
    return signs > 1 or legal > 2 or len(text) < _LONGEST_NOTICE or is_public


def _fill_licences(section: Sequence[Segment], kinds: list[SegmentKind | None]) -> None:
    """Mark paragraphs between licence paragraphs as licence.

    For a public licence, recognised by name, paragraphs in legal language are included as well,
    as far as the licence name extends."""
    sure = {k for k, kind in enumerate(kinds) if kind == "licence"}
    if not sure:
        return
    ends = places = sure
    naming_places = {k for k, s in enumerate(section) if s.kind in _TEXT and _PUBLIC.search(s.text)}
    if naming_places:
        ends = sure | naming_places
        law = {k for k, s in enumerate(section) if s.kind in _TEXT and _LEGAL.search(s.text)}
        places = ends | law
    if len(places) < _LEAST_RUN:
        return
    for run in _close_together(sorted(places)):
        if not sure.isdisjoint(run):
            run_ends = [k for k in run if k in ends]
            for k in range(run_ends[0], run_ends[-1] + 1):
                if section[k].kind in _TEXT:
                    kinds[k] = "licence"


def _close_together(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield runs of places, splitting at gaps too long for a licence."""
    run: list[int] = []
    for place in places:
        if run and place - run[-1] > _LONGEST_GAP:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _mark_references(section: Sequence[Segment], kinds: list[SegmentKind | None]) -> None:
    """Mark bibliography entries, recognised by many reference signs, or fewer signs among many
    similar entries."""
    has_heading = bool(section) and _is_named(section[0], _REFERENCE_SECTIONS)
    free = [k for k, segment in enumerate(section) if segment.kind in _TEXT and kinds[k] is None]
    signs = {k: _count_signs(section[k].text) for k in free}
    likely = sum(count > 2 for count in signs.values())
    dense = likely >= _LEAST_RUN and likely > 0.5 * len(signs)
    least = 2 if has_heading else 3 if dense else 5
    for k, count in signs.items():
        if count >= least:
            kinds[k] = "reference"


def _count_signs(text: str) -> int:
    if len(text) > _LONGEST_ENTRY or not any(map(str.isdigit, text)):
        return 0
    return sum(sign.search(text) is not None for sign in _SIGNS)


def _mark_menus(
    section: Sequence[Segment], linked: Sequence[bool], kinds: list[SegmentKind | None]
) -> None:
    """Mark runs of links not introduced by a sentence."""
    contents = bool(section) and _is_named(section[0], _CONTENTS_SECTIONS)
    is_link: Callable[[int], bool] = lambda k: (  # noqa: E731
        linked[k] and section[k].kind in _TEXT and (contents or not _is_led(section[k]))
    )
    for run, places in groupby(range(len(section)), is_link):
        place_list = list(places)
        if run and (contents or len(place_list) >= _LEAST_RUN):
            for k in place_list:
                kinds[k] = "navigation"


def _is_led(segment: Segment) -> bool:
    lead = segment.lead[0] if segment.lead else ""
    is_contents_title = lead.strip(" :：").lower() in _CONTENTS_SECTIONS
    return lead.endswith((":", "：")) and not is_contents_title and len(lead.split()) >= _LEAST_LEAD


def _is_named(segment: Segment, names: frozenset[str]) -> bool:
    return any(heading.strip(" :.0123456789").lower() in names for heading in segment.headings)
