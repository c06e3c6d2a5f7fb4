"""Prints the tables of docs/howto/choose-a-mode.md: the modes, from the modes themselves, and with
``--forms`` the modes by the form of a question, as ``auto`` chooses them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tgraph.retrieve.modes.registry import AUTO, AUTO_ROW, DEFAULT, MODES, AutoSettings


@dataclass(frozen=True, slots=True)
class FormRow:
    """A form of questions: ``setting`` is what says in ``auto`` which mode it gets, ``told`` how it
    is told, ``why`` what speaks for the mode, with figures of docs/reference."""

    name: str
    setting: str
    told: str
    example: str
    why: str

    @property
    def mode(self) -> str:
        """The mode that ``auto`` takes where the settings don't say."""
        found: str = getattr(AutoSettings(), self.setting)
        return found


FORMS = (
    FormRow(
        "one thing",
        "one",
        "none of the others",
        "Who financed the Southern Cross expedition?",
        "a sentence answers it, and sentences are what this mode ranks: 140 of 150 answers of SQuAD"
        " state it where nothing is refused",
    ),
    FormRow(
        "linked",
        "linked",
        "it describes something instead of naming it: a clause, “of”, a possessive",
        "Who designed the ship that carried the first party?",
        "one passage leads to the other: all that MuSiQue's questions need is among the first eight"
        " for 71 % (`graph` 53 %, `contextual` 38 %)",
    ),
    FormRow(
        "a comparison",
        "compared",
        "two names with “or”, “both”, “same”, “more ... than”, or a word for comparing",
        "Which ship was built first, the Fram or the Endurance?",
        "both sides are needed, as above; of eight comparisons, asked once, seven were decided"
        " rightly",
    ),
    FormRow(
        "a list",
        "listed",
        "“list all”, “which” or “what are” with a plural",
        "Which ships were crushed by the ice?",
        "its items stand around the things that it names; not measured by itself",
    ),
    FormRow(
        "a count",
        "listed",
        "“how many”, “how often”, “number of”",
        "How many dogs did Amundsen take along?",
        "as a list; not measured by itself",
    ),
    FormRow(
        "the whole",
        "whole",
        "it names nothing, and asks to sum up, for what is main, or about the documents",
        "What are the main themes?",
        "no passage tells of all, reports on communities do; without such it is asked like a list",
    ),
    FormRow(
        "one thing or a list, of long documents",
        "long",
        "documents have `auto.long_chunks` (5) chunks or more, on average",
        "Who financed the Southern Cross expedition?",
        "what surrounds a passage says what it is about: of the code's chunks 82.5 % are among the"
        " first five (`graph` 73.9 %)",
    ),
    FormRow(
        "any but the whole, of a sparse graph",
        "sparse",
        "hardly any facts were found: there are fewer edges than chunks (`auto.sparse_edges`)",
        "Who designed the ship that carried the first party?",
        "where there are no edges, the others have nothing to go by: of the code's chunks without"
        " any, 83.7 % among the first five (`ppr` 67.9 %, `graph` none)",
    ),
)
"""The forms in the order in which they are told; the last two tell of the documents."""


def table() -> str:
    rows = [(mode.name, mode.row) for mode in MODES.values()]
    lines = [
        f"| `{name}`{' (default)' if name == DEFAULT else ''} | {row.questions} | {row.reads}"
        f" | {row.calls} |"
        for name, row in (*rows, (AUTO, AUTO_ROW))
    ]
    head = ["| mode | for questions | reads | calls of a model |", "|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


def forms_table() -> str:
    lines = [
        f"| {row.name} | {row.told} | {row.example} | `{row.mode}` | {row.why} |" for row in FORMS
    ]
    head = ["| form | how it is told | for example | mode | why |", "|---|---|---|---|---|"]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    print(forms_table() if "--forms" in sys.argv else table(), end="")
