"""Runs that are put on record as they go (questions, and verifications, influence analyses and
evaluations of these): how each ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.errors import StoreError, TgraphError
from tgraph.record.bundle import BundleRecord

if TYPE_CHECKING:
    from tgraph.explain.traced import Trace


@contextmanager
def on_record(record: BundleRecord, what: str) -> Iterator[None]:
    """The run under way. If it fails or is interrupted, that is recorded and raised again; the
    record is closed in any case."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        _end(record, "interrupted", f"The {what} was interrupted.")
        raise
    except TgraphError as error:
        _end(record, "failed", str(error))
        raise
    except Exception as error:
        _end(record, "failed", f"{type(error).__name__}: {error}")
        raise
    finally:
        record.close()


def _end(record: BundleRecord, status: str, error: str) -> None:
    """Record the end, if the disk lets us; a record without one counts as aborted."""
    with suppress(StoreError):
        record.finish(status, error)


def answer_of(trace: Trace) -> str:
    """The IRI of the session's answer."""
    return v.answer_iri(trace.explain_id.removeprefix(v.session_iri("")))


def usage_of(record: BundleRecord) -> Mapping[str, int]:
    """What the run's calls have cost."""
    usage = record.usage
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "calls": usage.calls,
    }
