"""Several calls at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def nothing() -> None:
    """For calls that can't be cancelled."""


def together(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    most: int,
    cancel: Callable[[], None] = nothing,
) -> list[Result]:
    """The results in the order of the items, of which at most ``most`` are worked on at a time.

    The first error ends it: what is waiting is not begun, ``cancel`` is asked to end the calls that
    are under way, and the error of the first item that has one is raised. So does an interruption.
    """
    if not items:
        return []
    pool = ThreadPoolExecutor(min(most, len(items)), "calls")
    futures: list[Future[Result]] = []
    try:
        futures = [pool.submit(work, item) for item in items]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
            failed = [f for f in futures if f in done and f.exception() is not None]
            if failed:
                raise failed[0].exception()  # type: ignore[misc]
        return [future.result() for future in futures]
    except BaseException:
        cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
