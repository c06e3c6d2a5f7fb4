"""Pictures of answers: within a bound on their width, whole in what is cited, and harmless."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx import DiGraph

from tests.support.corpora import made
from tests.support.examples import examples
from tgraph.explain.render.svg import NARROW, WIDE, fit_text, render_svg, text_width
from tgraph.extensions.evidence.layout import layout_figures, reduce_graph, to_svg
from tgraph.extensions.evidence.picture import Picture, PictureNode, to_dot

TEXT = (
    "Marie Curie discovered Polonium in Paris. Pierre Curie met Marie Curie in Paris. "
    "Marie Curie led the laboratory. Pierre Curie taught in Paris <b>& elsewhere</b>.\n"
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("pictures")
    with made(folder, {"curie.md": TEXT}, scripted=True) as (kg, _):
        yield kg


@pytest.mark.parametrize("mode", ["graph", "global", "drift", "raptor", "bypass"])
def test_what_is_cited_is_in_the_picture(graph, mode):
    answer = graph.ask("What did Marie Curie discover in Paris?", mode, history=[])
    image = ElementTree.fromstring(graph.export(answer.session, "svg"))
    assert image.get("width") == str(WIDE.width)
    shown = " ".join(title.text or "" for title in image.iter(f"{SVG}title"))
    assert [s for s in answer.sentences if s.citations] or mode == "bypass"
    dot = graph.export(answer.session, "dot").decode()
    for sentence in answer.sentences:
        for citation in sentence.citations:
            for iri in (citation.edge_selection, citation.chunk, citation.document, *citation.via):
                if not iri.startswith(("urn:trustgraph:entity:", "urn:trustgraph:edge:")):
                    assert iri in shown, mode
                    assert iri in dot


def test_a_picture_is_made_of_an_answer_only(graph):
    answer = graph.ask("What did Marie Curie discover in Paris?", history=[])
    image = graph.export(answer.session, "svg").decode()
    assert "Edge selection" in image
    assert "Candidate" not in image
    assert "<b>" not in image


def drawn(chains: list[list[int]], label: str) -> Picture:
    """A picture of sentences that cite pieces of evidence, each of a chunk of its own or shared."""
    nodes = [PictureNode("urn:answer", "entity", "Answer", label)]
    arrows: set[tuple[int, int, str]] = set()
    found: list[tuple[int, ...]] = []
    places: dict[str, int] = {}

    def place(iri: str, kind: str) -> int:
        if iri not in places:
            places[iri] = len(nodes)
            nodes.append(PictureNode(iri, "entity", kind, label))
        return places[iri]

    for number, cited in enumerate(chains):
        said = place(f"urn:sentence:{number}", "Sentence")
        chosen = place(f"urn:item:{number % 3}", "ItemSelection")
        arrows |= {(0, said, "sentence"), (said, chosen, "wasDerivedFrom")}
        for one in cited:
            evidence = place(f"urn:evidence:{one}", "Evidence")
            chunk = place(f"urn:chunk:{one // 4}", "Chunk")
            arrows |= {(chosen, evidence, "wasDerivedFrom"), (evidence, chunk, "wasDerivedFrom")}
            found.append((said, chosen, evidence, chunk))
    return Picture(tuple(nodes), tuple(sorted(arrows)), tuple(found))


def right_edge(image: bytes) -> float:
    """How far to the right anything of the image reaches."""
    found = [0.0]
    for part in ElementTree.fromstring(image).iter():
        if part.tag == f"{SVG}ellipse":
            found.append(float(part.attrib["cx"]) + float(part.attrib["rx"]))
        elif part.tag == f"{SVG}rect" and part.get("x"):
            found.append(float(part.attrib["x"]) + float(part.attrib["width"]))
        elif part.tag == f"{SVG}path":
            found += [float(x) for x in re.findall(r"[MH](-?[\d.]+)", part.attrib["d"])]
    return max(found)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 60), max_size=12, unique=True), max_size=9),
    st.text(max_size=80),
)
def test_pictures_stay_in_their_width_and_leave_nothing_out(chains, label):
    picture = drawn(chains, label)
    for frame in (WIDE, NARROW):
        image = render_svg(layout_figures(picture, frame), frame)
        assert right_edge(image) <= frame.width
        titles = {f.caption for f in layout_figures(picture, frame)}
        assert not titles or "All of it, by kind" in titles
    shown = "\n".join(
        title.text or "" for title in ElementTree.fromstring(to_svg(picture)).iter(f"{SVG}title")
    ).split("\n")
    for chain in picture.chains:
        assert {picture.nodes[place].iri for place in chain} <= set(shown)


def test_no_figure_is_higher_than_a_page_shows_legibly():
    picture = drawn([list(range(60))] * 9, "What was said")
    assert max(figure.height for figure in layout_figures(picture)) < 1000


def test_what_derives_in_a_circle_is_drawn_too():
    nodes = tuple(
        PictureNode(f"urn:{n}", "entity", k, "") for n, k in enumerate(("Sentence", "A", "B"))
    )
    links = ((0, 1, "wasDerivedFrom"), (1, 2, "wasDerivedFrom"), (2, 1, "wasDerivedFrom"))
    assert len(layout_figures(Picture(nodes, links, ((0, 1, 2),)))) == 2
    assert layout_figures(Picture((), ())) == []
    assert ElementTree.fromstring(to_svg(Picture((), ()))).get("width") == "720"


def test_the_same_picture_is_drawn_each_time():
    picture = drawn([[0, 4, 9], [4, 20, 30, 40, 50], [9]], "What was said")
    assert to_svg(picture) == to_svg(picture)


def test_what_a_longer_way_says_as_well_is_left_out():
    circle = DiGraph([(1, 2), (2, 3), (1, 3), (3, 4), (4, 3)])
    assert set(reduce_graph(circle).edges) == {(1, 2), (2, 3), (3, 4)}


def test_arrows_pass_beside_what_they_do_not_lead_to():
    """Sentence 0 leads past a full row of other things straight to the last."""
    kinds = ("Sentence", "Sentence", "A", "A", "A", "A", "B")
    nodes = tuple(PictureNode(f"urn:{n}", "entity", kind, str(n)) for n, kind in enumerate(kinds))
    links = [(0, 6), *((1, n) for n in (2, 3, 4, 5)), *((n, 6) for n in (2, 3, 4))]
    arrows = tuple((s, t, "wasDerivedFrom") for s, t in sorted(links))
    picture = Picture(nodes, arrows, ((0, 6), (1, 2, 3, 4, 5, 6)))
    for frame in (WIDE, NARROW):
        image = ElementTree.fromstring(render_svg(layout_figures(picture, frame)[1:], frame))
        ovals = [
            [float(part.attrib[name]) for name in ("cx", "cy", "rx", "ry")]
            for part in image.iter(f"{SVG}ellipse")
        ]
        for path in image.iter(f"{SVG}path"):
            for x, y in vertical(path.attrib["d"]):
                assert not any(
                    abs(x - cx) < rx * 0.9 and abs(y - cy) < ry * 0.9 for cx, cy, rx, ry in ovals
                )


def vertical(path: str) -> list[tuple[float, float]]:
    """The ends of the upright parts of a path."""
    found, x = [], 0.0
    for command, said in re.findall(r"([MCV])([^MCV]*)", path):
        numbers = [float(number) for number in NUMBER.findall(said)]
        if command == "V":
            found.append((x, numbers[0]))
        else:
            x = numbers[-2]
            found.append((x, numbers[-1]))
    return found


@given(st.text(), st.lists(st.integers(30, 300), min_size=1, max_size=4))
def test_words_fit_into_their_lines(text, widths):
    lines = fit_text(text, widths)
    assert len(lines) <= len(widths)
    assert all(text_width(line) <= max(widths) for line in lines)
    whole = "".join(text.split())
    said = "".join("".join(lines).split())
    assert said == whole or (said.endswith("…") and whole.startswith(said[:-1]))


@given(st.text(max_size=40))
def test_dot_is_quoted(label):
    node = PictureNode("urn:a", "entity", "Answer", " ".join(label.split()))
    line = to_dot(Picture((node,), ())).decode().split("\n")[3]
    assert re.fullmatch(r'  n0 \[(?:[a-zA-Z]+=(?:"(?:[^"\\]|\\.)*"|\w+),? ?)+\];', line, re.DOTALL)
