"""From a model's reply about a chunk to an extraction whose every quote stands in the chunk."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.model import Chunk, ExtractedEntity, ExtractedRelationship, Span
from tgraph.vocabulary import normalise_name

LONGEST_NAME = 300
MIDDLING = 5.0


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


def _as_texts(value: Any) -> Any:
    if isinstance(value, str):
        return re.split(r"[,;\n]", value)
    return [_as_text(item) for item in value] if isinstance(value, list) else []


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


Text = Annotated[str, BeforeValidator(_as_text)]
Texts = Annotated[list[str], BeforeValidator(_as_texts)]
Number = Annotated[float, BeforeValidator(_as_number)]


class _Row(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class EntityRow(_Row):
    name: Text
    type: Text = "concept"
    description: Text = ""
    aliases: Texts = []


class RelationshipRow(_Row):
    subject: Text
    predicate: Text
    object: Text
    description: Text = ""
    keywords: Texts = []
    strength: Number = MIDDLING
    quote: Text


class AttributeRow(_Row):
    subject: Text
    predicate: Text
    value: Text
    datatype: Text = "string"
    quote: Text


class GraphReply(BaseModel):
    """What one passage says."""

    entities: list[EntityRow] = Field(default_factory=list)
    relationships: list[RelationshipRow] = Field(default_factory=list)
    attributes: list[AttributeRow] = Field(default_factory=list)


def read_reply(
    reply: GraphReply, chunk: Chunk, dropped: Counter[str]
) -> tuple[list[ExtractedEntity], list[ExtractedRelationship]]:
    """The usable rows of a reply; what can't be used is counted in ``dropped`` by reason."""
    text = _Located(chunk)
    entities = [e for row in reply.entities if (e := _entity(row, text, dropped))]
    relationships = [r for row in reply.relationships if (r := _relationship(row, text, dropped))]
    relationships += [r for row in reply.attributes if (r := _attribute(row, text, dropped))]
    return entities, relationships


def _entity(row: EntityRow, text: _Located, dropped: Counter[str]) -> ExtractedEntity | None:
    name = _name(row.name)
    if name is None:
        dropped["entity without a name"] += 1
        return None
    aliases = tuple(dict.fromkeys(a for alias in row.aliases if (a := _name(alias)) and a != name))
    kind = (_name(row.type) or "concept").lower()
    return ExtractedEntity(name, kind, one_line(row.description), aliases, text.find(name))


def _relationship(
    row: RelationshipRow, text: _Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate, obj = _name(row.subject), _name(row.predicate), _name(row.object)
    if subject is None or predicate is None or obj is None:
        dropped["relationship without subject, predicate or object"] += 1
        return None
    if normalise_name(subject) == normalise_name(obj):
        dropped["relationship of a thing with itself"] += 1
        return None
    span = text.find(row.quote)
    if span is None:
        dropped["relationship whose quote is not in the chunk"] += 1
        return None
    keywords = tuple(dict.fromkeys(k for word in row.keywords if (k := _name(word))))
    return ExtractedRelationship(
        subject, predicate, obj, one_line(row.description), keywords, _strength(row, dropped), span
    )


def _strength(row: RelationshipRow, dropped: Counter[str]) -> float:
    if math.isnan(row.strength):
        dropped["strength that is not a number (taken as 5)"] += 1
        return MIDDLING
    return min(10.0, max(1.0, row.strength))


def _attribute(
    row: AttributeRow, text: _Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate = _name(row.subject), _name(row.predicate)
    if subject is None or predicate is None or not row.value.strip():
        dropped["attribute without subject, predicate or value"] += 1
        return None
    span = text.find(row.quote)
    if span is None:
        dropped["attribute whose quote is not in the chunk"] += 1
        return None
    value = typed_literal(row.value.strip(), row.datatype.strip())
    if value is None:
        dropped["attribute whose value does not fit its datatype (kept as text)"] += 1
        value = Literal(row.value.strip())
    return ExtractedRelationship(subject, predicate, value, span=span)


def typed_literal(value: str, datatype: str) -> Literal | None:
    """The value as an xsd literal, None where it is not in the datatype's lexical space."""
    name = datatype.removeprefix("xsd:").rpartition("#")[2] or "string"
    if name in ("integer", "decimal") and _GROUPED.fullmatch(value):
        value = value.replace(",", "")
    if name == "boolean":
        value = value.lower()
    form = _FORMS.get(name)
    if form is None or not form.fullmatch(value) or not _exists(name, value):
        return None
    return v.canonical(Literal(value, datatype=v.xsd(name)))


def _exists(name: str, value: str) -> bool:
    """Whether a day that is written well is in the calendar."""
    read: Callable[[str], date] | None = _CALENDAR.get(name)
    try:
        return read is None or bool(read(value))
    except ValueError:
        return False


_DAY = r"\d{4}-\d{2}-\d{2}"
_CALENDAR = {"date": date.fromisoformat, "dateTime": datetime.fromisoformat}
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
_FORMS = {
    name: re.compile(form, re.ASCII | re.DOTALL)
    for name, form in {
        "string": r".*",
        "integer": r"[+-]?\d{1,18}",
        "decimal": r"[+-]?(\d{1,18}(\.\d{0,9})?|\.\d{1,9})",
        "boolean": r"true|false|1|0",
        "date": _DAY,
        "dateTime": _DAY + r"T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?",
        "gYear": r"-?\d{4}",
        "gYearMonth": r"-?\d{4}-(0[1-9]|1[0-2])",
    }.items()
}


class _Located:
    """The text of a chunk in which quotes are looked up."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._folded, self._origin = _fold(chunk.text)

    def find(self, quote: str) -> Span | None:
        """Where the quote stands as whole words, None where it doesn't. White space, letter case,
        Unicode form and the shape of quotation marks, dashes and angle brackets (which a prompt
        may have changed) may differ; the span is the chunk's own text."""
        wanted = _fold(quote)[0].strip(" \"'.…")
        for at in _places(self._folded, wanted):
            after = at + len(wanted)
            if self._is_cut(at) or self._is_cut(after):
                continue
            start, end = self._origin[at], self._origin[after - 1] + 1
            text = self._chunk.text
            if end < len(text) and text[end] in ".!?":
                end += 1
            return Span(self._chunk.start + start, self._chunk.start + end, text[start:end])
        return None

    def _is_cut(self, at: int) -> bool:
        """Whether a boundary there would be inside a character or a word."""
        if not 0 < at < len(self._folded):
            return False
        before, after = self._folded[at - 1], self._folded[at]
        if self._origin[at - 1] == self._origin[at] or unicodedata.combining(after):
            return True
        return all(c.isalnum() and c < _SCRIPTS_WITHOUT_SPACES for c in (before, after))


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


_SCRIPTS_WITHOUT_SPACES = "\u0e00"  # Thai, and beyond it Tibetan to Chinese
_SAME = str.maketrans(
    {
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("–—", "-"),
        "‹": "<",
        "›": ">",
    }
)


def _fold(text: str) -> tuple[str, Sequence[int]]:
    """The text as it is compared, and for each of its characters the one that it comes from."""
    folded: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).casefold().translate(_SAME):
            if part.isspace():
                if folded and folded[-1] == " ":
                    continue
                part = " "
            folded.append(part)
            origin.append(index)
    return "".join(folded), origin


def _name(text: str) -> str | None:
    name = one_line(text).strip('"“”').strip()
    return name if any(map(str.isalnum, name)) and len(name) <= LONGEST_NAME else None


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
