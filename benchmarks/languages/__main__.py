"""How well questions in other languages are answered without a language model.

    python -m benchmarks.languages [de fr es zh it] [--mode graph --mode basic --mode bm25 ...]
        [--together] [--graphs DIR] [--verbose]

Each folder here has documents of one language, our own prose, and ``LANGUAGE.toml`` beside it their
questions: fifteen with an answer, six that name what the texts know and ask what they don't say
(near), two of other subjects (far). Texts and questions were written before anything was run (the
last three near ones later, before what they measure); those of Italian were held back. What the
columns mean says ``benchmarks.answers``. With ``--together`` the texts of all languages are one
collection in chunks of 60 tokens, so that a mode has to find them.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
from pathlib import Path

from benchmarks.answers import Judged, QuestionSet, figures, measure, read_questions

HERE = Path(__file__).parent
SMALL_CHUNKS = "[chunk]\nsize = 60\noverlap = 0\n"
LANGUAGES = ("de", "fr", "es", "zh", "it")
MODES = ("graph", "auto", "basic", "bm25", "local")
COLUMNS = ("right", "right first", "cites", "wrongly refused", "near", "far", "CPU s a question")


def question_set(language: str) -> QuestionSet:
    """The documents of a language and their questions."""
    return read_questions(language, HERE / language, HERE / f"{language}.toml")


def among_all(language: str, folder: Path) -> QuestionSet:
    """The same questions over the documents of all languages, which are copied to the folder."""
    if not folder.is_dir():
        for each in LANGUAGES:
            shutil.copytree(HERE / each, folder, dirs_exist_ok=True)
    return read_questions(language, folder, HERE / f"{language}.toml")


def row(language: str, mode: str, judged: list[Judged]) -> str:
    """The figures of one language and mode as a row of a table."""
    found = figures(judged)
    return f"| {language} | {mode} | {' | '.join(found[column] for column in COLUMNS)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=", ".join(LANGUAGES))
    parser.add_argument("--mode", action="append", dest="modes")
    parser.add_argument("--together", action="store_true", help="over the texts of all languages")
    parser.add_argument("--graphs", type=Path, help="where the indexes are kept and found again")
    parser.add_argument("--verbose", action="store_true", help="what was answered, and not")
    options = parser.parse_args()
    if unknown := set(options.languages) - set(LANGUAGES):
        parser.error(f"There is no {', '.join(sorted(unknown))}.")
    print(f"| language | mode | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    with contextlib.ExitStack() as stack:
        root = options.graphs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if options.together:
            (root / "together").mkdir(parents=True, exist_ok=True)
            (root / "together" / "tgraph.toml").write_text(SMALL_CHUNKS, "utf-8")
        for language in options.languages or LANGUAGES:
            asked = question_set(language)
            if options.together:
                asked = among_all(language, root / "documents")
            for mode in options.modes or MODES:
                graph = root / ("together" if options.together else language)
                judged, _ = measure(asked, mode, graph)
                print(row(language, mode, judged), flush=True)
                if options.verbose:
                    _tell(judged)


def _tell(judged: list[Judged]) -> None:
    for each in judged:
        mark = "right" if each.right else "refused" if each.refused else "wrong"
        print(f"  {mark:8}{each.kind:11}{each.question} → {each.answer}")


if __name__ == "__main__":
    main()
