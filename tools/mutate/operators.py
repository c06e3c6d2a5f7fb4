"""The small faults that are put into a module, and where.

Places are found in the syntax tree, and the text is changed there: all else stays as it is written.
Only what runs in functions is changed; what raises, asserts, logs or annotates is left alone. So
are constants of modules: most are weights, of which one more or less is no fault.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

Fault = tuple[str, ast.AST, int, int, str]
"""The operator, the node that it changes, from where to where in bytes, and what comes there."""

_NEGATED = {
    "==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_SIGNS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_ARITHMETIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
}  # fmt: skip
_NOTHING = {
    "list": "[]", "Sequence": "[]", "Iterable": "[]", "dict": "{}", "Mapping": "{}", "tuple": "()",
    "set": "set()", "frozenset": "frozenset()", "str": '""', "bytes": 'b""', "int": "0",
    "float": "0.0",
}  # fmt: skip
_LEFT_ALONE = (ast.Raise, ast.Assert, ast.JoinedStr)
_OBJECTS = frozenset({"log", "warnings"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one fault; ``name`` stays the same while the line does."""

    name: str
    file: str
    line: int
    before: str
    after: str
    source: str


class _Places:
    """Walks the functions of a module and lists the faults that can be put in."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._returns: list[str] = []
        self._inside: list[str] = []
        self.found: list[tuple[str, Fault]] = []
        self._walk(ast.parse(source))

    def line(self, node: ast.AST) -> str:
        """The text of the line on which a node begins."""
        number = node.lineno  # type: ignore[attr-defined]
        return self.data[self._starts[number - 1] : self._starts[number]].decode().strip()

    def _walk(self, node: ast.AST) -> None:
        if isinstance(node, _LEFT_ALONE) or _is_left_alone(node):
            return
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            self._inside.append(node.name)
            returns = node.returns if isinstance(node, _FUNCTIONS) else None
            self._returns.append(ast.unparse(returns) if returns else "")
            for child in node.body:
                self._walk(child)
            self._returns.pop()
            self._inside.pop()
            return
        if self._returns and not _is_field(node):
            self.found += [(".".join(self._inside), fault) for fault in self._faults(node)]
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        for part in ast.iter_child_nodes(node):
            if part is not annotation:
                self._walk(part)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def _between(self, left: ast.AST, right: ast.AST, sign: str) -> tuple[int, int]:
        """Where the sign stands between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = r"\s+".join(map(re.escape, sign.split()))
        word = rf"\b{pattern}\b" if sign[0].isalpha() else pattern
        found = re.search(word.encode(), self.data[start:end])
        assert found, (sign, self.data[start:end])
        return start + found.start(), start + found.end()

    def _faults(self, node: ast.AST) -> Iterator[Fault]:
        for kind, faults in _FAULTS.items():
            if isinstance(node, kind):
                yield from faults(self, node)

    def _comparisons(self, node: ast.Compare) -> Iterator[Fault]:
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            sign = _SIGNS[type(op)]
            place = self._between(left, right, sign)
            yield "comparison", node, *place, _NEGATED[sign]
            if sign in _BOUNDARY:
                yield "boundary", node, *place, _BOUNDARY[sign]

    def _connectives(self, node: ast.BoolOp) -> Iterator[Fault]:
        before, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        place = self._between(node.values[0], node.values[1], before)
        yield "connective", node, *place, after

    def _arithmetic(self, node: ast.BinOp) -> Iterator[Fault]:
        if type(node.op) in _ARITHMETIC and any(map(_is_number, (node.left, node.right))):
            before, after = _ARITHMETIC[type(node.op)]
            yield "sign", node, *self._between(node.left, node.right, before), after

    def _unary(self, node: ast.UnaryOp) -> Iterator[Fault]:
        start, end = self._span(node)[0], self._span(node.operand)[0]
        if isinstance(node.op, ast.Not):
            yield "not", node, start, end, " " * (end - start)
        elif isinstance(node.op, ast.USub):
            yield "sign", node, start, end, " " * (end - start)

    def _constants(self, node: ast.Constant) -> Iterator[Fault]:
        start, end = self._span(node)
        if type(node.value) is int and node.value <= 100:
            yield "constant", node, start, end, str(node.value + 1)
        elif type(node.value) is bool:
            yield "constant", node, start, end, str(not node.value)

    def _returned(self, node: ast.Return) -> Iterator[Fault]:
        kind = self._returns[-1]
        if node.value is None or (isinstance(node.value, ast.Constant) and not node.value.value):
            return
        start, end = self._span(node.value)
        said = self.data[start:end].decode()
        nothing = "None" if "None" in kind else _NOTHING.get(kind.partition("[")[0], "None")
        yield "return", node, start, end, f"not ({said})" if kind == "bool" else nothing

    def _conditions(self, node: ast.If | ast.IfExp) -> Iterator[Fault]:
        if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
            for forced in ("True", "False"):
                yield "condition", node, *self._span(node.test), forced

    def _filters(self, node: ast.comprehension) -> Iterator[Fault]:
        for test in node.ifs:
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(test)):
                yield "condition", test, *self._span(test), "True"

    def _jumps(self, node: ast.Break | ast.Continue) -> Iterator[Fault]:
        after = "continue" if isinstance(node, ast.Break) else "break"
        yield "jump", node, *self._span(node), after

    def _statements(self, node: ast.Expr) -> Iterator[Fault]:
        if isinstance(node.value, ast.Call):
            yield "call", node, *self._span(node), "pass"

    def _arguments(self, node: ast.Call) -> Iterator[Fault]:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for keyword in node.keywords:
            at = given.index(keyword.value)
            if keyword.arg and at:
                start = self._span(given[at - 1])[1]
                yield "argument", keyword, start, self._span(keyword)[1], ""


_FAULTS: dict[type[ast.AST], Callable[..., Iterator[Fault]]] = {
    ast.Compare: _Places._comparisons,
    ast.BoolOp: _Places._connectives,
    ast.BinOp: _Places._arithmetic,
    ast.UnaryOp: _Places._unary,
    ast.Constant: _Places._constants,
    ast.Return: _Places._returned,
    ast.If: _Places._conditions,
    ast.IfExp: _Places._conditions,
    ast.comprehension: _Places._filters,
    ast.Break: _Places._jumps,
    ast.Continue: _Places._jumps,
    ast.Expr: _Places._statements,
    ast.Call: _Places._arguments,
}


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    called = node.value if isinstance(node, ast.Expr) else None
    if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute):
        of = called.func.value
        return isinstance(of, ast.Name) and of.id in _OBJECTS
    return False


def _is_field(node: ast.AST) -> bool:
    """Whether a node is one of a class's own lines, beside its methods."""
    return isinstance(node, ast.AnnAssign) and node.value is None


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def mutants_of(file: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of their places; some may not be Python."""
    places = _Places(source)
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for inside, (operator, node, start, end, text) in places.found:
        data = places.data
        line = data[:start].count(b"\n") + 1
        before, after = data[start:end].decode(), text
        said = f"{operator} {inside} {places.line(node)} {before} {after}"
        seen[said] += 1
        digest = sha256(f"{said} {seen[said]}".encode()).hexdigest()[:6]
        changed = (data[:start] + text.encode() + data[end:]).decode()
        stem = file.rpartition("/")[2].removesuffix(".py")
        name = f"{stem}.{inside}:{operator}-{digest}"
        found.append(Mutant(name, file, line, before, after.strip(), changed))
    return found


def _is_another(source: str, changed: str) -> bool:
    """Whether a changed module is one, and another program."""
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def chosen(file: str, source: str, count: int, seed: str) -> list[Mutant]:
    """``count`` mutants of a module, at most one on a line, of one operator a quarter at most.

    A mutant's place in the draw depends on the seed and its own name, so that a change elsewhere in
    the module leaves most of the choice as it was.
    """
    drawn = sorted(
        mutants_of(file, source), key=lambda m: sha256(f"{seed} {m.name}".encode()).digest()
    )
    taken: list[Mutant] = []
    lines: set[int] = set()
    operators: Counter[str] = Counter()
    for mutant in drawn:
        operator = mutant.name.rpartition(":")[2].partition("-")[0]
        if len(taken) == count:
            break
        free = mutant.line not in lines and operators[operator] < max(1, count // 4)
        if free and _is_another(source, mutant.source):
            taken.append(mutant)
            lines.add(mutant.line)
            operators[operator] += 1
    return sorted(taken, key=lambda m: m.line)
