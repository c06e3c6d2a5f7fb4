"""Question files and RAGChecker files: readers for both, a writer for RAGChecker's format."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from tgraph.errors import UsageError
from tgraph.extensions.lab.evaluation.metrics import ContextText, EvaluationItem, Matrix
from tgraph.foreign_bytes import OversizeError, check_file_size, parse_json

SHAPE = "See docs/howto/evaluate.md for the formats."
_LISTS = ("results", "questions", "question")
_LABELS = {
    "answer2response": "response_claims",
    "response2answer": "gt_answer_claims",
    "retrieved2response": "response_claims",
    "retrieved2answer": "gt_answer_claims",
}
"""The labels, each with the statements that they are of."""
_JUDGED = ("response_claims", "gt_answer_claims", *_LABELS)
_AS_READ = ("query", "gt_answer", "response", "gold_documents", "gold_passages", "judges", *_JUDGED)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _as_texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Id = Annotated[str, BeforeValidator(_as_text)]
TextTuple = Annotated[tuple[str, ...], BeforeValidator(_as_texts)]
ClaimTexts = tuple[Annotated[tuple[str, ...], BeforeValidator(_as_texts)], ...]


class _GivenContext(BaseModel):
    doc_id: Annotated[str | None, BeforeValidator(_as_text)] = None
    text: str = ""


class _RankedContext(_GivenContext):
    names: tuple[str, ...] = ()


class _QuestionRow(BaseModel):
    """A question; keys that are not known, such as metrics, are passed over."""

    model_config = ConfigDict(extra="ignore")

    query: str = Field(min_length=1, validation_alias=AliasChoices("query", "question"))
    query_id: Id = Field("", validation_alias=AliasChoices("query_id", "id"))
    gt_answer: str = Field("", validation_alias=AliasChoices("gt_answer", "answer"))
    response: str | None = None
    retrieved_context: tuple[_GivenContext, ...] | None = None
    gold_documents: TextTuple = ()
    gold_passages: TextTuple = ()
    response_claims: ClaimTexts | None = None
    gt_answer_claims: ClaimTexts | None = None
    answer2response: tuple[str, ...] | None = None
    response2answer: tuple[str, ...] | None = None
    retrieved2response: Matrix | None = None
    retrieved2answer: Matrix | None = None
    explain_id: str = ""
    ranking: tuple[_RankedContext, ...] | None = None
    judges: tuple[str, ...] = ()


_LARGEST = 200_000_000


def read_items(path: Path, *, answered: bool = True) -> list[EvaluationItem]:
    """The questions of a file: RAGChecker's JSON, or JSON, JSON Lines or TOML with questions.

    ``UsageError`` where it is none of these, holds no question, or its labels don't fit its
    statements and contexts, and, with ``answered``, for a question that there is nothing to judge
    by.
    """
    try:
        check_file_size(path, _LARGEST)
        text = path.read_text("utf-8-sig")
    except OversizeError as error:
        raise UsageError(f"{path} can't be read. {error}.", "Split it.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}.") from error
    rows = _parse_rows(path, text)
    items = [_parse_item(path, number, row, answered) for number, row in enumerate(rows)]
    if not items:
        raise UsageError(f"{path} holds no question.", SHAPE)
    return items


def _parse_rows(path: Path, text: str) -> Sequence[Any]:
    try:
        if path.suffix == ".toml":
            rows: Any = tomllib.loads(text)
        elif path.suffix == ".jsonl":
            rows = [parse_json(line) for line in text.split("\n") if line.strip()]
        else:
            rows = parse_json(text)
    except (ValueError, RecursionError) as error:  # of both libraries
        raise UsageError(f"{path} can't be read: {error}.", SHAPE) from error
    if isinstance(rows, Mapping):
        rows = next((rows[name] for name in _LISTS if name in rows), None)
    if not isinstance(rows, list):
        raise UsageError(f"{path} holds no list of questions.", SHAPE)
    return rows


def _parse_item(path: Path, number: int, row: Any, answered: bool) -> EvaluationItem:
    where = f"{path}, question {number + 1}"
    try:
        read = _QuestionRow.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "it"
        raise UsageError(f"{where}: {location}: {first['msg']}.", SHAPE) from error
    item = EvaluationItem(
        query_id=read.query_id or str(number),
        context=_context_texts(read.retrieved_context or ()),
        ranking=None if read.ranking is None else _context_texts(read.ranking),
        session=read.explain_id,
        **{name: getattr(read, name) for name in _AS_READ},
    )
    _check_labels(where, item, answered)
    return item


def _context_texts(rows: Sequence[_GivenContext]) -> tuple[ContextText, ...]:
    return tuple(
        ContextText(row.doc_id or str(at), row.text, getattr(row, "names", ()))
        for at, row in enumerate(rows)
    )


def _check_labels(where: str, item: EvaluationItem, answered: bool) -> None:
    """Check that labels match existing response, statements and contexts. Raise ``UsageError``
    otherwise."""
    if answered and not (item.has_answer or item.gold_documents or item.gold_passages):
        raise UsageError(
            f"{where}: there is no gt_answer, and no gold passages or documents.",
            "Say what the right answer is, or where it stands.",
        )
    if item.response is None and (item.response_claims is not None or item.is_checked()):
        raise UsageError(f"{where}: it has statements of a response, and no response.", SHAPE)
    for labels, claims in _LABELS.items():
        label_values, of = getattr(item, labels), getattr(item, claims)
        if label_values is None:
            continue
        if of is None or len(label_values) != len(of):
            raise UsageError(f"{where}: {labels} and {claims} are not of the same length.", SHAPE)
        if labels.startswith("retrieved") and any(
            len(row) != len(item.context) for row in label_values
        ):
            raise UsageError(
                f"{where}: a row of {labels} has not one label for each retrieved context.", SHAPE
            )


def ragchecker_item(item: EvaluationItem, metrics: Mapping[str, float]) -> dict[str, Any]:
    """Return a question as RAGChecker JSON.

    Fields unknown to RAGChecker have other keys, which it ignores; missing values are left out,
    so that RAGChecker computes them."""
    row: dict[str, Any] = {
        "query_id": item.query_id,
        "query": item.query,
        "gt_answer": item.gt_answer,
        "response": item.response or "",
        "retrieved_context": [{"doc_id": c.doc_id, "text": c.text} for c in item.context],
    }
    for name in _JUDGED:
        if (value := getattr(item, name)) is not None:
            row[name] = [list(entry) if isinstance(entry, tuple) else entry for entry in value]
    row["metrics"] = dict(metrics)
    for name, extra in (
        ("explain_id", item.session),
        ("gold_documents", list(item.gold_documents)),
        ("gold_passages", list(item.gold_passages)),
        ("judges", list(item.judges)),
        ("ranking", [asdict(entry) for entry in item.ranking or ()]),
    ):
        if extra:
            row[name] = extra
    return row
