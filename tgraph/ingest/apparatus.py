"""What surrounds a text and isn't it: bibliographies, contents, menus, notices, licences.

They are told by their form: an entry of a bibliography has initials, a year in brackets, pages; a
menu is links and the labels between them; contents end in dots and a page's number; a notice asks
the reader of a web page to accept cookies or to subscribe. Names of sections only lower how much of
it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tgraph.model import Segment, SegmentKind
from tgraph.resources import name_list

_TEXT = frozenset(("prose", "item", "display", "row"))
_SITE_SECTIONS = frozenset(name_list("apparatus", "site"))
_REFERENCE_SECTIONS = frozenset(name_list("apparatus", "references"))
_CONTENTS_SECTIONS = frozenset(name_list("apparatus", "contents"))
_LEAST_RUN = 3
_LEAST_LEAD = 3
_LONGEST_GAP = 6
_LONGEST_ENTRY = 600
_LONGEST_LABEL = 6
_MOSTLY, _PARTLY = 0.8, 0.3
_STOPS = (".", "!", "?", "…", "。", "！", "？", "؟")
# Where an entry of a bibliography begins that is set as one paragraph: a number, or initials.
_ENTRY = re.compile(
    r"(?:(?<=[.)\]] )|^)"
    r"(?:\d{1,3}\. ?(?=[^\W\d_])|(?:[A-Z]\. ?){1,3}(?:\w{1,3}\.? )?[A-Z][^\W\d_]+[, ])"
)
_MOST_NOTICES = 0.2
_NOTICE = re.compile(
    r"(?i)\b(?:uses?|using|accept(?:ing)?|reject|manage|allow) (?:(?:all|our|necessary|optional|of"
    r"|the use of|essential|third-party) ){0,2}cookies\b|\bcookies? (?:policy|settings|preferences"
    r"|notice|consent)\b|\b(?:verwende[nt]|nutz(?:t|en)|akzeptieren) (?:\w+ )?cookies\b"
    r"|\b(?:utilis(?:e|ons)|accepter|utiliza(?:mos)?|aceptar) (?:\w+ ){0,2}cookies\b"
    r"|\b(?:enable|turn on|requires?) javascript\b|\bjavascript (?:is|must be) "
    r"|\bbrowser (?:does not|doesn't|is not) support|\b(?:sign up|subscribe|join) (?:\w+ ){0,3}"
    r"(?:newsletters?|mailing list)\b|\b(?:share|follow us|like us) on (?:facebook|twitter|x"
    r"|linkedin|whatsapp)\b|\bskip to (?:main )?(?:content|navigation|article)\b"
    r"|\bweb crawl data from|^the wayback machine\b"
)
_OF_NOTICES = (
    *("cookie", "javascript", "browser", "newsletter", "mailing list", "share on", "follow us"),
    *("like us", "skip to", "web crawl", "wayback machine"),
)
"""One of these is in whatever ``_NOTICE`` finds."""
_LONGEST_WEB_NOTICE = 600
# A line by which a blog files an entry, and a line that is a time: of a comment, of a version.
_FILING = re.compile(
    r"(?i)\b(?:tags?|tagged|categor(?:y|ies)|filed under|posted (?:in|by|on)|permalink|trackback"
    r"|(?:\d+|no) comments?|leave a (?:comment|reply))\b"
)
_LONGEST_FILING = 300
_TIME = re.compile(r"\d{1,2}:\d\d")
_OF_TIMES = re.compile(
    r"(?i)(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|jan(?:uary)?|feb(?:ruary)?"
    r"|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?|at|on|[ap]\.?m\.?|utc|gmt|[ecmp][sd]t|\(?[\d.,]+ ?[kmg]i?b\)?|[kmg]i?b\)?"
    r"|\[?v\d+\]?|\(?\d[\d:./–-]*(?:st|nd|rd|th|[ap]m)?)[.,]?"
)
_LINE_LINK = re.compile(r"\]\(\S")
_PROMPT = re.compile(r"\s*(?:\$|>{1,3}|#|//|/\*|@|\w+:) ?")
_SYMBOL = re.compile(r"[={}<>|\\/$#_\[\]+*~^`@]")
_PLAIN_WORD = re.compile(
    r"[(\"'“‘]{0,3}[^\W\d_]++(?:['’-][^\W\d_]++)*+[)\"'”’]{0,3}[.,;:!?]{0,3}[)\"'”’]{0,3}"
)
_LEAST_RUNNING, _LEAST_PLAIN, _MOST_SYMBOLS = 12, 0.75, 0.01
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
        r"|\b(?:[Ii]bid|[Oo]p\. cit|[Ll]oc\. cit|[Ee]bd)\.|\b(?:[Ss]ee|cited in) nn?\. \d"
    ),
    re.compile(r"\b(?:Press|Verlag|Publishers?|Proceedings|Proc\.|Journal|Univ\.|Books)\b"),
    re.compile(r"^\^|[\"“][^\"”]{8,200}[.,]?[\"”]"),
)
_BIBLIOGRAPHIC = _SIGNS[1:-1]
# An entry that begins with its author: initials and a name, a name and initials, or a dash.
_AUTHOR = re.compile(
    r"(?:\[?\d{1,3}[.\]]\s*)?"
    r"(?:(?:[A-Z]\.[ -]?){1,3} ?[A-Z][^\W\d_]|[A-Z][^\W\d_]{1,30}, [A-Z]\.|[_—–-]+, )"
)
_NUMBERED = re.compile(r"[\[(]?\d{1,3}[.\])]|\d{1,3} [A-Z]|[A-Z][^\W\d_]{1,30}, [A-Z][^\W\d_]+ ")
_NOTE_NUMBER = re.compile(r"[\[(]?(\d{1,3})[.\])]\s?\D")
_LEAST_NOTES, _NOTE_GAP = 6, 3
_BESIDE, _LONGEST_LINE = 3, 90
"""Segments before and after one that may be in a list, and the characters of a part of an entry."""
_CONTENTS = re.compile(
    r"(?<![.·…])(?<![.·…] )(?:(?:\. ?){4,}+|(?:· ?){4,}+|(?:… ?){2,}+)[\divxlc]{1,6}$"
)
# What may stand around a section's name: "(up) References for § 5".
_BEFORE_NAME = re.compile(r"^\W*\([^()]{1,20}\) ")
_NAMED_FOR = re.compile(r" (?:for|to|of|in) (?:§|[Cc]hapter|[Ss]ection|[Pp]art|this).*$")
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


def recognise_apparatus(found: Sequence[Segment], linked: Sequence[float]) -> Iterator[Segment]:
    """Yield segments, marking a text's apparatus by kind; ``linked`` has for each segment the share
    of the text that is links."""
    notices = _find_notices(found)
    at = 0
    for _, group in groupby(found, lambda segment: segment.headings):
        section = list(group)
        places = range(at, at + len(section))
        kinds: list[SegmentKind | None] = ["navigation" if k in notices else None for k in places]
        for segment in _mark_section(section, linked[at : places.stop], kinds):
            yield from _split_references(segment)
        at += len(section)


def is_address(text: str) -> bool:
    """Return whether a text is purely a Web address."""
    return text.startswith(("http://", "https://", "www.")) and not any(map(str.isspace, text))


def is_link_list(text: str) -> bool:
    """Return whether most lines of a text are Markdown's links."""
    lines = [line for line in text.splitlines() if line.strip()]
    return sum(_LINE_LINK.search(line) is not None for line in lines) > len(lines) / 2


def is_running_text(text: str) -> bool:
    """Return whether a block that stands as code is sentences: words, few symbols, no prompt."""
    words = text.split()
    if len(words) < _LEAST_RUNNING or not any(word.endswith(_STOPS) for word in words):
        return False
    if any(map(_PROMPT.match, text.splitlines())):
        return False
    plain = sum(_PLAIN_WORD.fullmatch(word) is not None for word in words)
    return plain >= _LEAST_PLAIN * len(words) and len(_SYMBOL.findall(text)) <= _MOST_SYMBOLS * len(
        text
    )


def _find_notices(found: Sequence[Segment]) -> set[int]:
    """Return the places of notices to the reader of a web page, unless the page is about such."""
    notices = {
        k for k, segment in enumerate(found) if segment.kind in _TEXT and _is_notice(segment)
    }
    length = sum(len(found[k].text) for k in notices)
    return notices if length <= _MOST_NOTICES * sum(len(each.text) for each in found) else set()


def _is_notice(segment: Segment) -> bool:
    text = segment.text
    if len(text) > _LONGEST_WEB_NOTICE:
        return False
    lowered = text.lower()
    return any(map(lowered.__contains__, _OF_NOTICES)) and _NOTICE.search(text) is not None


def _mark_section(
    section: Sequence[Segment], linked: Sequence[float], kinds: list[SegmentKind | None]
) -> Iterator[Segment]:
    kinds[:] = [kind or _single_kind(each) for kind, each in zip(kinds, section, strict=True)]
    _fill_licences(section, kinds)
    _mark_references(section, linked, kinds)
    _mark_menus(section, linked, kinds)
    for segment, kind in zip(section, kinds, strict=True):
        yield segment if kind is None or kind == segment.kind else replace(segment, kind=kind)


def _single_kind(segment: Segment) -> SegmentKind | None:
    """Return the segment's apparatus kind, judged alone; None for ordinary text."""
    if segment.kind not in _TEXT:
        return None
    if _CONTENTS.search(segment.text[-80:]) or _is_time(segment.text):
        return "navigation"
    return "licence" if _is_licence(segment.text) else None


def _is_time(text: str) -> bool:
    """Return whether a text is purely a time of day with its date."""
    return _TIME.search(text) is not None and all(map(_OF_TIMES.fullmatch, text.split()))


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


def _mark_references(
    section: Sequence[Segment], linked: Sequence[float], kinds: list[SegmentKind | None]
) -> None:
    """Mark bibliography entries, recognised by many reference signs, or fewer signs among many
    similar entries; lines that are links ("Google Scholar") stand between entries."""
    has_heading = bool(section) and _is_named(section[0], _REFERENCE_SECTIONS)
    free = [
        k
        for k, segment in enumerate(section)
        if segment.kind in _TEXT and kinds[k] is None and linked[k] < _MOSTLY
    ]
    signs = {k: _count_signs(section[k].text) for k in free}
    likely = sum(count > 2 for count in signs.values())
    dense = likely >= _LEAST_RUN and likely > 0.5 * len(signs)
    least = 2 if has_heading else 3 if dense else 5
    for k, count in signs.items():
        if count >= least:
            kinds[k] = "reference"
    entries = [_is_entry(section[k].text, signs[k]) for k in free]
    for at, k in enumerate(free):
        around = entries[max(0, at - _BESIDE) : at + _BESIDE + 1]
        may_be = entries[at] or signs[k] > 0 or len(section[k].text) <= _LONGEST_LINE
        if sum(around) > _BESIDE and may_be:
            kinds[k] = "reference"
    for k in _find_notes(section, free, signs, 0.0 if has_heading else 0.5):
        text = section[k].text
        if signs[k] or len(text) <= _LONGEST_LINE or _count_signs(text[:_LONGEST_ENTRY]) > 2:
            kinds[k] = "reference"
    for k, share in enumerate(linked):
        if k and kinds[k] is None and kinds[k - 1] == "reference" and share >= _MOSTLY:
            kinds[k] = "reference"


def _find_notes(
    section: Sequence[Segment], free: Sequence[int], signs: dict[int, int], least: float
) -> set[int]:
    """Return the places of notes: a run of list items or rising numbers, of which the share
    ``least`` cites."""
    notes: set[int] = set()
    run: list[int] = []
    last = 0
    for k in free:
        match = _NOTE_NUMBER.match(section[k].text)
        if match is None and section[k].kind != "item":
            continue
        number = int(match[1]) if match else last + 1
        if not 0 < number - last <= _NOTE_GAP:
            notes.update(_citing_run(run, signs, least))
            run = []
        run.append(k)
        last = number
    return notes.union(_citing_run(run, signs, least))


def _citing_run(run: Sequence[int], signs: dict[int, int], least: float) -> Sequence[int]:
    cites = sum(signs[k] > 1 for k in run)
    return run if len(run) >= _LEAST_NOTES and cites >= least * len(run) else ()


def _is_entry(text: str, signs: int) -> bool:
    """Return whether a text begins as an entry of a bibliography: with an author, or with a number
    or a full name where two signs follow."""
    if _AUTHOR.match(text):
        return True
    numbered = _NUMBERED.match(text) is not None
    return numbered and signs > 1 and any(sign.search(text) for sign in _BIBLIOGRAPHIC)


def _count_signs(text: str) -> int:
    if len(text) > _LONGEST_ENTRY or not any(map(str.isdigit, text)):
        return 0
    return sum(sign.search(text) is not None for sign in _SIGNS)


def _split_references(segment: Segment) -> Iterator[Segment]:
    """Yield a segment, apart from it the bibliography that ends it as part of its paragraph."""
    starts = [match.start() for match in _ENTRY.finditer(segment.text)]
    if segment.kind not in ("prose", "item") or len(starts) < _LEAST_RUN:
        yield segment
        return
    ends = [*starts[1:], len(segment.text)]
    spans = list(zip(starts, ends, strict=True))
    likely = [_count_signs(segment.text[start:end]) > 1 for start, end in spans]
    first = next((k for k in range(len(likely)) if _is_mostly(likely[k:])), None)
    if first is None or len(likely) - first < _LEAST_RUN:
        yield segment
        return
    at = starts[first]
    if segment.text[:at].strip():
        before = segment.text[:at].rstrip()
        yield segment.clip(0, len(before))
        yield replace(segment.clip(at, len(segment.text)), kind="reference")
    else:
        yield replace(segment, kind="reference")


def _is_mostly(likely: Sequence[bool]) -> bool:
    return likely[0] and sum(likely) >= 0.6 * len(likely)


def _mark_menus(
    section: Sequence[Segment], linked: Sequence[float], kinds: list[SegmentKind | None]
) -> None:
    """Mark runs of links not introduced by a sentence, with the labels between the links."""
    contents = bool(section) and _is_named(section[0], _CONTENTS_SECTIONS)
    site = bool(section) and _is_named(section[0], _SITE_SECTIONS)
    links = {
        k
        for k, segment in enumerate(section)
        if segment.kind in _TEXT
        and linked[k] >= (_PARTLY if site else _MOSTLY)
        and (contents or not _is_led(segment))
    }
    for k, (segment, share) in enumerate(zip(section, linked, strict=True)):
        if kinds[k] is None and share >= _PARTLY and _is_filing(segment):
            kinds[k] = "navigation"
    if contents or site:
        for k in links:
            kinds[k] = "navigation"
    is_menu: Callable[[int], bool] = lambda k: k in links or _is_label(section[k])  # noqa: E731
    for inside, group in groupby(range(len(section)), is_menu):
        places = list(group)
        run = [k for k in places if k in links]
        if not inside or len(run) < _LEAST_RUN:
            continue
        between = places[run[0] - places[0] : run[-1] - places[0] + 1]
        for k in between if 2 * len(run) >= len(between) else run:
            kinds[k] = kinds[k] or "navigation"


def _is_filing(segment: Segment) -> bool:
    text = segment.text
    return (
        segment.kind in _TEXT
        and len(text) <= _LONGEST_FILING
        and not text.endswith(_STOPS)
        and _FILING.search(text) is not None
    )


def _is_label(segment: Segment) -> bool:
    """Return whether a segment is a few words that state nothing."""
    text = segment.text
    return (
        segment.kind in ("prose", "item", "display")
        and not text.endswith(_STOPS)
        and len(text.split()) <= _LONGEST_LABEL
        and not _is_led(segment)
    )


def _is_led(segment: Segment) -> bool:
    lead = segment.lead[0] if segment.lead else ""
    is_contents_title = lead.strip(" :：").lower() in _CONTENTS_SECTIONS
    return lead.endswith((":", "：")) and not is_contents_title and len(lead.split()) >= _LEAST_LEAD


def _is_named(segment: Segment, names: frozenset[str]) -> bool:
    return any(
        _NAMED_FOR.sub("", _BEFORE_NAME.sub("", heading)).strip(" :.0123456789").lower() in names
        for heading in segment.headings
    )
