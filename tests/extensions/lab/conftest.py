"""The terminal of the tests of commands, for the commands of the lab."""

from tests.cli.conftest import documents, server, terminal

__all__ = ["documents", "server", "terminal"]
