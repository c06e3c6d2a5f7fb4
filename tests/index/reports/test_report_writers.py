"""Reports by quoting and by a model; what is kept of a draft and under which IRI."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.report_builders import child_of, details_of, edge_of, entities_of, evidence_of
from tgraph.errors import ModelError
from tgraph.index.reports.context import EdgeDetail, EntityDetail, ReportContext, SubReport
from tgraph.index.reports.extractive import ExtractiveWriter
from tgraph.index.reports.language_model import ModelReportWriter
from tgraph.index.reports.packing import Sizes, pack_details
from tgraph.index.reports.report import (
    DraftFinding,
    ReportDraft,
    ReportWriter,
    as_draft,
    made_report,
    report_key,
)
from tgraph.model import Community
from tgraph.models.base import Call, ChatRequest
from tgraph.models.reply_cache import CachedChat
from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens
from tgraph.testing import ScriptedModel

STEP = "community_report"
PAIRS = [(1, 2), (1, 3), (1, 4), (2, 3)]


def context_of(pairs: list[tuple[int, int]] = PAIRS, **options: Any) -> ReportContext:
    return pack_details(details_of(pairs, **options), list, 100_000, Sizes(DEFAULT_ENCODING))


def quoted(*sentences: tuple[int, int, str]) -> ReportContext:
    """A community whose edges are stated by these sentences."""
    details = details_of([(one, other) for one, other, _ in sentences])
    edges = []
    for place, (one, other, text) in enumerate(sentences):
        edge = edge_of(one, other)
        edges.append(EdgeDetail(edge, 2, (evidence_of(edge, text, 1000 * place),)))
    return ReportContext(details.community, tuple(entities_of(details)), tuple(edges))


def reply(*findings: dict[str, Any], **changes: Any) -> str:
    rows = list(findings) or [finding()]
    changes.setdefault("findings", rows)
    fields: dict[str, Any] = {
        "title": "Four friends",
        "summary": "They know one another.",
        "rating": 4,
        "rating_explanation": "Few know them.",
    }
    return json.dumps({**fields, **changes})


def finding(*citations: str, **changes: Any) -> dict[str, Any]:
    cited = list(citations) or ["R1"]
    row = {"summary": "One knows two.", "explanation": "So it is said.", "citations": cited}
    return {**row, **changes}


def written(text: str, context: ReportContext | None = None, **options: Any) -> ReportDraft:
    writer = ModelReportWriter(ScriptedModel({STEP: [text] * 2}), **options)
    return writer.write(context or context_of())


# --- drafts -------------------------------------------------------------------------------------

IDS = st.sampled_from(["E1", "E4", "R1", "R2", "R4", "R9", "E0", "S1", "C1", "", "R1.1", "r1"])


@given(st.lists(st.lists(IDS, max_size=4), max_size=5))
def test_only_citations_that_were_shown_are_kept_and_the_others_counted(cited):
    context = context_of()
    findings = tuple(DraftFinding("A", "B.", tuple(ids)) for ids in cited)
    made = made_report(ReportDraft("T", "S.", 5.0, "", findings), context, "k")
    shown = context.ids()
    kept = [ids for ids in cited if any(i in shown for i in ids)]
    assert [set(f.cites) for f in made.report.findings] == [
        {shown[i] for i in ids if i in shown} for ids in kept
    ]
    invented = sum(i not in shown for ids in cited for i in ids)
    assert made.dropped.get("citation of an id that was not shown", 0) == invented
    assert made.dropped.get("finding without a citation that holds", 0) == len(cited) - len(kept)
    rests_on = context.sources()
    for report_finding, sources in zip(made.report.findings, made.finding_sources, strict=True):
        assert set(sources) == {e for iri in report_finding.cites for e in rests_on[iri]}
        assert set(sources) <= set(made.sources)


def test_a_report_rests_on_everything_that_was_shown():
    context = context_of()
    made = made_report(ExtractiveWriter().write(context), context, "k")
    shown = {e.iri for edge in context.edges for e in edge.evidence}
    assert set(made.sources) == shown | {e for entity in context.entities for e in entity.evidence}


def test_a_finding_that_cites_a_finding_of_a_part_rests_on_that_finding():
    child = child_of([1, 2])
    context = ReportContext(Community("urn:x:c", 0, (), ()), (), (), (), (SubReport(child.report),))
    drafted = DraftFinding("A", "B.", ("S1.2",))
    made = made_report(ReportDraft("T", "S.", 5.0, "", (drafted,)), context, "k")
    assert made.finding_sources == ((child.report.findings[1].iri,),)
    assert made.report.findings[0].cites == (child.report.findings[1].iri,)
    assert made.sources == (child.report.iri,)


def test_the_iri_is_that_of_the_content():
    context, writer = context_of(), ExtractiveWriter()
    draft, key = writer.write(context), report_key(context, writer)
    made = made_report(draft, context, key)
    assert made == made_report(draft, context, key)
    assert made.report.iri.startswith("urn:trustgraph:report:")
    for number, one in enumerate(made.report.findings):
        assert one.iri == f"urn:trustgraph:finding:{made.report.iri[-40:]}:{number}"
    others = [
        made_report(draft, context, "another key"),
        made_report(draft, context_of([*PAIRS, (3, 4)]), key),
        made_report(ReportDraft("Another", "S.", 5.0, "", draft.findings), context, key),
    ]
    assert len({made.report.iri, *(other.report.iri for other in others)}) == 4


def test_a_report_goes_back_into_the_draft_it_came_from():
    context = context_of()
    draft = ReportDraft("T", "S.", 5.0, "W.", (DraftFinding("A", "B.", ("E1", "R1", "R2")),))
    report = made_report(draft, context, "k").report
    assert made_report(as_draft(report, context), context, "k").report == report


# --- quoting ------------------------------------------------------------------------------------


def test_the_extractive_report_is_made_of_whole_sentences_of_the_sources():
    context = quoted(
        (1, 2, "Entity 001 is the sister of Entity 002."),
        (1, 3, "A heading"),
        (1, 4, "She had met Entity 004 in the spring."),
        (2, 3, "Entity 002 wrote to Entity 003 every week, and kept the answers."),
        (2, 4, "name: Entity 002; born: 1900; place: Entity 004"),
        (3, 4, "In the end Entity 003 married Entity 004."),
    )
    draft = ExtractiveWriter().write(context)
    quotes = [e.quote for edge in context.edges for e in edge.evidence]
    told = [draft.summary, *(f.explanation for f in draft.findings)]
    rest = " ".join(told)
    for quote in quotes:
        rest = rest.replace(quote, "")
    assert not rest.strip()
    assert "A heading" not in " ".join(told)
    assert "name:" not in draft.summary
    assert draft.summary.startswith("Entity 001 is the sister of Entity 002.")
    assert draft.title == "Entity 001, Entity 002 and Entity 003"
    assert 0 <= draft.rating <= 10


def test_an_extractive_finding_rests_on_exactly_what_it_quotes():
    context = quoted(*((1, n, f"Entity 001 went with Entity {n:03d} to sea.") for n in range(2, 9)))
    made = made_report(ExtractiveWriter().write(context), context, "k")
    by_iri = {e.iri: e.quote for edge in context.edges for e in edge.evidence}
    assert made.report.findings
    for one, sources in zip(made.report.findings, made.finding_sources, strict=True):
        assert sources
        assert all(by_iri[source] in one.explanation for source in sources)
        assert sum(len(by_iri[s]) for s in sources) + len(sources) - 1 == len(one.explanation)


def test_a_long_quote_gives_the_sentence_that_names_most():
    text = "Much had happened before. " * 20 + "Entity 001 met Entity 002 there. " + "Then. " * 20
    draft = ExtractiveWriter().write(quoted((1, 2, text)))
    assert draft.summary == "Entity 001 met Entity 002 there."


def test_without_any_evidence_the_edges_speak():
    edge = EdgeDetail(edge_of(1, 2), 2, ())
    entities = tuple(entities_of(details_of([(1, 2)])))
    context = ReportContext(Community("urn:x:c", 0, (), ()), entities, (edge,))
    draft = ExtractiveWriter().write(context)
    assert draft.findings[0].explanation == "Entity 001 knows Entity 002."
    assert draft.findings[0].citations == ("R1",)


def test_parts_are_reported_by_their_own_reports():
    child = child_of([1, 2])
    context = quoted((1, 2, "Entity 001 met Entity 002."), (1, 3, "It is a part."))
    context = ReportContext(
        context.community, context.entities, context.edges, (), (SubReport(child.report),)
    )
    draft = ExtractiveWriter().write(context)
    assert draft.findings[0].summary == child.report.title
    assert draft.findings[0].citations == ("S1",)
    assert "It is a part." not in draft.summary, "it is said by the part"


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(6, 9), st.text(max_size=60)), min_size=1))
def test_every_community_gets_a_report(rows):
    distinct = {(one, other): text for one, other, text in rows}
    context = quoted(*((one, other, text) for (one, other), text in distinct.items()))
    made = made_report(ExtractiveWriter().write(context), context, "k")
    assert made.report.title
    assert made.report.summary
    assert made.report.findings
    assert made.dropped == {}


def test_other_scripts_are_joined_in_their_own_way():
    entities = tuple(EntityDetail(f"urn:x:{n}", n, "人", 1) for n in ("北京", "上海"))
    context = ReportContext(Community("urn:x:c", 0, (), ()), entities, ())
    assert ExtractiveWriter().write(context).title == "北京、上海"


# --- by a model ---------------------------------------------------------------------------------


def test_the_model_sees_the_rows_and_its_report_is_read():
    model = ScriptedModel({STEP: reply(finding("R1", "E2"))})
    calls: list[Call] = []
    context = context_of(claims=1)
    draft = ModelReportWriter(model).write(context, calls.append)
    (request,) = model.requests
    shown = request.messages[1]["content"]
    for lines in context.rows().values():
        assert "\n".join(lines) in shown
    assert request.max_tokens == 2_000
    assert len(calls) == 1
    assert draft.findings == (DraftFinding("One knows two.", "So it is said.", ("R1", "E2")),)
    assert (draft.title, draft.rating, dict(draft.dropped)) == ("Four friends", 4.0, {})


def test_the_whole_prompt_keeps_within_the_budget():
    model = ScriptedModel()
    writer = ModelReportWriter(model)
    details = details_of([(a, b) for a in range(40) for b in range(a)])
    context = pack_details(details, list, 8_000 - writer.overhead, Sizes(DEFAULT_ENCODING))
    writer.write(context)
    sent = "\n".join(message["content"] for message in model.requests[0].messages)
    assert 6_000 < count_tokens(sent) <= 8_000


@pytest.mark.parametrize(
    ("row", "citations"),
    [
        (finding("[R1]", " E1 "), ("R1", "E1")),
        (finding(citations="R1, E1"), ("R1", "E1")),
        (finding("R1", explanation="So it is [R2, E1]."), ("R1", "R2", "E1")),
        (finding("R1", explanation="So it is [Data: Relationships (R2)]."), ("R1",)),
        (finding("R1", explanation="So it is (Data: R2; Entities: E1)."), ("R1",)),
        (finding(citations=[7, "R1"]), ("7", "R1")),
    ],
)
def test_citations_are_read_in_many_forms(row, citations):
    (read,) = written(reply(row)).findings
    assert set(citations) <= set(read.citations)
    assert "R2, E1" not in read.explanation


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I would rather not.", "holds no JSON"),
        (reply(title=" "), "no title"),
        (reply(finding("R77"), finding("made up")), "none of its findings cites"),
        (reply(finding(explanation="word " * 3_000)), "longer than 2,000 tokens"),
        (reply()[:60], "can't be used"),
        (reply(findings="none"), "can't be used"),
    ],
)
def test_a_reply_that_is_of_no_use_is_an_error(text, problem):
    with pytest.raises(ModelError, match=problem):
        written(text)


def test_of_a_reply_that_was_cut_off_the_whole_findings_count():
    text = reply(finding("R1"), finding("R2"), finding("R3"))
    draft = written(text[: text.rindex("citations")])
    assert [f.citations for f in draft.findings] == [("R1",), ("R2",)]
    assert draft.dropped["reply that was cut off"] == 1


@pytest.mark.parametrize(
    ("rating", "read"), [(11, 10), (-3, 0), ("7.5", 7.5), ("high", 5), (None, 5)]
)
def test_a_rating_is_a_number_from_0_to_10(rating, read):
    assert written(reply(rating=rating)).rating == read


def test_a_useless_reply_is_not_kept_for_the_next_run(tmp_path):
    def say(request: ChatRequest) -> str:
        return reply(finding("R99"))

    model = ScriptedModel({STEP: say})
    writer = ModelReportWriter(CachedChat(model, tmp_path))
    for calls in (1, 2):
        with pytest.raises(ModelError):
            writer.write(context_of())
        assert model.count(STEP) == calls
    good = ModelReportWriter(CachedChat(ScriptedModel({STEP: [reply()]}), tmp_path))
    assert good.write(context_of()) == good.write(context_of())


def test_another_prompt_model_or_option_is_another_key(tmp_path):
    (tmp_path / f"{STEP}.md").write_text("=== system\nStep: x\n=== user\n{{edges}}\n")
    model, other = ScriptedModel(), ScriptedModel(name="another")
    writers: list[ReportWriter] = [
        ModelReportWriter(model),
        ModelReportWriter(other),
        ModelReportWriter(model, tmp_path),
        ModelReportWriter(model, max_tokens=500),
        ModelReportWriter(model, seed=1),
        ExtractiveWriter(),
    ]
    assert len({report_key(context_of(), writer) for writer in writers}) == len(writers)
    assert report_key(context_of(), writers[0]) != report_key(context_of(words=3), writers[0])


def test_the_scripted_model_reports_what_it_is_shown():
    context = context_of()
    draft = ModelReportWriter(ScriptedModel()).write(context)
    assert draft.title == "Entity 001 and Entity 002 and Entity 003"
    made = made_report(draft, context, "k")
    assert len(made.report.findings) == 4
    assert made.dropped == {}
