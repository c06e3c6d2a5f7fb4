"""Content negotiation between media types (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from starlette.exceptions import HTTPException


def choose_media_type(accept: str, offered: Mapping[str, str]) -> tuple[str, str]:
    """Return the best acceptable media type in ``offered``, with its name.

    An empty ``Accept`` value selects the first offered type. No acceptable type raises status
    406."""
    best, chosen = 0.0, ""
    ranges = list(_parse_ranges(accept)) if accept.strip() else [("*/*", 1.0)]
    for media in offered:
        quality = _match_quality(media, ranges)
        if quality > best:
            best, chosen = quality, media
    if not chosen:
        raise HTTPException(406, f"There are: {', '.join(offered)}.")
    return chosen, offered[chosen]


def _parse_ranges(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        media, *parameters = (parameter.strip().lower() for parameter in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = min(1.0, max(0.0, float(parameter[2:])))
                except ValueError:
                    quality = 0.0
        if media:
            yield media, quality


def _match_quality(media: str, wanted: list[tuple[str, float]]) -> float:
    """Return the quality of the most specific matching media range."""
    main = media.partition("/")[0]
    for fitting in (media, f"{main}/*", "*/*"):
        qualities = [quality for name, quality in wanted if name == fitting]
        if qualities:
            return max(qualities)
    return 0.0
