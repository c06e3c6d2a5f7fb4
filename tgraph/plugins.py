"""Find what installed packages add to tgraph.

A package names its ``tgraph.extensions.Extension`` in the entry point group ``tgraph.extensions``.
A ``Registry`` has the contributions of one kind (commands, modes, loaders) of all extensions.
Entry points are read when a registry is first asked, and a contribution is imported when it is
used. tgraph's own extensions are found the same way as the extensions of other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tgraph.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tgraph.extensions"
"""The group of entry points that name extensions."""

Contribution = Callable[..., Any]
"""What an extension adds: a function; ``tgraph.extensions.Extension`` has its exact type."""


@cache
def load_extensions() -> Mapping[str, Any]:
    """Return the installed extensions by name.

    An extension that can't be loaded is left out with a warning. Raise ``UsageError`` where two
    packages give their extensions the same name.
    """
    extensions: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for entry in sorted(_entry_points(), key=lambda entry: (entry.name, entry.value)):
        extension = _load_extension(entry)
        if extension is None:
            continue
        name = extension.name
        if name in extensions:
            raise UsageError(
                f"Two extensions are called {name!r}: {sources[name]} and {entry.value}.",
                "Uninstall one of the packages.",
            )
        extensions[name], sources[name] = extension, entry.value
    return extensions


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _load_extension(entry: EntryPoint) -> Any:
    """Return the extension of an entry point; None, with a warning, where it can't be loaded."""
    try:
        extension = entry.load()
        if not isinstance(getattr(extension, "name", None), str):
            raise TypeError(f"{entry.value} is no tgraph.extensions.Extension")
    except Exception as error:
        warn_about(entry.name, error)
        return None
    return extension


def warn_about(extension: str, error: Exception) -> None:
    """Log one line that says why an extension, or a contribution of it, can't be used."""
    import logging

    reason = " ".join(f"{type(error).__name__}: {error}".split())
    logging.getLogger(__name__).warning("The extension %s can't be used: %s", extension, reason)


class Registry:
    """The contributions of one kind of all extensions, by the names that users give them.

    ``field`` is the field of ``Extension`` that holds them, ``kind`` says in messages what one of
    them is.
    """

    def __init__(self, field: str, kind: str) -> None:
        self.field = field
        self.kind = kind

    def names(self) -> Collection[str]:
        """Return the names. Raise ``UsageError`` where two extensions have the same name."""
        return _collect(self.field, self.kind).keys()

    def find_contribution(self, name: str) -> Contribution | None:
        """Return a contribution by name; None if no extension has such a contribution."""
        owner_and_value = _collect(self.field, self.kind).get(name)
        return owner_and_value[1] if owner_and_value else None

    def require(self, name: str, extension: str) -> Contribution:
        """Return a contribution by name.

        Raise ``UsageError`` if no extension has the contribution; ``extension`` names tgraph's
        own extension expected to have the contribution."""
        contribution = self.find_contribution(name)
        if contribution is None:
            raise UsageError(
                f"The {self.kind} {name!r} belongs to the extension {extension}, which is not"
                " installed.",
                "Reinstall with `pip install --force-reinstall tgraph-rag`.",
            )
        return contribution

    def check_names(self, reserved: Iterable[str]) -> None:
        """Raise ``UsageError`` if an extension uses a core name."""
        collected = _collect(self.field, self.kind)
        for name in reserved:
            if name in collected:
                raise _name_taken(f"tgraph and the extension {collected[name][0]}", self.kind, name)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of calling a contribution; warn and return None if the call fails."""
        extension, contribution = _collect(self.field, self.kind)[name]
        try:
            return contribution(*arguments)
        except Exception as error:
            warn_about(extension, error)
            return None

    def call_all(self, *arguments: Any, reserved: Collection[str] = ()) -> Mapping[str, Any]:
        """Call each contribution with the arguments and return results by name.

        A failing contribution is skipped with a warning. Raise ``UsageError`` for ``reserved``
        names, which belong to the core."""
        self.check_names(reserved)
        results = {name: self.call(name, *arguments) for name in self.names()}
        return {name: result for name, result in results.items() if result is not None}


@cache
def _collect(field: str, kind: str) -> Mapping[str, tuple[str, Contribution]]:
    """Return contributions of one kind by name, each with its extension name."""
    collected: dict[str, tuple[str, Contribution]] = {}
    for extension in load_extensions().values():
        for name, contribution in getattr(extension, field).items():
            if name in collected:
                owners = f"The extensions {collected[name][0]} and {extension.name}"
                raise _name_taken(owners, kind, name)
            collected[name] = extension.name, contribution
    return collected


def _name_taken(owners: str, kind: str, name: str) -> UsageError:
    return UsageError(f"{owners} both have the {kind} {name!r}.", "Uninstall one of the packages.")


COMMANDS = Registry("commands", "command")
MODES = Registry("modes", "mode")
LOADERS = Registry("loaders", "loader")
GRAPH_READERS = Registry("graph_readers", "reader of graphs")
SESSION_FORMATS = Registry("session_formats", "format")
PICTURES = Registry("pictures", "format")
VOCABULARIES = Registry("vocabularies", "vocabulary")
CHAT_MODELS = Registry("chat_models", "chat provider")
EMBEDDERS = Registry("embedders", "embedding provider")
RERANKERS = Registry("rerankers", "rerank provider")
VECTOR_STORES = Registry("vector_stores", "vector store")
OBSERVERS = Registry("observers", "observer of records")
HEALTH_CHECKS = Registry("health_checks", "health check")
SCHEMAS = Registry("schemas", "schema")
FUNCTIONS = Registry("functions", "function")
