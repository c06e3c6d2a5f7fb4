"""Prints the table of docs/howto/choose-a-mode.md from the modes themselves."""

from __future__ import annotations

from tgraph.retrieve.modes.registry import AUTO, AUTO_ROW, DEFAULT, MODES


def table() -> str:
    rows = [(mode.name, mode.row) for mode in MODES.values()]
    lines = [
        f"| `{name}`{' (default)' if name == DEFAULT else ''} | {row.questions} | {row.reads}"
        f" | {row.calls} |"
        for name, row in (*rows, (AUTO, AUTO_ROW))
    ]
    head = ["| mode | for questions | reads | calls of a model |", "|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
