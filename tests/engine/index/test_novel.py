"""A Chinese tale, of the kind that GraphRAG's and nano-graphrag's users index, with a model's
replies recorded: names, communities, reports and answers in Chinese, exact to characters.

The tale, of ten chapters, is this project's own; so are the replies, in the forms in which
nano-graphrag's cache and tgraph's answers have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.corpora import opened
from tests.support.paths import REPOSITORY
from tgraph.engine.graph import KnowledgeGraph
from tgraph.model import Answer
from tgraph.testing import RecordedModel, read_recorded

FOLDER = REPOSITORY / "tests/support/novel_zh"
TALE = FOLDER / "渡口.md"
HAN = re.compile(r"[一-鿿]")
NAMES = ("周长河", "周小满", "孙福生", "沈鹤年", "马三爷", "陆秋白", "何四喜", "李阿梅", "钱秉文")
ANSWERED = (
    ("local", "马三爷私卖了多少官盐？", "三万六千斤"),
    ("graph", "马三爷私卖了多少官盐？", "三万六千斤"),
    ("local", "李阿梅是谁的女儿？", "李大成"),
    ("global", "老渡口的石桥是谁捐钱、谁做工造的？", "石匠们造石桥"),
)


@pytest.fixture(scope="module")
def tale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("novel")
    model = RecordedModel(read_recorded(FOLDER / "replies.json"))
    settings = {"chunk.size": 250, "chunk.overlap": 0, "extract.gleanings": 0}
    with opened(folder, model, settings, create=True) as kg:
        report = kg.index([TALE])
        assert not report.failed
        yield kg


def exact(answer: Answer) -> None:
    """Each citation is what the text says between its code points."""
    text = TALE.read_text("utf-8")
    cited = [c for sentence in answer.sentences for c in sentence.citations]
    assert cited
    for citation in cited:
        assert text[citation.start : citation.end] == citation.quote
        assert HAN.search(citation.quote)


def test_names_communities_and_reports_are_chinese(tale: KnowledgeGraph) -> None:
    labels = _values(tale, "SELECT ?l WHERE { ?e a tg:Entity ; rdfs:label ?l }")
    assert labels >= set(NAMES)
    titles = _values(tale, "SELECT ?l WHERE { ?r a tg:CommunityReport ; rdfs:label ?l }")
    assert titles & {"老渡口的石桥", "清水镇的账册", "李阿梅", "钱秉文与收条"}
    assert all(map(HAN.search, titles))


def _values(kg: KnowledgeGraph, query: str) -> set[str]:
    return {row[0].value for row in kg.sparql(query)}  # type: ignore[union-attr]


@pytest.mark.parametrize(("mode", "question", "said"), ANSWERED)
def test_answers_are_cited_to_code_points(
    tale: KnowledgeGraph, mode: str, question: str, said: str
) -> None:
    answer = tale.ask(question, mode)
    assert said in answer.text
    exact(answer)
    assert tale.replay(answer.session).is_same


@pytest.mark.slow
def test_a_question_without_the_model_reads_the_same_graph(
    tale: KnowledgeGraph, tmp_path: Path
) -> None:
    with opened(tmp_path, create=True) as kg:
        kg.index([TALE])
        answer = kg.ask("周长河在镇公所里关了多少天？", "graph")
        assert "四十三天" in answer.sentences[0].text
        exact(answer)
        for question, said in (
            ("石桥造了多久？", "两年零四个月"),
            ("李阿梅是谁的女儿？", "李大成"),
        ):
            answer = kg.ask(question, "graph", history=())
            assert said in answer.sentences[0].text
            exact(answer)
        refused = kg.ask("红楼梦的作者是谁？", "graph", history=())
        assert refused.no_evidence
        assert HAN.search(refused.text)
