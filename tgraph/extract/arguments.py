"""What the tokens of a statement stand for: entities, literals, or whole phrases.

An object that is a described thing ("capital of France", "Scott's ship") is folded so that the edge
reaches the name in it: ``(Paris, be capital of, France)``. Other noun phrases stay whole, as plain
string literals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import Literal

from tgraph.extract.clauses import antecedent, lifted
from tgraph.extract.coreference import THIRD_PERSON, Discourse, is_definite
from tgraph.extract.kinds import kind_of_noun
from tgraph.extract.mentions import Mention
from tgraph.extract.names import Named, Names
from tgraph.extract.phrases import conjuncts, core_text, is_noun, phrase_bounds, phrase_text
from tgraph.extract.pipeline import lemma
from tgraph.extract.reading import Argument
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_PERIODS = word_set("english", "periods")
_VAGUE = word_set("english", "vague")
CONCEPT = "concept"


@dataclass(frozen=True, slots=True)
class Bound:
    """An object with the predicate that leads to it."""

    predicate: str
    object: Argument


class Arguments:
    """Resolves the tokens of one parsed text; ``dropped`` counts what could not be resolved."""

    def __init__(
        self,
        doc: Doc,
        mentions: Sequence[Mention],
        names: Names,
        discourse: Discourse,
        salient: frozenset[str],
    ) -> None:
        self._names = names
        self._discourse = discourse
        self._salient = salient
        self._mentions: dict[int, Mention] = {}
        for mention in reversed(mentions):
            self._mentions |= dict.fromkeys(range(mention.start, mention.end), mention)
        self._starts: dict[int, list[Mention]] = {}
        for mention in mentions:
            self._starts.setdefault(mention.start, []).append(mention)
        self._meant: dict[int, tuple[Named, ...]] = {}
        self.dropped: Counter[str] = Counter()

    def mention_at(self, token: Token) -> Mention | None:
        return self._mentions.get(token.i)

    def named_at(self, token: Token) -> Named | None:
        """The entity whose name covers the token."""
        mention = self._mentions.get(token.i)
        if mention is None or not mention.is_name:
            return None
        return self._names.get(mention.text, mention.type)

    def prepare(self, sentence: Span) -> list[Named]:
        """Resolves names, pronouns and definite nouns of a sentence in order; returns the named."""
        self._discourse.next_sentence()
        named = []
        for token in sentence:
            names = [m for m in self._starts.get(token.i, ()) if m.is_name]
            if names:
                entities = [self._names.get(m.text, m.type) for m in names]
                named += entities
                root = sentence.doc[names[0].start : names[0].end].root
                self._discourse.see(root, entities[0])
            elif token.i not in self._mentions:
                self._refer(token)
        self._note_coordinations(sentence)
        about = [child for child in sentence.root.children if child.dep_ in ("nsubj", "nsubjpass")]
        if about and about[0].tag_ in ("NN", "NNS") and not self.meant(about[0]):
            self._discourse.see_unnamed()
        return list(dict.fromkeys(named))

    def meant(self, token: Token) -> tuple[Named, ...]:
        """The entities that a noun or pronoun stands for, empty where it names none."""
        if token.tag_ in ("WDT", "WP", "WP$"):
            noun = antecedent(token)
            return self.meant(lifted(noun)) if noun is not None else ()
        entity = self.named_at(token)
        if entity is not None:
            return (entity,)
        if token.i in self._meant:
            return self._meant[token.i]
        for child in token.children:
            if child.dep_ == "appos" and child.i > token.i:
                entity = self.named_at(child)
                if entity is not None:
                    return (entity,)
        return ()

    def literals(self, sentence: Span) -> list[Mention]:
        """The dates, amounts and numbers that a sentence gives."""
        found = (m for token in sentence for m in self._starts.get(token.i, ()))
        return [m for m in found if m.value is not None]

    def subjects(self, token: Token) -> tuple[Named, ...]:
        """The entities a statement is about; where there are none, why is counted."""
        found = self.meant(token)
        if found:
            return found
        if token.tag_.startswith(("PRP", "W", "EX", "DT")):
            self.dropped["unresolved pronoun"] += 1
            return ()
        phrase = self._phrase_entity(token) if is_noun(token) else None
        if phrase is None:
            self.dropped["unresolved noun" if is_definite(token) else "unnamed subject"] += 1
            return ()
        return (phrase,)

    def objects(self, predicate: str, token: Token) -> list[Bound]:
        """The objects that a token stands for, each with its predicate; empty if it is dropped."""
        if predicate.endswith(" @"):
            return self._dated(predicate.removesuffix(" @"), token)
        found = self.meant(token)
        if found:
            return [Bound(predicate, entity) for entity in found]
        literal = self._literal(token)
        if literal is not None:
            return [Bound(predicate, literal)]
        if token.tag_.startswith(("PRP", "W", "DT", "EX")):
            self.dropped["unresolved pronoun"] += token.tag_.startswith("PRP")
            return []
        return self.described(predicate, token)

    # --- how a token is read ----------------------------------------------------------------------

    def _refer(self, token: Token) -> None:
        found: tuple[Named, ...] = ()
        if token.lower_ in THIRD_PERSON:
            found = self._discourse.pronoun(token)
        elif token.tag_ == "NN":
            entity = self._discourse.definite(token)
            found = (entity,) if entity is not None else ()
        if found:
            self._meant[token.i] = found
            if len(found) == 1:
                self._discourse.see(token, found[0])

    def _note_coordinations(self, sentence: Span) -> None:
        for token in sentence:
            if token.dep_ in ("nsubj", "nsubjpass", "dobj", "pobj"):
                together = [e for t in conjuncts(token) if (e := self.named_at(t)) is not None]
                people = sum(entity.is_person for entity in together)
                if len(together) > 1 and (people or token.dep_.startswith("nsubj")):
                    self._discourse.see_together(together)
                if people and people < len(together):
                    _type_as_people(together)

    def _phrase_entity(self, token: Token) -> Named | None:
        """A phrase as an entity: it holds a name ("Scott's nephew") or the chunk is about it."""
        start, end = phrase_bounds(token)
        text = phrase_text(token)
        if token.lower_ in _VAGUE or not text or end - start > 8:
            return None
        inside = (self.named_at(token.doc[i]) for i in range(start, end))
        if text.lower() in self._salient or any(
            e is not None and e.type != "group" for e in inside
        ):
            return self._names.get(text, kind_of_noun(lemma(token.lower_, "noun")) or CONCEPT)
        return None

    def _literal(self, token: Token) -> Literal | None:
        mention = self.mention_at(token)
        if mention is not None and mention.value is not None:
            start, end = phrase_bounds(token)
            covers = mention.start <= start and end <= mention.end
            return mention.value if covers or mention.is_time else Literal(phrase_text(token))
        if token.lower_ in _PERIODS:
            inside = (self._mentions.get(t.i) for t in token.subtree)
            return next((m.value for m in inside if m is not None and m.is_time), None)
        return None

    def _dated(self, predicate: str, token: Token) -> list[Bound]:
        literal = self._literal(token)
        mention = self.mention_at(token)
        if literal is None or mention is None or not mention.is_time:
            return []
        on = (
            literal.datatype.value.endswith("date")
            or mention.text[:1].isdigit() is not mention.text[-1:].isdigit()
        )
        return [Bound(f"{predicate} {'on' if on else 'in'}", literal)]

    def described(self, predicate: str, token: Token) -> list[Bound]:
        """The objects of a description, folded onto the names in it, else a literal."""
        if not is_noun(token):
            return self._adjective(predicate, token)
        folded = list(self._folded(predicate, token))
        if folded:
            return folded
        text = phrase_text(token)
        if any(child.tag_ == "PRP$" for child in token.children) and kind_of_noun(text) == "person":
            self.dropped["unresolved pronoun"] += 1
            return []
        if token.lower_ in _VAGUE and " " not in text:
            self.dropped["vague object"] += 1
            return []
        if text.lower() in self._salient:
            return [Bound(predicate, self._names.get(text, kind_of_noun(token.lower_) or CONCEPT))]
        return [Bound(predicate, Literal(text))] if text else []

    def _adjective(self, predicate: str, token: Token) -> list[Bound]:
        if not token.tag_.startswith("JJ") or any(
            child.dep_ == "xcomp" for child in token.children
        ):
            return []
        measures = [c for c in token.lefts if c.dep_ in ("npadvmod", "advmod") and c.tag_ != "WRB"]
        start = measures[0].left_edge.i if measures else token.i
        return [Bound(predicate, Literal(token.doc[start : token.i + 1].text))]

    def _folded(self, predicate: str, token: Token) -> Iterator[Bound]:
        """``be capital of`` + France, ``paint out name of`` + Marley."""
        core = core_text(token)
        for child in token.children:
            if child.dep_ == "poss":
                own = f"{predicate} {token.text} of"
                yield from (Bound(own, entity) for entity in self.meant(child))
            elif child.dep_ == "prep":
                for target in _targets(child):
                    for entity in self.meant(target):
                        yield Bound(f"{predicate} {core} {child.lower_}", entity)


def _type_as_people(together: Sequence[Named]) -> None:
    """Single surnames beside a person are persons, whatever the recogniser took them for."""
    for entity in together:
        if not (entity.is_person or entity.located or " " in entity.name):
            entity.types["person"] += entity.types.total()


def _targets(preposition: Token) -> list[Token]:
    return [t for c in preposition.children if c.dep_ == "pobj" for t in conjuncts(c)]
