"""The record of summaries: each sentence leads to the evidence whose descriptions it rests on."""

from __future__ import annotations

from tgraph import vocabulary as v
from tgraph.extract.summaries import Summary
from tgraph.index.descriptions import Described
from tgraph.record.activities import Authorship, state_entity
from tgraph.store.statements import Writer, iri


def record_summary(
    out: Writer, described: Described, summary: str, text: Summary, how: Authorship
) -> None:
    """State the making of the summary with that IRI, the summary, and its sentences in order."""
    activity = how.activity(
        "summarising",
        ("Summarising",),
        "Summary of descriptions",
        summary,
        dropped=text.dropped,
    )
    activity.state(out)
    originals = described.originals
    state_entity(
        out,
        summary,
        "DescriptionSummary",
        (v.tg("text"), text.text),
        (v.prov("generatedAtTime"), how.ended),
        (v.tg("summarises"), iri(described.subject)),
        by=activity.iri,
        origins=sorted({one for original in originals for one in original.evidence}),
    )
    for index, sentence in enumerate(text.sentences):
        name = f"{summary}:{index}"
        state_entity(
            out,
            name,
            "SummarySentence",
            (v.tg("text"), sentence.text),
            (v.dcterms("isPartOf"), iri(summary)),
            (v.tg("index"), index),
            by=activity.iri,
            origins=sorted({one for at in sentence.rests_on for one in originals[at].evidence}),
        )
        out.add(summary, (v.tg("sentence"), iri(name)))
