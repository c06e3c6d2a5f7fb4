"""What to do about a question in another language than the documents."""

from __future__ import annotations

from tgraph.ingest.languages import (
    UNDETERMINED,
    display_language,
    identify_language,
    signs_of_english,
)
from tgraph.resources import load_tables
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.lexicon import count_frequencies

_ENGLISH = (
    "The question seems to be in {question}, but most of the documents are in {documents}. Without"
    " a language model, a question in another language hardly finds them: ask in the language of"
    " the documents, or use a language model (chat.base_url) or embeddings of many languages"
    ' (embedding.provider = "openai").'
)
_SHARE = 0.5
"""Share of the texts from which on they are in the question's language."""
_FEW_WORDS = 3
"""Words below which a question may be names alone."""
_NAMED = 5
"""Languages of documents that are named."""


def describe_language_gap(question: str, context: Context) -> str:
    """Return a note where most texts are in other languages than the question and vectors are
    English only; empty otherwise.

    The note is in the question's language if tgraph has texts in that language, else in English."""
    counts = count_frequencies(context)
    tags = counts.language_tags
    tag = identify_language(question)
    if tag == "en" and not signs_of_english(question):
        if question.isascii() or len(question.split()) < _FEW_WORDS:
            return ""
        tag = f"{UNDETERMINED}-Latn"
    if not counts.embeds_english or not tags:
        return ""
    if tags.get(tag, 0) >= _SHARE * sum(tags.values()):
        return ""
    table = load_tables("languages").get(tag)
    template, language = (table["other_language"], tag) if table else (_ENGLISH, "en")
    others = [display_language(each, language) for each in tags if each != tag][:_NAMED]
    return str(template).format(
        question=display_language(tag, language), documents=", ".join(others)
    )
