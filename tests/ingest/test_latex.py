"""LaTeX as it is printed; equations as they are written; what isn't read is a loss."""

from __future__ import annotations

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.files import load
from tgraph.ingest.segments import segments
from tgraph.model import Document

PAPER = r"""\documentclass{article} % a comment
\usepackage[utf8]{inputenc}
\newcommand{\ship}[1]{the \emph{#1}}
\def\km{kilometres}
\title{Of Ships}
\author{Ann Doe \and Bo Lund}
\begin{document}
\maketitle
\begin{abstract}
It is short.
\end{abstract}
\section{Builders}\label{sec:b}
\looseness=-1 We saw \ship{Fram}, 12~\km{} off K\"oln --- see~\cite{doe,roe}
and Section~\ref{sec:b}.\footnote{In \textbf{1893}.} It cost 5\% of \$10.
% nothing
Then $x^2$ and
\begin{equation}\label{e}
a = \frac{b}{2}
\end{equation}

\begin{itemize}
\item One
  \begin{enumerate}
  \item Two
  \end{enumerate}
\end{itemize}
\begin{table}
\caption{Sizes}
\begin{tabular}{l|cc}
\toprule
Ship & \multicolumn{2}{c}{Year} \\
\midrule
\multirow{2}{*}{Fram} & 1892 & a \\
 & 1893 & b \\
\bottomrule
\end{tabular}
\end{table}
\begin{figure}\includegraphics[width=3cm]{coast.png}\caption{The coast.}\end{figure}
\begin{verbatim}
x = 1 % kept
\end{verbatim}
\input{more}
\begin{thebibliography}{9}
\bibitem{doe} Doe, A. (1999). On ships. Sea Press, pp. 3--4.
\end{thebibliography}
\end{document}
Never.
"""


def read(text: str) -> tuple[str, Document]:
    document = load(text.encode(), "a.tex")
    assert document.report is not None
    assert not document.report.warnings, document.report
    return document.pages[0].text, document


def loss_counts(document: Document) -> dict[str, int]:
    assert document.report is not None
    return {loss.kind: loss.count for loss in document.report.losses}


def test_a_paper_is_read_as_it_is_printed() -> None:
    text, document = read(PAPER)
    assert text == (
        "# Of Ships\n\nAnn Doe, Bo Lund\n\n## Abstract\n\nIt is short.\n\n## Builders\n\n"
        "We saw the Fram, 12 kilometres off Köln — see [cite: doe, roe] and Section [ref: sec:b]."
        "[1] It cost 5% of $10. Then $x^2$ and\n\n$a = \\frac{b}{2}$\n\n[1] In 1893.\n\n"
        "- One\n  1. Two\n\nSizes\n\nShip | Year\nFram | 1892 | a\nFram | 1893 | b\n\n"
        "[image: coast.png]\n\nThe coast.\n\n```\nx = 1 % kept\n```\n\n[included file: more]\n\n"
        "## References\n\n[doe] Doe, A. (1999). On ships. Sea Press, pp. 3–4."
    )
    assert document.title == "Of Ships"
    assert document.metadata["author"] == "Ann Doe, Bo Lund"
    assert loss_counts(document) == {"image": 1, "included file": 1, "comment": 2}
    found = segments(text, "", document.pages[0].blocks)
    assert found[-1].kind == "reference"
    assert not any("[cite" in s.text and "Section" not in s.text for s in found)


def test_a_fragment_without_a_document_is_read() -> None:
    assert (
        read("Text of \\textit{one} \\unknown{part}.\n\nMore.")[0] == "Text of one part.\n\nMore."
    )


def test_what_is_not_closed_is_read_without_commands_and_counted() -> None:
    text, document = read("First.\n\nHere \\emph{it breaks.\n\n\\section{Next}\n\nLast.")
    assert text == "First.\n\nHere it breaks.\n\n## Next\n\nLast."
    assert loss_counts(document) == {"damaged part": 1}


def test_commands_that_grow_without_end_are_not_expanded() -> None:
    bomb = r"\newcommand{\b}{" + r"\a" * 900 + r"}\newcommand{\a}{" + "ha " * 900 + r"}Text. \b \b"
    document = load(bomb.encode(), "a.tex")
    assert document.report is not None
    assert "aren't expanded" in document.report.warnings[0]


@pytest.mark.parametrize("text", ["% only\n", "\0", "\\maketitle"])
def test_latex_without_text_is_an_error(text: str) -> None:
    with pytest.raises(IngestError):
        load(text.encode(), "a.tex")


@pytest.mark.parametrize(
    "part", ["{", "}", "$", "\\begin{a}", "\\end{a}", "\\item ", "\\\\", "&", "\\cite", "\\["]
)
def test_spoilt_latex_takes_little_time(part: str) -> None:
    assert "Text." in load(f"Text.\n\n{part * 2000}".encode(), "a.tex").pages[0].text
