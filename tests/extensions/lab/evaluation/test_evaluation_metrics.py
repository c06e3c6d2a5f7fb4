"""RAGChecker's metrics and those of the retrieval: definitions, bounds, edges, files."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.shared_data import shared
from tgraph.answer.entailment import CONTRADICTION, ENTAILMENT, LABELS, NEUTRAL
from tgraph.errors import UsageError
from tgraph.extensions.lab.evaluation.assessments import Assessment, Evaluation
from tgraph.extensions.lab.evaluation.files import ragchecker_item, read_items
from tgraph.extensions.lab.evaluation.metrics import (
    GROUPS,
    METRICS,
    RETRIEVAL,
    ContextText,
    EvaluationItem,
    chosen_metrics,
    labels_for,
    mean_percent,
    metrics_of,
    retrieval_metrics,
)

LABEL = st.sampled_from(LABELS)
NAMES = ("response_claims", "gt_answer_claims", "answer2response", "response2answer")


@st.composite
def checked(draw, least: int = 0, contexts: int = 0) -> EvaluationItem:
    said = draw(st.integers(least, 5))
    right = draw(st.integers(least, 5))
    there = draw(st.integers(contexts, 4))

    def labels(count: int) -> tuple[str, ...]:
        return tuple(draw(st.lists(LABEL, min_size=count, max_size=count)))

    return EvaluationItem(
        "1",
        "Who?",
        "Somebody.",
        "Nobody.",
        tuple(ContextText(str(at), f"text {at}") for at in range(there)),
        response_claims=tuple((f"r{at}", "is", "so") for at in range(said)),
        gt_answer_claims=tuple((f"a{at}", "is", "so") for at in range(right)),
        answer2response=labels(said),
        response2answer=labels(right),
        retrieved2response=tuple(labels(there) for _ in range(said)),
        retrieved2answer=tuple(labels(there) for _ in range(right)),
    )


# --- the metrics ---


@given(checked())
def test_every_metric_is_a_share(item):
    found = metrics_of(item)
    assert set(found) == set(METRICS)
    assert len(METRICS) == 11
    assert all(0.0 <= value <= 1.0 for value in found.values())


@given(checked(), st.randoms())
def test_the_order_of_statements_and_contexts_does_not_matter(item, chance: random.Random):
    said, right = range(len(item.answer2response)), range(len(item.response2answer))
    orders = [chance.sample(o, len(o)) for o in (said, right, range(len(item.context)))]
    by_said, by_right, by_context = orders
    shuffled = replace(
        item,
        answer2response=tuple(item.answer2response[at] for at in by_said),
        response2answer=tuple(item.response2answer[at] for at in by_right),
        retrieved2response=tuple(
            tuple(item.retrieved2response[at][c] for c in by_context) for at in by_said
        ),
        retrieved2answer=tuple(
            tuple(item.retrieved2answer[at][c] for c in by_context) for at in by_right
        ),
    )
    assert metrics_of(shuffled) == metrics_of(item)


@given(checked(least=1, contexts=1))
def test_the_identities_of_the_definitions_hold(item):
    found = metrics_of(item)
    grounds = ("faithfulness", "hallucination", "self_knowledge")
    sorts = (
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "hallucination",
        "precision",
    )
    assert math.isclose(sum(found[name] for name in grounds), 1.0)
    assert math.isclose(sum(found[name] for name in sorts), 1.0)


@given(checked())
def test_only_entailment_counts(item):
    def turned(labels):
        return tuple({NEUTRAL: CONTRADICTION, CONTRADICTION: "Abstain"}.get(x, x) for x in labels)

    other = replace(
        item,
        answer2response=turned(item.answer2response),
        response2answer=turned(item.response2answer),
        retrieved2response=tuple(map(turned, item.retrieved2response)),
        retrieved2answer=tuple(map(turned, item.retrieved2answer)),
    )
    assert metrics_of(other) == metrics_of(item)


def test_each_metric_on_a_case_counted_by_hand():
    yes, no = ENTAILMENT, NEUTRAL
    item = EvaluationItem(
        "1",
        "Who?",
        "A.",
        "R.",
        (ContextText("0", "helps"), ContextText("1", "does not")),
        response_claims=(("a",), ("b",), ("c",), ("d",), ("e",)),
        gt_answer_claims=(("x",), ("y",), ("z",)),
        answer2response=(yes, no, no, no, yes),
        response2answer=(yes, no, no),
        retrieved2response=((yes, no), (yes, yes), (no, yes), (no, no), (no, no)),
        retrieved2answer=((yes, no), (yes, no), (no, no)),
    )
    assert metrics_of(item) == pytest.approx(
        {
            "precision": 2 / 5,
            "recall": 1 / 3,
            "f1": 4 / 11,
            "claim_recall": 2 / 3,
            "context_precision": 1 / 2,
            "context_utilization": 1 / 2,
            "noise_sensitivity_in_relevant": 1 / 5,
            "noise_sensitivity_in_irrelevant": 1 / 5,
            "hallucination": 1 / 5,
            "self_knowledge": 1 / 5,
            "faithfulness": 3 / 5,
        }
    )


@given(checked())
def test_without_statements_or_contexts_nothing_is_claimed(item):
    silent = replace(item, answer2response=(), retrieved2response=(), response_claims=())
    found = metrics_of(silent)
    assert [found[n] for n in ("precision", "f1", "faithfulness", "hallucination")] == [0.0] * 4
    bare = replace(
        item,
        context=(),
        retrieved2response=tuple(() for _ in item.answer2response),
        retrieved2answer=tuple(() for _ in item.response2answer),
    )
    found = metrics_of(bare)
    for name in (*GROUPS["retriever"], *GROUPS["generator"]):
        assert found[name] == 0.0


@given(checked(), st.sampled_from(METRICS))
def test_a_metric_needs_its_own_labels_alone(item, metric):
    bare = EvaluationItem("1", "Who?", "Somebody.", "Nobody.", item.context)
    bare = replace(bare, **{label: getattr(item, label) for label in labels_for([metric])})
    assert metrics_of(bare, [metric]) == {metric: metrics_of(item)[metric]}


def test_metrics_are_named_as_ragchecker_names_them():
    assert chosen_metrics([]) == chosen_metrics(["all_metrics"]) == METRICS
    assert chosen_metrics(["retriever_metrics"]) == chosen_metrics(["retriever"]) == (
        "claim_recall", "context_precision",
    )  # fmt: skip
    assert chosen_metrics(["faithfulness", "f1"]) == ("f1", "faithfulness")
    with pytest.raises(UsageError, match="no metric 'f2'"):
        chosen_metrics(["f2"])


def test_labels_that_lack_are_an_error():
    with pytest.raises(ValueError, match="not been checked"):
        metrics_of(EvaluationItem("1", "Who?", "A.", "R."))


def test_means_are_of_those_that_have_the_figure():
    assert mean_percent([{"f1": 0.5}, {}, {"f1": 1 / 3}], ["f1", "mrr"]) == {"f1": 41.7}
    assert mean_percent([], ["f1"]) == {}


# --- the retrieval ---


def ranked(*names: str) -> tuple[ContextText, ...]:
    return tuple(ContextText(f"c{at}", f"text of {n}", (n,)) for at, n in enumerate(names))


def gold(*documents: str, ranking: tuple[ContextText, ...]) -> dict[str, float]:
    item = EvaluationItem("1", "Where?", gold_documents=documents, ranking=ranking)
    return retrieval_metrics(item)


def test_recall_and_rank_of_documents():
    found = gold("b.md", "d.md", ranking=ranked("a.md", "a.md", "b.md", "c.md", "x/d.md"))
    assert found == {
        "recall@2": 0.5,
        "recall@5": 1.0,
        "recall@10": 1.0,
        "all_gold@8": 1.0,
        "mrr": 0.5,
    }
    nothing = dict.fromkeys(RETRIEVAL, 0.0)
    assert gold("b.md", ranking=()) == gold("b.md", ranking=ranked("a.md", "ab.md")) == nothing
    assert retrieval_metrics(EvaluationItem("1", "Where?", "There.")) == {}


@given(
    st.lists(st.sampled_from("abcdefgh"), max_size=12),
    st.sets(st.sampled_from("abcdefgh"), min_size=1),
)
def test_retrieval_figures_are_shares_and_grow_with_depth(order, wanted):
    found = gold(*sorted(wanted), ranking=ranked(*order))
    assert all(0.0 <= value <= 1.0 for value in found.values())
    assert found["recall@2"] <= found["recall@5"] <= found["recall@10"]
    assert (found["mrr"] > 0) == bool(wanted & set(order))


def test_a_passage_is_found_in_a_chunk_and_across_a_border():
    text = "It was cold. The Endurance sank on 21 November 1915, at five. Nobody was lost."
    item = EvaluationItem(
        "1",
        "When?",
        gold_passages=("the endurance sank on 21 november 1915",),
        context=(ContextText("0", "The Fram sank?"), ContextText("1", text)),
    )
    assert retrieval_metrics(item)["mrr"] == 0.5
    cut = replace(item, context=(ContextText("0", "They wept. The Endurance sank on 21"),))
    assert retrieval_metrics(cut)["mrr"] == 1.0
    other = replace(item, context=(ContextText("0", "The Endurance sailed on 5 December 1914."),))
    assert retrieval_metrics(other)["mrr"] == 0.0


# --- files ---


def test_the_worked_example_gives_the_same_figures():
    example = shared("ragchecker/checking_outputs.json")
    whole = json.loads(example.read_text("utf-8"))
    items = read_items(example)
    for item, row in zip(items, whole["results"], strict=True):
        assert metrics_of(item) == row["metrics"]
        kept = ragchecker_item(item, metrics_of(item))
        assert kept == row
    evaluation = Evaluation(tuple(Assessment(item, metrics_of(item)) for item in items))
    assert evaluation.metrics == whole["metrics"]
    assert evaluation.to_ragchecker() == whole


@settings(max_examples=examples(30))
@given(checked())
def test_what_is_written_is_read_again(tmp_path_factory, item):
    full = replace(
        item,
        gold_documents=("a.md",),
        session="urn:trustgraph:session:1",
        judges=("urn:trustgraph:agent:method:x:1",),
        ranking=(ContextText("c", "text", ("a.md", "A")),),
    )
    path = tmp_path_factory.mktemp("round") / "out.json"
    evaluation = Evaluation((Assessment(full, metrics_of(full)),))
    path.write_text(json.dumps(evaluation.to_ragchecker()), "utf-8")
    assert read_items(path) == [full]
    assert evaluation.approximate


QUESTION = {"query": "Who?", "gt_answer": "He."}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.json", json.dumps([QUESTION])),
        ("q.json", json.dumps({"questions": [QUESTION]})),
        ("q.jsonl", json.dumps({"question": "Who?", "answer": "He.", "id": 0}) + "\n\n"),
        ("q.toml", '[[question]]\nquery = "Who?"\ngt_answer = "He."\n'),
        ("q.json", "\ufeff" + json.dumps({"results": [{**QUESTION, "metrics": {"f1": 1}}]})),
    ],
)
def test_questions_come_in_several_forms(tmp_path, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    assert read_items(tmp_path / name) == [EvaluationItem("0", "Who?", "He.")]


def test_lines_of_questions_end_with_a_line_feed_and_with_nothing_else(tmp_path):
    """JSON may hold other characters that end lines elsewhere."""
    rows = ({"question": f"Who {end}?", "answer": "He."} for end in "\u2028\u2029\x85")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    (tmp_path / "q.jsonl").write_text(lines, "utf-8", newline="")
    assert [item.query for item in read_items(tmp_path / "q.jsonl")] == [
        f"Who {end}?" for end in "\u2028\u2029\x85"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "can't be read"),
        ("{}", "no list of questions"),
        ("[]", "holds no question"),
        ("[1]", "question 1: it"),
        ('[{"gt_answer": "He."}]', "question 1: query"),
        ('[{"query": "Who?"}]', "no gt_answer"),
        ('[{"query": "W?", "gt_answer": "H.", "response_claims": []}]', "no response"),
        (
            '[{"query": "W?", "gt_answer": "H.", "response": "R.", "answer2response": ["x"]}]',
            "not of the same length",
        ),
        (
            '[{"query": "W?", "gt_answer": "H.", "response": "R.", "gt_answer_claims": [["a"]],'
            ' "retrieved2answer": [["Neutral"]]}]',
            "one label for each retrieved context",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_with_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "q.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        read_items(path)
    assert "q.json" in str(caught.value)


def test_a_report_keeps_foreign_text_in_its_cell():
    item = EvaluationItem("1", "Who | <b>?\n# no", "He.", "R.")
    text = Evaluation((Assessment(item, error="It | broke."),)).to_markdown()
    assert "Who \\| &lt;b>? # no" in text
    assert "- Failed: question 1: It \\| broke." in text
    assert "failed" in text
