"""Prompt tuning: prompts for extraction, claims, summaries and reports that are made for one
collection.

From sampled chunks come the field of the documents, their language, a reader, what a report should
tell, types of entities and examples. They become files that replace tgraph's prompts; the tuning is
on record as an activity that used the chunks, and each prompt is derived from them. After
"prompt-tune" of GraphRAG.
"""

from __future__ import annotations

import difflib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel
from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.engine.change.tuned_prompts import (
    CLAIM_PROMPTS,
    FOLDER,
    TUNED,
    is_known_prompt,
    remove_tuned,
)
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.run import BUSY, Run
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, ignore_progress
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.extract.facts import MENTIONS
from tgraph.extract.language import RELATED
from tgraph.index.sources import Texts, standing_chunks, stored_chunk
from tgraph.index.stored_graph import StoredGraph
from tgraph.ingest.languages import detect_language
from tgraph.model import Agent, Evidence, Prompt
from tgraph.models.prompts import Prompted, PromptFiles, language_name, load_prompt
from tgraph.record.activities import SOFTWARE, Activity, agent_quads, responsible_agents
from tgraph.retrieve.labels import Triple as Statement
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.search.names import is_name
from tgraph.settings import FILE
from tgraph.store.base import Store, select_rows, text_of
from tgraph.store.files import make_folder
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import Statements, iri_node
from tgraph.version import __version__

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

SampleMethod = Literal["random", "top", "kmeans"]

METHOD = Agent("method", "embedded-tuning", __version__)
SEED = 0
SHOWN = 2_000
"""Characters of a chunk that are shown."""

EXAMPLES, ROWS = 3, 6
"""Chunks that examples are taken from, and rows of each."""

_TYPES, _FEWEST_TYPES = 12, 2
_WORDS, _NAMES = 6, 3
_ROUNDS = 25
_LONGEST = 300
_BREAKING = re.compile(r"[{}]{2,}|<{3,}|>{3,}|={3,}")
_STRUCTURAL = frozenset({MENTIONS, RELATED, "have section", "have item", "have code", "say"})
_UNTELLING = frozenset({"thing", "topic", "term", "concept"})
"""Relationships, and types, that say how a text is built and not what it states."""
_TYPE_SLOT = "{{entity_types}}"
T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A relationship within an example, quoting chunk words that state the relationship."""

    subject: str
    predicate: str
    object: str
    quote: str
    subject_type: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """A collection profile found by tuning."""

    domain: str
    language: str
    persona: str
    role: str
    rating: str
    types: tuple[str, ...] = ()
    examples: tuple[ExampleRow, ...] = ()


@dataclass(frozen=True, slots=True)
class TunedPrompt:
    """A tuned prompt: file, text, and diff against the preceding prompt."""

    name: str
    path: str
    sha256: str
    text: str
    diff: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """Tuning results.

    ``written`` is false for a preview, and ``activity`` is then empty; ``fallbacks`` say which
    steps were done without the model, and why."""

    activity: str
    chunks: tuple[str, ...]
    profile: Profile
    prompts: tuple[TunedPrompt, ...]
    agent: str
    written: bool
    fallbacks: tuple[str, ...] = ()


# --- the sample ----------------------------------------------------------------------------------


def sample_chunks(
    chunks: Sequence[str], limit: int, select: SampleMethod, vectors: Vectors
) -> list[str]:
    """Return at most ``limit`` chunks, selected reproducibly: the first, random chunks, or
    chunks nearest to k-means centres."""
    if len(chunks) <= limit or select == "top":
        return list(chunks[:limit])
    if select == "random":
        chosen = set(random.Random(SEED).sample(sorted(chunks), limit))  # noqa: S311
        return [chunk for chunk in chunks if chunk in chosen]
    chunk_keys, rows = vectors(chunks)
    if len(chunk_keys) <= limit:
        return list(chunks[:limit])
    middles = {chunk_keys[place] for place in nearest_to_means(rows, limit)}
    return [chunk for chunk in chunks if chunk in middles]


Vectors = Callable[[Sequence[str]], tuple[list[str], "NDArray[float32]"]]
"""The chunks that have vectors, and a row for each."""


def nearest_to_means(rows: NDArray[float32], count: int) -> list[int]:
    """Return, for ``count`` clusters, the row nearest to each cluster mean.

    The method is k-means (Lloyd 1982); the means are initialised as by Arthur and Vassilvitskii
    2007, with the farthest row in place of a drawn row."""
    import numpy as np

    means = rows[:1]
    while len(means) < count:
        nearest = ((rows[:, None] - means[None]) ** 2).sum(-1).min(1)
        means = np.concatenate([means, rows[int(nearest.argmax())][None]])
    for _ in range(_ROUNDS):
        group = ((rows[:, None] - means[None]) ** 2).sum(-1).argmin(1)
        moved = np.stack(
            [rows[group == g].mean(0) if (group == g).any() else means[g] for g in range(count)]
        )
        if np.allclose(moved, means):
            break
        means = moved
    return sorted({int(((rows - mean) ** 2).sum(-1).argmin()) for mean in means})


# --- the steps -----------------------------------------------------------------------------------


class _Domain(BaseModel):
    domain: str
    language: str
    persona: str
    role: str
    rating: str


class _Types(BaseModel):
    types: list[str]


class _QuotedRelationship(BaseModel):
    subject: str
    subject_type: str = ""
    predicate: str
    object: str
    quote: str


class _Example(BaseModel):
    relationships: list[_QuotedRelationship]


@dataclass(slots=True)
class _Steps:
    """Tuning steps over sampled chunks, performed by the model if available."""

    context: IndexContext
    texts: dict[str, str]
    fallbacks: list[str] = field(default_factory=list)
    plans: list[Prompt] = field(default_factory=list)

    def profile(self) -> Profile:
        """Return the collection profile."""
        domain = self._find_domain()
        types = self._find_types(domain.domain)
        domain_values = {name: safe_text(text) for name, text in domain.model_dump().items()}
        return Profile(**domain_values, types=types, examples=tuple(self._find_examples(types)))

    @property
    def _passage_lines(self) -> str:
        return "\n".join(
            json.dumps({"passage": t}, ensure_ascii=False) for t in self.texts.values()
        )

    def _ask(self, name: str, form: type[T], values: dict[str, str]) -> T | None:
        """Return the model's reply; None without a model or a usable reply."""
        chat = self.context.parts.chat
        if chat is None:
            return None
        prompt = load_prompt(name, self.context.settings.prompts)
        step = _TuningStep(chat, prompt, (), **self.context.parts.options)
        if prompt not in self.plans:
            self.plans.append(prompt)
        try:
            return step.ask(values, form, self.context.record.call)
        except EndpointError:
            raise
        except ModelError as error:
            self.fallbacks.append(f"{name}: {error.message}")
            return None

    def _find_domain(self) -> _Domain:
        reply = self._ask("tune_domain", _Domain, {"passages": self._passage_lines})
        if reply is not None and reply.domain.strip():
            return reply
        codes = Counter(map(detect_language, self.texts.values())).most_common(1)
        code = codes[0][0] if codes else "en"
        subjects, names = telling_words(self.texts.values()), self._frequent_names()
        subject_list, name_list = ", ".join(subjects), _join_names(names)
        domain = (
            f"documents about {subject_list or name_list}"
            if subject_list or name_list
            else "documents"
        )
        name_sentence = f" They tell most of {name_list}." if subject_list and name_list else ""
        return _Domain(
            domain=domain,
            language=language_name(code) if code != "other" else "the language of the passage",
            persona=f"You are an expert on {domain}.{name_sentence}"
            if subject_list or name_list
            else "",
            role=f"It should tell how {f'{name_list} and others' if name_list else 'they'}"
            " belong together,"
            " and what is known of each.",
            rating="A group is the more important the more the documents say of it.",
        )

    def _frequent_names(self) -> list[str]:
        """Return names with most relationships, limited to names written in the sample: prompts
        rest on sampled chunks alone."""
        counts: Counter[str] = Counter()
        for chunk, text in self.texts.items():
            rows = rows_of(chunk, self.context, frozenset({MENTIONS}))
            ends = (end for row in rows for end in (row.subject, row.object))
            counts.update(end for end in ends if is_name(end) and end in text)
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        return [name for name in map(safe_text, ranked) if name][:_NAMES]

    def _find_types(self, domain: str) -> tuple[str, ...]:
        reply = self._ask("tune_types", _Types, {"passages": self._passage_lines, "domain": domain})
        types = [safe_text(word).lower()[:40] for word in reply.types] if reply else []
        usable = tuple(dict.fromkeys(word for word in types if word))[:_TYPES]
        if len(usable) >= _FEWEST_TYPES:
            return usable
        existing_types = types_of(
            self.context.copy.store, self.context.settings.extract.entity_types
        )
        return tuple(map(safe_text, existing_types))

    def _find_examples(self, types: Sequence[str]) -> Iterable[ExampleRow]:
        for chunk, text in list(self.texts.items())[:EXAMPLES]:
            values = {"passage": text, "types": ", ".join(types)}
            reply = self._ask("tune_example", _Example, values)
            rows = [ExampleRow(**row.model_dump()) for row in reply.relationships] if reply else []
            exact = [row for row in rows if row.quote.strip() and row.quote in text]
            if len(exact) < len(rows):
                self.fallbacks.append(
                    f"tune_example: {len(rows) - len(exact)} rows without an exact quote"
                )
            yield from (exact or rows_of(chunk, self.context))[:ROWS]


class _TuningStep(Prompted):
    """A tuning step performed by the model."""

    def ask(self, values: dict[str, str], form: type[T], sink: Callable[..., None]) -> T:
        return self._ask(self._request(values, form), form, sink).value


def telling_words(texts: Iterable[str]) -> list[str]:
    """Return the most telling nouns: frequent in some texts, but not in all texts.

    Each noun has a single form; words written only as names are left out."""
    from tgraph.retrieve.text.lexicon import get_lexicon

    every = [text for text in texts if text]
    per = [Counter(w for w in _find_nouns(text) if _is_telling(w, text)) for text in every]
    documents = Counter(word for counts in per for word in counts)
    total: Counter[str] = sum(per, Counter())
    score = {w: n * (1 + len(every) / documents[w]) ** 0.5 for w, n in total.items() if n > 1}
    code = detect_language(" ".join(every))
    stems: dict[str, str] = {}
    for word in sorted(score, key=lambda w: (-score[w], w)):
        stems.setdefault(get_lexicon(code).stem(word), word)
    return list(stems.values())[:_WORDS]


def _find_nouns(text: str) -> list[str]:
    """Return words used as nouns somewhere in the text.

    Nouns are capitalised words in German, and words after an article or a similar word in
    languages with articles; other languages return all words."""
    from tgraph.retrieve.text.lexicon import fold_accents, get_lexicon

    code = detect_language(text)
    words = get_lexicon(code).words(text)
    before = _BEFORE_NOUNS.get(code)
    if before is None:
        return words
    nouns = {fold_accents(noun) for noun in re.findall(before, text)}
    return [word for word in words if word in nouns]


_BEFORE_NOUNS = {
    "en": r"\b(?:[Tt]he|an?|[Ii]ts|their|these|those|of|every|each|no) ([a-z]+)\b",
    "de": r"(?<=[a-zäöüß,] )([A-ZÄÖÜ][a-zäöüß]+)\b",
    "fr": r"\b(?:[Ll]es?|[Ll]a|une?|des|du|ses|leurs?) ([a-zà-ÿ]+)\b",
    "es": r"\b(?:[Ee]l|[Ll]os|[Ll]as?|una?|del|sus?) ([a-zà-ÿ]+)\b",
}
"""What stands before nouns, as patterns of the nouns."""


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _is_telling(word: str, text: str) -> bool:
    from tgraph.retrieve.text.lexicon import get_lexicon

    code = detect_language(text)
    least = 2 if code == "zh" else 4
    return len(word) >= least and word.isalpha() and word not in get_lexicon(code).stop_words


def types_of(store: Store, usual: Sequence[str]) -> list[str]:
    """Return entity types of the collection, most frequent first; the ``usual`` types if few
    exist."""
    counts: Counter[str] = Counter()
    for quad in store.match(None, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH):
        if isinstance(quad.object, NamedNode) and quad.object.value.startswith(v.type_iri("")):
            counts[quad.object.value.removeprefix(v.type_iri("")).replace("-", " ")] += 1
    ranked_types = [
        name for name, count in counts.most_common() if count > 1 and name not in _UNTELLING
    ]
    frequent_types = ranked_types[:_TYPES]
    return frequent_types if len(frequent_types) >= _FEWEST_TYPES else list(usual)


def rows_of(
    chunk: str, context: IndexContext, beside: Collection[str] = _STRUCTURAL
) -> list[ExampleRow]:
    """Return relationships read from a chunk earlier, strongest first, with their quotes.

    Relationships with a label in ``beside`` are left out."""
    store = context.copy.store
    places = [place for place in _find_places(chunk, context) if place.quote.strip()]
    rows: list[ExampleRow] = []
    for place in places:
        triple = _edge_statement(store, place.statement)
        if triple is None:
            continue
        edge = with_labels(StoredGraph(store), [triple])[0]
        labels = (edge.subject_label, edge.predicate_label, edge.object_label)
        if edge.predicate_label not in beside:
            rows.append(ExampleRow(*labels, place.quote))
    return rows


def _find_places(chunk: str, context: IndexContext) -> list[Evidence]:
    rows = select_rows(context.copy.store, "retrieve/neighbours", {"chunks": [NamedNode(chunk)]})
    edges = list(dict.fromkeys(text_of(row["edge"]) for row in rows))
    reader = context.evidence
    of = reader.of_edges(edges, 1)
    return [place for edge in edges for place in of.get(edge, ()) if place.chunk == chunk]


def _edge_statement(store: Store, edge: str) -> Statement | None:
    for quad in store.match(NamedNode(edge), v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        if isinstance(quad.object, Triple):
            s, p, o = quad.object.subject, quad.object.predicate, quad.object.object
            if isinstance(s, NamedNode) and isinstance(o, NamedNode | RdfLiteral):
                return s, p, o
    return None


# --- the prompts ---------------------------------------------------------------------------------


def safe_text(text: str) -> str:
    """Return the text on a single line, shortened, without characters that shape a prompt."""
    plain = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    return _BREAKING.sub(" ", plain).strip()[:_LONGEST]


def tuned_text(prompt: Prompt, profile: Profile) -> str:
    """Return the prompt text with the profile appended to its instructions."""
    system, mark, user_part = prompt.text.partition("\n=== user")
    if profile.types and _TYPE_SLOT in system:
        system = system.replace(_TYPE_SLOT, ", ".join(profile.types))
        user_part = user_part.replace(_TYPE_SLOT, ", ".join(profile.types))
    instructions = [f"The documents: {profile.domain}. Their language: {profile.language}."]
    if profile.persona:
        instructions.append(profile.persona)
    if prompt.name in CLAIM_PROMPTS and profile.types:
        instructions.append(
            f"What claims are about is mostly of these types: {', '.join(profile.types)}."
        )
    elif prompt.name == "community_report":
        instructions += [f"The report: {profile.role}", f"The rating: {profile.rating}"]
    elif profile.examples and prompt.name == "extract_graph":
        instructions.append(
            "Relationships that were read from these documents, as examples of the form:"
        )
        instructions += [_example_line(row) for row in profile.examples]
    return f"{system.rstrip()}\n\n" + "\n".join(instructions) + f"\n{mark.lstrip()}{user_part}"


def _example_line(row: ExampleRow) -> str:
    example = {
        name: value
        for name in ("subject", "predicate", "object", "quote")
        if (value := getattr(row, name))
    }
    line = json.dumps(example, ensure_ascii=False)
    return re.sub(r"\{(?=\{)|\}(?=\})|<(?=<<)|>(?=>>)", lambda m: f"{m[0]} ", line)


# --- the run -------------------------------------------------------------------------------------


class TuningRun(Run):
    """A tuning run, recorded as a separate change."""

    kind = "tuning"
    busy = BUSY

    def run(
        self, select: SampleMethod, limit: int, folder: Path, *, dry_run: bool, force: bool
    ) -> Tuning:
        """Sample chunks, build the profile, write prompts.

        Raises ``UsageError`` if nothing is indexed, or if an existing file may not be replaced;
        then nothing changed."""
        with self._workshop() as context:
            started = context.clock()
            chunks = self._sample_chunks(context, select, limit)
            steps = _Steps(context, {c: _chunk_text(c, context)[:SHOWN] for c in chunks})
            profile = steps.profile()
            originals = {name: _original_prompt(name) for name in TUNED}
            prompts = [_tune_prompt(name, originals[name], profile, folder) for name in TUNED]
            agent = SOFTWARE if context.parts.chat is None else context.parts.chat.agent
            by = METHOD if context.parts.chat is None else agent
            tuning = Tuning(
                "", tuple(chunks), profile, tuple(prompts), by.name, False, tuple(steps.fallbacks)
            )
            if dry_run:
                return tuning
            _check_replacement(prompts, force=force)
            self._state_tuning(context, tuning, by, steps.plans, originals, started)
            _write_prompts(prompts, folder)
            self._commit(context)
            self._publish(context)
        return Tuning(
            self.iri, tuning.chunks, profile, tuning.prompts, by.name, True, tuning.fallbacks
        )

    def _sample_chunks(self, context: IndexContext, select: SampleMethod, limit: int) -> list[str]:
        chunks = [chunk for _, chunk in standing_chunks(context.copy.store)]
        if not chunks:
            raise UsageError("Nothing is indexed yet.", "Run `tgraph index PATH...` first.")
        return sample_chunks(chunks, limit, select, self._chunk_vectors)

    def _chunk_vectors(self, chunks: Sequence[str]) -> tuple[list[str], NDArray[float32]]:
        import numpy as np

        snapshot = Snapshot.open(self._ledger.folder)
        if snapshot is None:
            return [], np.zeros((0, 1), dtype=np.float32)
        try:
            vectors = self._setup.parts.vector_store.open_vectors(snapshot.vectors, "chunk")
            embedded_chunks = [chunk for chunk in chunks if chunk in set(vectors.keys)]
            places = vectors.keys.places(set(embedded_chunks))
            windows = vectors.read_windows(places)
            rows = windows.vectors[windows.starts]
            return [vectors.keys[place] for place in places.tolist()], rows
        finally:
            snapshot.close()

    def _state_tuning(
        self,
        context: IndexContext,
        done: Tuning,
        by: Agent,
        plans: Sequence[Prompt],
        originals: dict[str, Prompt],
        started: datetime,
    ) -> None:
        out = Statements(v.SOURCE_GRAPH)
        agents = tuple(dict.fromkeys((*responsible_agents(context.settings.person), by)))
        activity = Activity(
            self.iri,
            ("PromptTuning",),
            "Prompt tuning",
            started,
            context.clock(),
            agents,
            tuple(plans),
            used=done.chunks,
        )
        activity.state(out)
        prompts = [
            Prompt(tuned_prompt.name, tuned_prompt.text, tuned_prompt.sha256)
            for tuned_prompt in done.prompts
        ]
        context.copy.add(agent_quads(agents))
        context.copy.add(context.record.prompts([*plans, *originals.values(), *prompts]))
        for prompt in prompts:
            if is_known_prompt(context.copy.store, prompt):
                continue
            origins = [originals[prompt.name].iri, *done.chunks]
            out.add(
                prompt.iri,
                (v.prov("wasGeneratedBy"), iri_node(self.iri)),
                (v.prov("wasDerivedFrom"), map(iri_node, origins)),
            )
        context.copy.add(out.quads)
        context.record.write_calls(context.copy)


def _chunk_text(chunk: str, context: IndexContext) -> str:
    return stored_chunk(
        context.copy.store, Texts(context.copy.store, context.librarian), chunk
    ).text


def _original_prompt(name: str) -> Prompt:
    return load_prompt(name, PromptFiles())


def _tune_prompt(name: str, original: Prompt, profile: Profile, folder: Path) -> TunedPrompt:
    text = tuned_text(original, profile)
    path = folder / f"{name}.md"
    before = path.read_text("utf-8") if path.is_file() else original.text
    lines = difflib.unified_diff(
        before.splitlines(), text.splitlines(), f"{name}.md", f"{name}.md (tuned)", lineterm="", n=1
    )
    return TunedPrompt(name, str(path), sha256(text.encode()).hexdigest(), text, "\n".join(lines))


def _check_replacement(made: Sequence[TunedPrompt], *, force: bool) -> None:
    """Raise ``UsageError`` if existing prompt files would be replaced without ``force``."""
    there = [prompt.path for prompt in made if Path(prompt.path).is_file()]
    if there and not force:
        raise UsageError(
            f"There are prompts already: {', '.join(there)}.",
            "A preview shows what would change; they are replaced only by force.",
        )


def _write_prompts(made: Sequence[TunedPrompt], folder: Path) -> None:
    if not folder.is_dir():
        make_folder(folder)
    for prompt in made:
        Path(prompt.path).write_text(prompt.text, "utf-8", newline="\n")


# --- what the command and the library call -------------------------------------------------------


def tune_prompts(
    opened: OpenCollection,
    root: Path,
    *,
    select: SampleMethod = "random",
    limit: int = 15,
    dry_run: bool = False,
    force: bool = False,
    progress: OnProgress = ignore_progress,
) -> Tuning:
    """As ``tgraph.extensions.lab.tune_prompts``."""
    if limit < 1:
        raise UsageError("At least one chunk has to be sampled.")
    folder = opened.settings.prompts or root / FOLDER
    run = TuningRun(opened.setup(progress, None))
    tuning = run.run(select, limit, folder, dry_run=dry_run, force=force)
    if tuning.written and opened.settings.prompts is None:
        _name_folder(root)
    return tuning


def _name_folder(root: Path) -> None:
    """Add the prompts folder to ``tgraph.toml``, unless set already."""
    file = root / FILE
    text = file.read_text("utf-8") if file.is_file() else ""
    if not re.search(r"^prompts\s*=", text, re.MULTILINE):
        file.write_text(f'prompts = "{FOLDER}"\n{text}', "utf-8")


def undo_tuning(opened: OpenCollection, root: Path) -> list[str]:
    """Delete the files of tuned prompts that are as they were written; their paths."""
    return remove_tuned(opened.read(), opened.settings.prompts or root / FOLDER)
