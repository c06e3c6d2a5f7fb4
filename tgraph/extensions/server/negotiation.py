"""Which form of something a client wants (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from starlette.exceptions import HTTPException


def negotiated(accept: str, offered: Mapping[str, str]) -> tuple[str, str]:
    """The media type of those ``offered`` that suits best, and its name; the first where nothing
    is said. Status 406 where none suits."""
    best, chosen = 0.0, ""
    wanted = list(_ranges(accept)) if accept.strip() else [("*/*", 1.0)]
    for media in offered:
        quality = _quality(media, wanted)
        if quality > best:
            best, chosen = quality, media
    if not chosen:
        raise HTTPException(406, f"There are: {', '.join(offered)}.")
    return chosen, offered[chosen]


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        media, *parameters = (each.strip().lower() for each in part.split(";"))
        quality = 1.0
        for each in parameters:
            if each.startswith("q="):
                try:
                    quality = min(1.0, max(0.0, float(each[2:])))
                except ValueError:
                    quality = 0.0
        if media:
            yield media, quality


def _quality(media: str, wanted: list[tuple[str, float]]) -> float:
    """That of the range that fits most closely."""
    main = media.partition("/")[0]
    for fitting in (media, f"{main}/*", "*/*"):
        found = [quality for name, quality in wanted if name == fitting]
        if found:
            return max(found)
    return 0.0
