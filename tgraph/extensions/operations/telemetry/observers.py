"""Who makes spans of what is recorded in an open collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.engine.progress import OnMessage
from tgraph.errors import UsageError
from tgraph.record.observer import Observer
from tgraph.settings import TelemetrySettings

if TYPE_CHECKING:
    from tgraph.extensions.operations.telemetry.exporting import Telemetry


class SpanObservers:
    """Telemetry spans for records, if enabled by settings.

    OpenTelemetry is imported only on first use."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._settings = settings
        self._telemetry: Telemetry | None = None

    def observer(self) -> Observer:
        """Who observes one record. ``UsageError`` where what makes spans isn't installed."""
        if self._telemetry is None:
            self._telemetry = self._create_telemetry()
        return self._telemetry.observer()

    def end(self, message: OnMessage) -> None:
        """Send unsent spans without waiting."""
        if self._telemetry is not None:
            self._telemetry.send(message)

    def _create_telemetry(self) -> Telemetry:
        try:
            from tgraph.extensions.operations.telemetry.exporting import Telemetry
        except ModuleNotFoundError as error:
            raise UsageError(
                f"Telemetry is enabled, and {error.name} is not installed.",
                "Run `pip install 'tgraph-rag[otel]'`, or set `telemetry.enabled` to false.",
            ) from None
        return Telemetry(self._settings)
