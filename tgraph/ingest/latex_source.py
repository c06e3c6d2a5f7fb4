"""LaTeX before it is parsed: comments, verbatim text and definitions of commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LISTING = "tgraphlisting"
"""The command that stands for verbatim text: its argument is the number of the listing."""

_VERBATIM = re.compile(
    r"\\begin\{(verbatim\*?|Verbatim|lstlisting|minted|comment|filecontents\*?)\}"
    r"(.*?)\\end\{\1\}|(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*(?!\s*\n))?",
    re.S,
)
_OPTIONS = re.compile(r"\s*+(?:\[[^\]]*+\])?+(?:\{[^}]*+\})?+[ \t]*+\n?")
_DEFINITION = re.compile(
    r"\\(?:(?:re|provide)?newcommand|providecommand|DeclareRobustCommand|DeclareMathOperator)\*?\s*"
    r"(?:\{\s*\\([A-Za-z@]+)\s*\}|\\([A-Za-z@]+))\s*(?:\[(\d)\])?\s*(\[[^\]]*\])?\s*(?=\{)"
    r"|\\def\s*\\([A-Za-z@]+)\s*((?:#\d)*)(?=\{)"
)
_COMMAND = re.compile(r"\\([A-Za-z@]+)[ \t]*|\\.", re.S)
_ASSIGNMENT = re.compile(
    r"\\(?:looseness|tolerance|emergencystretch|hbadness|vbadness|parindent|parskip|baselineskip"
    r"|hoffset|voffset|topmargin|textwidth|textheight|oddsidemargin|evensidemargin|tabcolsep"
    r"|clubpenalty|widowpenalty|vskip|hskip|kern)\s*=?\s*-?[\d.]*\s*(?:pt|em|ex|mm|cm|in|sp|\\\w+)?"
)
_MOST_GROWTH = 20
_LONGEST_BODY = 4_000


@dataclass(slots=True)
class LatexSource:
    """LaTeX without comments and definitions, its own commands expanded.

    ``listings`` holds verbatim text by number; ``comments`` counts the characters left out."""

    text: str
    listings: list[str] = field(default_factory=list)
    comment_count: int = 0
    is_expanded: bool = True


@dataclass(frozen=True, slots=True)
class _LatexCommand:
    body: str
    arguments: int = 0
    default: str | None = None


def prepare_latex(text: str) -> LatexSource:
    """Return LaTeX as its commands read it: without comments, with simple definitions of commands
    expanded. The expanded text has at most twenty times the length of the text."""
    source = LatexSource("")
    without = _VERBATIM.sub(lambda match: _set_apart(match, source), text)
    commands: dict[str, _LatexCommand] = {}
    body = _ASSIGNMENT.sub("", _take_definitions(without, commands))
    source.text = _expand(body, commands, source) if commands else body
    return source


def _set_apart(match: re.Match[str], source: LatexSource) -> str:
    kind = match[1]
    if kind is None:
        source.comment_count += 1
        return match[3] or ""
    if kind.startswith(("comment", "filecontents")):
        source.comment_count += 1
        return ""
    source.listings.append(match[2][_OPTIONS.match(match[2]).end() :])  # type: ignore[union-attr]
    return f"\n\n\\{LISTING}{{{len(source.listings) - 1}}}\n\n"


def read_group(text: str, at: int) -> int:
    """Return the end of the group in braces that begins at a place; the place where none does."""
    if text[at : at + 1] != "{":
        return at
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.S).finditer(text, at):
        depth += (match[0] == "{") - (match[0] == "}")
        if not depth:
            return match.end()
    return at


def _take_definitions(text: str, commands: dict[str, _LatexCommand]) -> str:
    parts: list[str] = []
    at = 0
    for match in _DEFINITION.finditer(text):
        if match.start() < at:
            continue
        end = read_group(text, match.end())
        if end == match.end():
            continue
        name = match[1] or match[2] or match[5]
        body = text[match.end() + 1 : end - 1]
        if "MathOperator" in match[0]:
            body = rf"\operatorname{{{body}}}"
        count = int(match[3] or 0) if match[5] is None else len(match[6]) // 2
        default = match[4][1:-1] if match[4] else None
        if len(body) <= _LONGEST_BODY and rf"\{name}" not in body:
            commands[name] = _LatexCommand(body, count, default)
        parts.append(text[at : match.start()])
        at = end
    return "".join((*parts, text[at:]))


def _expand(text: str, commands: dict[str, _LatexCommand], source: LatexSource) -> str:
    most = _MOST_GROWTH * len(text) + _LONGEST_BODY
    for _ in range(8):  # commands in the bodies of commands
        expanded, count = _expand_once(text, commands, most)
        if expanded is None:
            source.is_expanded = False
            return text
        text = expanded
        if not count:
            break
    return text


def _expand_once(
    text: str, commands: dict[str, _LatexCommand], most: int
) -> tuple[str | None, int]:
    """Return the text with its commands replaced once, and their number; None for a text that
    grows beyond ``most`` characters."""
    parts: list[str] = []
    at = length = count = 0
    for match in _COMMAND.finditer(text):
        command = commands.get(match[1] or "")
        if command is None or match.start() < at:
            continue
        end = match.start() + 1 + len(match[1]) if not command.arguments else match.end()
        values: list[str] = []
        if command.arguments and command.default is not None:
            close = text.find("]", end) if text[end : end + 1] == "[" else -1
            values.append(text[end + 1 : close] if close > 0 else command.default)
            end = close + 1 if close > 0 else end
        while len(values) < command.arguments:
            after = read_group(text, end)
            values.append(text[end + 1 : after - 1] if after > end else text[end : end + 1])
            end = max(after, end + 1)
        body = _fill_body(command.body, values)
        parts += (text[at : match.start()], body)
        length += match.start() - at + len(body)
        at, count = end, count + 1
        if length > most:
            return None, count
    return "".join((*parts, text[at:])), count


def _fill_body(body: str, values: list[str]) -> str:
    """Return the body of a command with its arguments in their places."""

    def write_argument(match: re.Match[str]) -> str:
        number = int(match[1])
        return values[number - 1] if 0 < number <= len(values) else ""

    return re.sub(r"#(\d)", write_argument, body)
