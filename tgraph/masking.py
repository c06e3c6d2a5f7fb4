"""What is shown: URLs without their secrets, and paths of a server as names."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, urlsplit, urlunsplit

MASK = "********"
_SECRET = re.compile(r"key|token|secret|pass|sig|auth|cred", re.I)
"""A parameter of an address so called is shown masked."""
_URL = re.compile(r"[\w.+:-]+://[^\s'\"<>]+")
_USER = re.compile(r"://[^\s@]*@")


def mask_url(url: str) -> str:
    """Return a displayable URL with user, password and secret parameters masked; mask
    unparsable URLs completely."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return MASK
    _, at, host = parts.netloc.rpartition("@")
    if not host and "@" in url:  # no address after all, or one inside another (``a::b://``)
        return MASK
    masked_parts = parts._replace(
        netloc=f"{MASK}@{host}" if at else host,
        query=_mask_parameters(parts.query),
        fragment=_mask_parameters(parts.fragment),
    )
    return urlunsplit(masked_parts)


def _mask_parameters(text: str) -> str:
    pairs = parse_qsl(text, keep_blank_values=True)
    if not any(_SECRET.search(name) and value for name, value in pairs):
        return text
    return "&".join(f"{name}={MASK if _SECRET.search(name) else value}" for name, value in pairs)


def mask_urls(text: str) -> str:
    """Return a text, such as a message, with the secrets of its URLs masked."""
    return _URL.sub(_mask_match, text) if "://" in text else text


def _mask_match(match: re.Match[str]) -> str:
    url = match[0]
    try:
        _ = urlsplit(url).port
    except ValueError:  # the URL may end in a sign of the sentence
        return _USER.sub(f"://{MASK}@", url)
    return mask_url(url)


_PATH = re.compile(r"(?<![\w/:.])(/[^\s/'\"():;,]+)(?:/[^\s/'\"():;,]+)*/([^\s/'\"():;,]+)")


def hide_paths(text: str) -> str:
    """Return a text for clients, in which absolute paths of this machine are names of files."""
    return _PATH.sub(lambda path: path[2] if os.path.isdir(path[1]) else path[0], text)  # noqa: PTH112
