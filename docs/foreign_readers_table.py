"""Prints the table of readers in docs/explanation/security.md from their register."""

from __future__ import annotations

from tgraph.foreign_readers import READERS

PLACES = {"isolated": "isolated process", "bounded": "where it is called"}


def table() -> str:
    lines = ["| what is read | where | limits | held by |", "|---|---|---|---|"]
    for reader in READERS:
        file, _, test = reader.test.partition("::")
        held = f"`{test}` in `{file}`"
        lines.append(f"| {reader.name} | {PLACES[reader.place]} | {reader.limits} | {held} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
