"""The verdict on an answer: the documents answer a question, may answer it, or do not answer it."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.answer.citations import quoting_citations
from tgraph.model import AnswerJudgement, Judgement, Selection, Sentence
from tgraph.rendering import collapse_whitespace
from tgraph.resources import load_tables
from tgraph.settings import AnswerSettings

NO_EVIDENCE_SENTENCE = "There is no evidence for an answer in these documents."
UNCERTAIN_SENTENCE = "The documents may not say this. The nearest passages:"

LEAST_SHORT_CONFIDENCE = 0.5
"""The least probability to be right with which a short answer is shown."""


def no_evidence(question: str, language: str = "") -> str:
    """Return the no-evidence sentence in the set language, or else the question's language.

    Languages unknown to tgraph give the English sentence."""
    return _translate_sentence("no_evidence", NO_EVIDENCE_SENTENCE, question, language)


def introduce_passages(question: str, language: str = "") -> str:
    """Return the sentence that introduces passages of an uncertain answer, in the language that
    ``no_evidence`` chooses."""
    return _translate_sentence("uncertain", UNCERTAIN_SENTENCE, question, language)


def _translate_sentence(name: str, english: str, question: str, language: str) -> str:
    from tgraph.ingest.languages import detect_language

    code = language.lower().partition("-")[0] or detect_language(question)
    language_table = load_tables("languages").get(code)
    return str(language_table[name]) if isinstance(language_table, dict) else english


def is_uncertain(selection: Selection, settings: AnswerSettings) -> bool:
    """Return whether quoted sentences may not answer, by the reader's confidence; False where
    no reader judged the documents."""
    confidence = selection.judgement.confidence if selection.judgement else None
    return confidence is not None and confidence < settings.sure_confidence


def judge_answer(
    judgement: Judgement | None, sentences: Sequence[Sentence], *, uncertain: bool, disputed: bool
) -> AnswerJudgement:
    """Return the verdict on an answer's sentences, with the short answer if it may be shown.

    A short answer is shown beside a certain answer that states the short answer, unless the
    reader and the writer disagree (``disputed``) or the short answer is rather wrong than right."""
    if not sentences:
        return AnswerJudgement("no_evidence", judgement.confidence if judgement else None)
    verdict = AnswerJudgement(
        "uncertain" if uncertain else "answered", judgement.confidence if judgement else None
    )
    if judgement is None or uncertain or disputed or not _is_stated(judgement, sentences):
        return verdict
    short_confidence = judgement.short_confidence
    if short_confidence is not None and short_confidence < LEAST_SHORT_CONFIDENCE:
        return verdict
    return AnswerJudgement(verdict.verdict, verdict.confidence, judgement.answer, short_confidence)


def _is_stated(judgement: Judgement, sentences: Sequence[Sentence]) -> bool:
    """Return whether a sentence contains the short answer, or quotes the judged place."""
    words = collapse_whitespace(judgement.answer)
    place = judgement.place.iri if judgement.place else None
    return any(
        words in collapse_whitespace(sentence.text)
        or any(citation.evidence == place for citation in quoting_citations(sentence))
        for sentence in sentences
    )
