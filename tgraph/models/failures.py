"""Endpoint failures: a sentence with its remedy, and a verdict on retrying.

No sentence ever contains the key: server messages are quoted only after secrets are removed."""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tgraph.errors import EndpointError, ModelError

if TYPE_CHECKING:
    import openai

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 529})
_QUOTED = 240
_KEYS = re.compile(r"\b(?:sk|pk|key|api)[-_][\w*.-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_FOR_ALL = frozenset({401, 402, 404, 429})
"""Statuses that concern key, account, address or rate, whatever the prompt is."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt.

    ``retry``: ``yes``, ``once``, ``no``, or ``reached``: only where the server was reached
    before, because it may be starting again. ``wait`` is what the server asked for, in seconds.
    ``error`` applies if other prompts fail too. ``prompt_reason`` is the reason for an error of
    this prompt if other prompts succeed; blank: the failure can't concern the prompt.
    """

    error: ModelError
    retry: str = "no"
    wait: float | None = None
    prompt_reason: str = ""


@dataclass(frozen=True, slots=True)
class CallDestination:
    """A call's destination, for messages: address without credentials, model and key."""

    url: str
    model: str
    key: str = ""
    timeout: float = 0.0

    def quote(self, text: str) -> str:
        """Return a server message as a single line, stripped of secrets, at most 240
        characters."""
        clean = text.replace(self.key, "***") if self.key else text
        clean = " ".join(_KEYS.sub("***", clean).split()).rstrip(".。")
        return clean if len(clean) <= _QUOTED else clean[: _QUOTED - 1] + "…"


def explain_failure(error: Exception, place: CallDestination) -> Failure:
    """Return the failure corresponding to an exception of the ``openai`` package (or its
    transport)."""
    import openai

    from tgraph.models.reply_limits import ReplyLimitError

    for cause in _error_causes(error):
        if isinstance(cause, ReplyLimitError):
            return _endpoint_failure(f"{place.url} {cause}.", cause.remedy)
    if isinstance(error, openai.APIStatusError):
        return _status_failure(error, place)
    if isinstance(error, openai.APITimeoutError):
        return _timeout_failure(error, place)
    if isinstance(error, openai.APIConnectionError):
        return _connection_failure(error, place)
    if isinstance(error, openai.APIError):
        message = place.quote(error.message)
        return Failure(ModelError(f"{place.url} reported an error: {message}."), "yes")
    return _endpoint_failure(
        f"{place.url} sent a reply that is not an OpenAI-compatible one.",
        "Check the base URL; for most servers it ends in /v1.",
        "yes" if isinstance(error, ValueError) else "no",
    )


def _endpoint_failure(sentence: str, remedy: str, retry: str = "no") -> Failure:
    return Failure(EndpointError(sentence, remedy), retry)


# --- the server answered ------------------------------------------------------------------------


def _status_failure(error: openai.APIStatusError, place: CallDestination) -> Failure:
    status, message = error.status_code, place.quote(_error_words(error))
    if 300 <= status < 400:
        failure = _redirect_failure(error, place)
    elif status in (401, 403):
        failure = Failure(_access_error(status, place))
    elif status == 404:
        failure = Failure(_not_found(message, place))
    elif is_refusal(error):
        failure = _endpoint_failure(
            f"{place.url} refused the request (HTTP {status}): {message}.", ""
        )
    elif status == 429 and "insufficient_quota" in f"{error.code} {error.type}":
        failure = _endpoint_failure(
            f"The quota of the key at {place.url} is used up.", "Check its billing."
        )
    else:
        failure = Failure(
            EndpointError(
                f"{place.url} answered HTTP {status} to the model {place.model}:"
                f" {message or 'no reason'}.",
                "Ask less often (requests per minute), or try again later."
                if status == 429
                else "Try again later.",
            ),
            "yes" if status in RETRIED else "no",
            retry_after(error.response.headers),
        )
    if status in _FOR_ALL:
        return failure
    return replace(failure, prompt_reason=f"HTTP {status}{message and f': {message}'}")


def _redirect_failure(error: openai.APIStatusError, place: CallDestination) -> Failure:
    target = urlsplit(error.response.headers.get("location", ""))
    where = f" to {place.quote(f'{target.scheme}://{target.hostname}')}" if target.hostname else ""
    return _endpoint_failure(
        f"{place.url} redirects{where}, and no prompt is sent there.",
        "Set the base URL of the server that answers.",
    )


def is_refusal(error: Exception) -> bool:
    """Return whether a server refused a request because of its form or content."""
    status = getattr(error, "status_code", None) or 0
    return 400 <= status < 500 and status not in RETRIED | _FOR_ALL


def _error_words(error: Exception) -> str:
    body: Any = getattr(error, "body", None)
    if isinstance(body, Mapping):
        for name in ("message", "error", "detail"):
            if isinstance(body.get(name), str):
                return str(body[name])
    return body if isinstance(body, str) else str(error)


def _access_error(status: int, place: CallDestination) -> EndpointError:
    if status == 403:
        return EndpointError(
            f"{place.url} denies access to the model {place.model} (HTTP 403).",
            "Check that the key may use this model from here.",
        )
    if place.key:
        return EndpointError(
            f"{place.url} refused the API key (HTTP 401).",
            "Set OPENAI_API_KEY to a key that this server knows, or correct the base URL.",
        )
    return EndpointError(f"{place.url} asks for an API key (HTTP 401).", "Set OPENAI_API_KEY.")


def _not_found(said: str, place: CallDestination) -> EndpointError:
    if "model" in said.lower():
        return EndpointError(f"{place.url} does not have the model {place.model!r}.")
    return EndpointError(
        f"There is nothing OpenAI-compatible at {place.url} (HTTP 404).",
        "Check the base URL; for most servers it ends in /v1.",
    )


def refusal_words(error: Exception) -> str:
    """Return the parameter named by a refusal, and the refusal's words."""
    return f"{getattr(error, 'param', None) or ''} {_error_words(error)}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds requested by ``Retry-After`` (RFC 9110, 10.2.3) or ``retry-after-ms``."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / divisor
        except ValueError:
            parsed = email.utils.parsedate_tz(value)
            seconds = email.utils.mktime_tz(parsed) - time.time() if parsed else -1.0
        if 0 <= seconds < float("inf"):
            return seconds
    return None


# --- it did not ---------------------------------------------------------------------------------


def _error_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _timeout_failure(error: openai.APITimeoutError, place: CallDestination) -> Failure:
    import httpx2

    if any(isinstance(c, httpx2.ConnectTimeout) for c in _error_causes(error)):
        return _endpoint_failure(
            f"{place.url} can't be reached: no answer to the connection.",
            "Check the base URL, the network and the proxy settings.",
            "reached",
        )
    silence = f"sent nothing for {place.timeout:g} seconds"
    failure = _endpoint_failure(
        f"{place.url} {silence}.",
        "Raise chat.timeout, lower chat.max_tokens, or check whether the server is overloaded.",
        "once",  # the server may still be writing its reply to the first attempt
    )
    return replace(failure, prompt_reason=f"it {silence}")


def _connection_failure(error: openai.APIConnectionError, place: CallDestination) -> Failure:
    causes = list(_error_causes(error))
    if any(isinstance(c, ssl.SSLError) for c in causes):
        return _endpoint_failure(
            f"The TLS connection to {place.url} failed: {place.quote(str(causes[-1]))}.",
            "Check that the server really speaks https, and its certificate (SSL_CERT_FILE).",
        )
    if any(isinstance(c, socket.gaierror) for c in causes):
        sentence = f"The host name of {place.url} is not known."
        return _endpoint_failure(sentence, "Check the base URL and the network.", "reached")
    return _transport_failure(causes, place)


def _transport_failure(causes: list[BaseException], place: CallDestination) -> Failure:
    import httpx2

    if any(isinstance(c, httpx2.ConnectError) for c in causes):
        words = place.quote(re.sub(r"^\[Errno -?\d+\] ", "", str(causes[-1])))
        return _endpoint_failure(
            f"{place.url} can't be reached: {words or 'no connection'}.",
            "Check that the server runs and that the base URL and port are right.",
            "reached",
        )
    if any(isinstance(c, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError) for c in causes):
        return _endpoint_failure(
            f"A request to {place.url} can't be made.", "Check base URL and key."
        )
    remedy = "Check the server's log, or try again later."
    failure = _endpoint_failure(f"{place.url} dropped the connection.", remedy, "yes")
    return replace(failure, prompt_reason="it dropped the connection")
