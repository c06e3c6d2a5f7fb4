"""Referents of statement tokens, and facts stated by noun phrases without verbs.

An object that is a described thing ("capital of France", "Scott's ship") is folded so that the
edge reaches the name in it: ``(Paris, be capital of, France)``. Other noun phrases stay whole,
as plain string literals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import Literal

from tgraph.extract.english.beings import being_phrases, gender_of_noun, kind_of_being
from tgraph.extract.english.clauses import find_antecedent, lift_noun
from tgraph.extract.english.coreference import THIRD_PERSON, Discourse, is_definite
from tgraph.extract.english.mentions import Mention
from tgraph.extract.english.parser import (
    core_text,
    find_conjuncts,
    find_lemma,
    hyphenated_start,
    is_noun,
    negation_of,
    phrase_bounds,
    phrase_text,
    text_of,
)
from tgraph.extract.entity_types import denotes_person, kind_of_noun
from tgraph.extract.facts import UNKNOWN, Argument, NamedEntity, NameTable, acronym_of
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

_PERIODS = word_set("english", "periods")
_VAGUE = word_set("english", "vague")
CONCEPT = "concept"
_FIRST = frozenset({"i", "me", "my", "mine", "myself"})
_SECOND = frozenset({"you", "your", "yours", "yourself", "thou", "thee", "thy", "thine"})
_OWN = frozenset({"my", "your", "thy"})
_LONGEST_OWNER = 4
_CERTAIN, _LIKELY, _WEAK = 7.0, 6.0, 4.0
_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_CITATION = re.compile(
    rf"\((?:see |e\.g\.,? )?[A-Z][^()\d]{{1,80}}?,? \(?{_YEAR}(?:[;,][^()]{{0,300}})?\)"
    r"|\[[\d,;–\- ]{1,30}\]"
    r"|\([^()]{0,60}\b(?:Figs?|Figures?|Tables?)\b[^()]{0,80}\)"
    rf"|(?<!\w)[A-Z][\w-]{{1,30}} (?:et al\.|and [A-Z][\w-]{{1,30}}) \({_YEAR}\)"
)
_IDIOMATIC = frozenset({"in", "on", "by", "at", "of", "for", "to", "as", "with", "from"})
_DATED = frozenset({"event", "work", "law", "organization", "facility", "ship"})
_MEASURES = frozenset({"npadvmod", "advmod", "compound", "nmod", "amod"})
_SITED = frozenset({"organization", "facility", "place", "event", "group"})
_PLACED = frozenset({"of", "in", "at", "near", "from", "on"})
_DASH = re.compile(r"[-–—]+|to")
_BETWEEN = 9
"""Tokens at most between a name and another one of the same thing."""
_TIMES = frozenset({"formerly", "previously", "originally", "once", "later", "now", "today"})
_ADVERB = rf"(?:{'|'.join(sorted(_TIMES))}|also|sometimes|often|commonly|popularly|better|best)"
_WHEN = re.compile(rf"\b{_ADVERB}\b")
_CALLED = re.compile(
    rf"(?:(?:[,(]|is|was|are|were) ?(?:{_ADVERB} )*"
    r"(?:known as|known by the name(?: of)?|called|nicknamed|abbreviated(?: as| to)?)"
    r"|[,(]? ?a\.?k\.?a\.?|(?P<bare>[,(] ?(?:formerly|previously|originally)))"
    r"(?: the)? ?[\"“‘'`]*",
    re.IGNORECASE,
)
_GOES_ON = frozenset({"POS", "NN", "NNS", "NNP", "NNPS"})
_INSIDE_NAMES = frozenset({"the", "of"})


def kin_name(owner: NamedEntity, noun: str) -> str:
    """``Scrooge's nephew``."""
    return f"{owner.name}'s {noun}"


class Bound(NamedTuple):
    """An object plus the predicate leading to it."""

    predicate: str
    object: Argument


class KnownPhrases(NamedTuple):
    """Lowercase phrases recurring in a chunk: common phrases, and character phrases."""

    salient: frozenset[str]
    characters: Mapping[str, NamedEntity]


class Arguments:
    """Token resolver for one parsed text; ``dropped`` counts unresolved tokens."""

    def __init__(
        self,
        doc: Doc,
        mentions: Sequence[Mention],
        names: NameTable,
        discourse: Discourse,
        known: KnownPhrases,
        spoken: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._names = names
        self._discourse = discourse
        self._known = known
        self._spoken = {i for start, end in spoken for i in range(start, end)}
        self._cited = _citation_tokens(doc)
        self._speakers: dict[int, tuple[NamedEntity, ...]] = {}
        self._mentions: dict[int, Mention] = {}
        for mention in reversed(mentions):
            self._mentions |= dict.fromkeys(range(mention.start, mention.end), mention)
        self._starts: dict[int, list[Mention]] = {}
        for mention in mentions:
            self._starts.setdefault(mention.start, []).append(mention)
        self._meant: dict[int, tuple[NamedEntity, ...]] = {}
        self.dropped: Counter[str] = Counter()

    def mention_at(self, token: Token) -> Mention | None:
        return self._mentions.get(token.i)

    def named_at(self, token: Token) -> NamedEntity | None:
        """Return the entity named at a token."""
        mention = self._mentions.get(token.i)
        if mention is None or not mention.is_name:
            return None
        return self._names.get(mention.text, mention.type)

    def prepare(self, sentence: Span) -> list[NamedEntity]:
        """Resolves names, pronouns and definite nouns of a sentence in order; returns the named."""
        self._discourse.next_sentence()
        mentioned_entities = []
        for token in sentence:
            names = [m for m in self._starts.get(token.i, ()) if m.is_name]
            if names:
                entities = [self._names.get(m.text, m.type) for m in names]
                mentioned_entities += entities
                root = sentence.doc[names[0].start : names[0].end].root
                self._discourse.see(root, entities[0], root.i in self._spoken)
            elif token.i not in self._mentions:
                self.refer(token)
        self._note_coordinations(sentence)
        subjects = [
            child for child in sentence.root.children if child.dep_ in ("nsubj", "nsubjpass")
        ]
        if subjects and subjects[0].tag_ in ("NN", "NNS") and not self.meant(subjects[0]):
            self._discourse.see_unnamed()
        return list(dict.fromkeys(mentioned_entities))

    def meant(self, token: Token) -> tuple[NamedEntity, ...]:
        """Return entities denoted by a noun or pronoun.

        The tuple has no members if no entity is named."""
        if token.tag_ in ("WDT", "WP", "WP$"):
            noun = find_antecedent(token)
            return self.meant(lift_noun(noun)) if noun is not None else ()
        if entity := self.named_at(token):
            return (entity,)
        if token.i in self._meant:
            return self._meant[token.i]
        if token.i in self._speakers:
            return self._speakers[token.i]
        behind = (c for c in token.children if c.dep_ == "appos" and c.i > token.i)
        return next(((entity,) for child in behind if (entity := self.named_at(child))), ())

    def join_kin(self, noun: Token, named: NamedEntity) -> None:
        """Merge "his nephew, Fred" into one person, previously unnamed."""
        kin = self._meant.get(noun.i, ())
        unnamed = len(kin) == 1 and kin[0] is not named and "'s " in kin[0].name
        if unnamed and not any(child.dep_ in ("conj", "nummod") for child in noun.children):
            self._names.same(named.name, kin[0].name)

    @staticmethod
    def is_narrowed(noun: Token) -> bool:
        """Tell whether words after a noun narrow its meaning: "the incidence without contact"."""
        return any(child.dep_ in ("prep", "relcl", "acl") for child in noun.rights)

    def is_cited(self, token: Token) -> bool:
        """Tell whether a token belongs to a literature reference."""
        return token.i in self._cited

    def literals(self, sentence: Span) -> list[Mention]:
        """The dates, amounts and numbers that a sentence gives."""
        mentions = (m for token in sentence for m in self._starts.get(token.i, ()))
        return [m for m in mentions if m.value is not None and m.start not in self._cited]

    def subjects(self, token: Token) -> tuple[NamedEntity, ...]:
        """Return subject entities of a statement, counting the reason if none exist."""
        if token.i in self._cited:
            return ()
        if entities := self.meant(token):
            return entities
        if token.tag_.startswith(("PRP", "W", "EX", "DT")):
            self.dropped["unresolved pronoun"] += 1
            return ()
        if is_noun(token) and (phrase := self._phrase_entity(token)):
            return (phrase,)
        self.dropped["unresolved noun" if is_definite(token) else "unnamed subject"] += 1
        return ()

    def objects(self, predicate: str, token: Token) -> list[Bound]:
        """Return objects denoted by a token, each paired with a predicate.

        The list has no members if the token is dropped."""
        if token.i in self._cited:
            return []
        if predicate.endswith(" @"):
            return self._read_dated(predicate.removesuffix(" @"), token)
        predicate = f"{predicate} {negation_of(token)}".rstrip()
        if entities := self.meant(token):
            return [Bound(predicate, entity) for entity in entities]
        literal = self._resolve_literal(token)
        if literal is not None:
            return [Bound(predicate, literal)]
        if token.tag_.startswith(("PRP", "W", "DT", "EX")):
            self.dropped["unresolved pronoun"] += token.tag_.startswith("PRP")
            return []
        return self.described(predicate, token)

    def refer(self, token: Token) -> None:
        """Record referents of a pronoun or common noun, if determinable."""
        entities: tuple[NamedEntity, ...] = ()
        spoken = token.i in self._spoken
        if token.lower_ in THIRD_PERSON:
            entities = self._discourse.pronoun(token, spoken)
        elif token.tag_ == "NN" and (entity := self._being_entity(token)):
            entities = (entity,)
        if entities:
            self._meant[token.i] = entities
            if len(entities) == 1:
                self._discourse.see(token, entities[0], spoken)
        elif token.tag_ == "NN" and (kind := kind_of_being(token.lower_)):
            self._discourse.see_stranger(token, kind, spoken)

    def _being_entity(self, token: Token) -> NamedEntity | None:
        owner = next((child for child in token.lefts if child.dep_ == "poss"), None)
        if owner is not None:
            return self._of_owner(token, owner)
        character = self._known.characters.get(being_phrases(token.doc).get(token.i, ""))
        if character is not None and character.name.lower() == token.lower_:
            return self._discourse.definite(token, by_kind=False) or character
        return character or self._discourse.definite(token)

    def _of_owner(self, token: Token, owner: Token) -> NamedEntity | None:
        """Return the person meant by a kinship phrase ("His nephew", "Scrooge's nephew"), named
        after the owner."""
        owners = self.meant(owner)
        noun = find_lemma(token.lower_, "noun")
        if len(owners) != 1 or kind_of_being(noun) != "person" or token.dep_ == "appos":
            return None
        if owners[0].name.endswith(f"'s {noun}"):
            return owners[0]  # spoken of again
        if not owners[0].name or len(owners[0].name.split()) > _LONGEST_OWNER:
            return None
        if "'s " in owners[0].name:
            return None  # kin of kin are seldom told apart rightly
        entity = self._names.get(kin_name(owners[0], noun), "person")
        entity.gender = entity.gender or gender_of_noun(noun)
        return entity

    def speak(self, tokens: Span, speaker: NamedEntity, listener: NamedEntity | None) -> None:
        """Record referents of "I" and "you" in spoken text."""
        for token in tokens:
            if token.lower_ in _FIRST:
                self._speakers[token.i] = (speaker,)
            elif listener is not None and token.lower_ in _SECOND:
                self._speakers[token.i] = (listener,)
        for token in tokens:
            owned = any(child.lower_ in _OWN and child.dep_ == "poss" for child in token.lefts)
            if owned and token.i not in self._meant:
                self.refer(token)

    def somebody(self, token: Token) -> NamedEntity | None:
        """Return a speaker or listener: the entity denoted by a token, otherwise an entity
        named by its phrase."""
        entities = self.meant(token)
        if entities:
            return entities[0] if len(entities) == 1 else None
        is_plain_noun = (
            is_noun(token) and token.tag_ in ("NN", "NNP") and token.i not in self._mentions
        )
        text = phrase_text(token) if is_plain_noun else ""
        if not text or token.lower_ in _VAGUE or any(c.dep_ == "poss" for c in token.lefts):
            return None
        return self._names.get(text, kind_of_being(token.lower_) or "person")

    def _note_coordinations(self, sentence: Span) -> None:
        for token in sentence:
            if token.dep_ in ("nsubj", "nsubjpass", "dobj", "pobj"):
                coordinated = [e for t in find_conjuncts(token) if (e := self.named_at(t))]
                people = sum(entity.is_person for entity in coordinated)
                placed = any(entity.type == "place" for entity in coordinated)
                acting = token.dep_.startswith("nsubj") and not placed
                if len(coordinated) > 1 and (people == len(coordinated) or acting):
                    self._discourse.see_together(coordinated)
                for entity in coordinated if people else ():  # single surnames are persons as well
                    if not (entity.is_person or entity.located or " " in entity.name):
                        entity.types["person"] += entity.types.total()

    def _phrase_entity(self, token: Token) -> NamedEntity | None:
        """Return a phrase entity if the phrase contains a name ("Scott's nephew") or is salient
        in the chunk."""
        start, end = phrase_bounds(token)
        text = phrase_text(token)
        if token.lower_ in _VAGUE or not text or end - start > 8:
            return None
        inside = filter(None, map(self.named_at, token.doc[start:end]))
        if text.lower() in self._known.salient or any(e.type != "group" for e in inside):
            return self._names.get(text, kind_of_noun(find_lemma(token.lower_, "noun")) or CONCEPT)
        return None

    def _resolve_literal(self, token: Token) -> Literal | None:
        mention = self.mention_at(token)
        if mention is not None and mention.value is not None:
            start, end = phrase_bounds(token)
            covers = mention.start <= start and end <= mention.end
            return mention.value if covers or mention.is_time else Literal(phrase_text(token))
        if token.lower_ in _PERIODS:
            inside = (self._mentions.get(t.i) for t in token.subtree)
            return next((m.value for m in inside if m is not None and m.is_time), None)
        return None

    def _read_dated(self, predicate: str, token: Token) -> list[Bound]:
        literal = self._resolve_literal(token)
        mention = self.mention_at(token)
        if literal is None or mention is None or not mention.is_time:
            return []
        on = (
            literal.datatype.value.endswith("date")
            or mention.text[:1].isdigit() is not mention.text[-1:].isdigit()
        )
        return [Bound(f"{predicate} {'on' if on else 'in'}", literal)]

    def described(self, predicate: str, token: Token) -> list[Bound]:
        """Return description objects, folded onto contained names, otherwise a literal."""
        if not is_noun(token):
            return self._read_adjective(predicate, token)
        folded = list(self._fold_names(predicate, token))
        if folded:
            return folded
        text = phrase_text(token)
        if any(child.tag_ == "PRP$" for child in token.children) and kind_of_noun(text) == "person":
            self.dropped["unresolved pronoun"] += 1
            return []
        ranges = token.lower_ in _PERIODS and predicate.endswith((" to", " from"))
        idiom = predicate.rpartition(" ")[2] in _IDIOMATIC
        if ranges or (token.lower_ in _VAGUE and (idiom or " " not in text)):
            self.dropped["vague object"] += 1
            return []
        if text.lower() in self._known.salient:
            return [Bound(predicate, self._names.get(text, kind_of_noun(token.lower_) or CONCEPT))]
        return [Bound(predicate, Literal(text))] if text else []

    def _read_adjective(self, predicate: str, token: Token) -> list[Bound]:
        if not token.tag_.startswith("JJ") or any(
            child.dep_ == "xcomp" for child in token.children
        ):
            return []
        if token.lower_ in _VAGUE:
            self.dropped["vague object"] += 1
            return []
        measures = [c for c in token.lefts if c.dep_ in _MEASURES and c.tag_ != "WRB"]
        start = hyphenated_start(token.doc, measures[0].left_edge.i if measures else token.i)
        return [Bound(predicate, Literal(token.doc[start : token.i + 1].text))]

    def _fold_names(self, predicate: str, token: Token) -> Iterator[Bound]:
        """Yield folded objects: ``be capital of`` + France, ``paint out name of`` + Marley."""
        core = core_text(token)
        for child in token.children:
            if child.dep_ == "poss":
                possessive_predicate = f"{predicate} {token.text} of"
                yield from (Bound(possessive_predicate, entity) for entity in self.meant(child))
            elif child.dep_ == "prep":
                for target in _preposition_targets(child):
                    for entity in self.meant(target):
                        yield Bound(f"{predicate} {core} {child.lower_}", entity)


def _citation_tokens(doc: Doc) -> frozenset[int]:
    """The tokens of references in brackets: "(Guleria et al., 1996)", "[27]"."""
    text = text_of(doc)
    if "(" not in text and "[" not in text:
        return frozenset()
    token_indexes: set[int] = set()
    for match in _CITATION.finditer(text):
        span = doc.char_span(*match.span(), alignment_mode="expand")
        token_indexes |= set(range(span.start, span.end)) if span is not None else set()
    return frozenset(token_indexes)


def _preposition_targets(preposition: Token) -> list[Token]:
    return [t for c in preposition.children if c.dep_ == "pobj" for t in find_conjuncts(c)]


# --- nominal statements ---------------------------------------------------------------------------


class Nominal(NamedTuple):
    """A statement found in a noun phrase."""

    subject: NamedEntity
    predicate: str
    object: Argument
    strength: float


def find_nominals(sentence: Span, arguments: Arguments) -> Iterator[Nominal]:
    """The statements of a sentence's noun phrases, in reading order."""
    for token in sentence:
        if not is_noun(token) or arguments.is_cited(token):
            continue
        named_entity = arguments.named_at(token)
        if token.dep_ == "appos":
            yield from _read_apposition(token, named_entity, arguments)
        mention = arguments.mention_at(token)
        if named_entity and mention and token == token.doc[mention.start : mention.end].root:
            yield from _before_name(token, mention, named_entity, arguments)
            yield from _after_name(token, mention, named_entity, arguments)


def record_acronyms(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> None:
    """Records acronyms in brackets: "British Antarctic Expedition (BAE)"."""
    for mention in mentions:
        close = _close_of(doc, mention)
        if close and acronym_of(doc[mention.end + 1 : close].text, mention.text):
            names.same(mention.text, doc[mention.end + 1 : close].text)


class OtherName(NamedTuple):
    """An alternative name: main name, other name, main name position, and validity note.

    The note says since or until when the other name applies, if stated ("formerly")."""

    start: int
    name: str
    other: str
    when: str


def other_names(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> Iterator[OtherName]:
    """Records names that the text itself says are one thing's: "Oslo (formerly Christiania)"."""
    starts = {m.start: m for m in sorted(mentions, key=lambda m: m.end) if m.is_name}
    ends = {m.end: m for m in sorted(mentions, key=lambda m: -m.start) if m.is_name}
    for end, mention in sorted(ends.items()):
        alternative = next(
            (starts[at] for at in range(end + 1, end + _BETWEEN) if at in starts), None
        )
        match = (
            _CALLED.fullmatch(doc[end : alternative.start].text)
            if alternative is not None
            else None
        )
        if (
            alternative is None
            or match is None
            or not _is_other_name(doc, mention, alternative, match)
        ):
            continue
        when = next((w for w in _WHEN.findall(match[0].lower()) if w in _TIMES), "also")
        names.same(mention.text, alternative.text)
        if names.find(mention.text) is names.find(alternative.text):
            yield OtherName(mention.start, mention.text, alternative.text, when)


def _is_other_name(doc: Doc, mention: Mention, other: Mention, found: re.Match[str]) -> bool:
    """Tell whether both mentions may denote one thing, judging by types and neighbouring words.

    "Breslau, formerly Germany" says where a place was, and in "Lakeland, Florida (formerly
    ...)" either may be meant."""
    kinds = {mention.type, other.type} - {UNKNOWN}
    unlike = len(kinds) > 1 and (found["bare"] or "person" in kinds)
    if unlike or mention.text == other.text:
        return False
    if "place" in kinds:
        before = doc[mention.start - 1].text if mention.start else ""
        if before == "," or (found["bare"] and not found[0].startswith("(")):
            return False
    after = doc[other.end] if other.end < len(doc) else None
    return after is None or not (after.tag_ in _GOES_ON or after.lower_ in _INSIDE_NAMES)


def record_localities(doc: Doc, mentions: Sequence[Mention], names: NameTable) -> None:
    """Records full names of places: "Lakeland, Florida" is also "Lakeland"."""
    for place, mention in enumerate(mentions):
        if not (mention.is_name and doc[mention.end : mention.end + 1].text == ","):
            continue
        beside = next((m for m in mentions[place + 1 :] if m.start > mention.end), None)
        if beside is None or not beside.is_name or beside.start != mention.end + 1:
            continue
        inside, region = names.find(mention.text), names.find(beside.text)
        if inside and region and inside.type == region.type == "place" and inside is not region:
            names.same(mention.text, f"{mention.text}, {beside.text}")


def read_brackets(
    doc: Doc, mentions: Sequence[Mention], names: NameTable
) -> Iterator[tuple[int, Nominal]]:
    """Yield bracketed statements following names, such as "(1912-1954)", each with a token
    index."""
    for place, mention in enumerate(mentions):
        close = _close_of(doc, mention)
        if close:
            inside = [m for m in mentions[place + 1 : place + 4] if mention.end < m.start < close]
            entity = names.get(mention.text, mention.type)
            for nominal in _in_brackets(doc, entity, inside, mention.end + 1, close):
                yield mention.start, nominal


def read_other_names(
    others: Sequence[OtherName], names: NameTable
) -> Iterator[tuple[int, Nominal]]:
    """Yield naming statements with the token index of the main name.

    The statement includes both names, since either may become canonical."""
    for other_name in others:
        entity = names.find(other_name.name)
        if entity is not None:
            name_literal = Literal(f"{other_name.name}, {other_name.when} {other_name.other}")
            yield other_name.start, Nominal(entity, "be called", name_literal, _CERTAIN)


def _close_of(doc: Doc, mention: Mention) -> int:
    """Return the token index closing a short bracket after a name, or 0 without bracket."""
    if not mention.is_name or mention.end + 2 >= len(doc) or doc[mention.end].text != "(":
        return 0
    return next((token.i for token in doc[mention.end : mention.end + 12] if token.text == ")"), 0)


def _in_brackets(
    doc: Doc, entity: NamedEntity, inside: list[Mention], start: int, close: int
) -> Iterator[Nominal]:
    times = [m.value for m in inside if m.is_time and m.value is not None]
    if len(times) == 2 and entity.is_person and _DASH.fullmatch(doc[inside[0].end].text):
        yield Nominal(entity, "be born on", times[0], _CERTAIN)
        yield Nominal(entity, "die on", times[1], _CERTAIN)
    elif len(inside) == 1 and times and close > start + 1 and doc[start].lower_ in ("born", "b."):
        entity.types["person"] += 1
        born = "be born on" if "-" in times[0].value else "be born in"
        yield Nominal(entity, born, times[0], _CERTAIN)
    elif entity.type in _DATED and [(m.start, m.end) for m in inside] == [(start, close)]:
        yield from (Nominal(entity, "be dated", value, _LIKELY) for value in times)


def _read_apposition(
    token: Token, named: NamedEntity | None, arguments: Arguments
) -> Iterator[Nominal]:
    head = arguments.named_at(token.head)
    if not _follows_head(token, arguments) or _is_listed(token, arguments):
        return
    if head is not None and named is None:
        yield from _is_a(head, token, arguments)
    elif named is not None and head is None and is_noun(token.head):
        if _is_enclosed(token) and not acronym_of(token.text, phrase_text(token.head).title()):
            return  # "the platform (Acme)": who makes it, or where it is from
        yield from _is_a(named, token.head, arguments)
        arguments.join_kin(token.head, named)
    elif named and head and named is not head and _is_part(named, head, token):
        yield Nominal(head, "in", named, _LIKELY)


def _is_enclosed(token: Token) -> bool:
    return token.left_edge.i > 0 and token.left_edge.nbor(-1).text in ("(", "[")


def _is_listed(token: Token, arguments: Arguments) -> bool:
    """Tell whether an apposition may continue a list instead of describing something."""
    if any(child.lower_ in ("a", "an") for child in token.lefts):
        return False
    return token.head.dep_ in ("conj", "appos") or any(
        child.dep_ in ("conj", "appos") and arguments.named_at(child) for child in token.children
    )


def _is_part(whole: NamedEntity, part: NamedEntity, token: Token) -> bool:
    """Whether two places stand as in "Ross Island, Antarctica"."""
    return whole.type == part.type == "place" and token.nbor(-1).text == ","


def _follows_head(token: Token, arguments: Arguments) -> bool:
    """Tell whether an apposition directly follows and explains its head."""
    head = token.head
    start = token.left_edge.i
    mention = arguments.mention_at(head)
    end = mention.end if mention is not None else head.i + 1
    between = token.doc[end:start].text.strip()
    if len(between) > 3 and not (between[0] in "(," and between[-1] in "),"):
        return False
    articled = any(child.dep_ in ("det", "poss") for child in token.lefts)
    return articled or bool(kind_of_noun(token.lower_)) or arguments.named_at(token) is not None


def _is_a(entity: NamedEntity, noun: Token, arguments: Arguments) -> Iterator[Nominal]:
    if noun.tag_ not in ("NN", "NNS", "NNP") or arguments.mention_at(noun) is not None:
        return
    if noun.tag_ == "NNS" and entity.type != "group":
        return
    if entity.is_person and not denotes_person(noun.lower_):
        return
    entity.nouns.add(find_lemma(noun.lower_, "noun"))
    for bound in arguments.described("be", noun):
        if bound.object is not entity:
            yield Nominal(entity, bound.predicate, bound.object, _CERTAIN)


def _before_name(
    token: Token, mention: Mention, entity: NamedEntity, arguments: Arguments
) -> Iterator[Nominal]:
    """ "Scott's ship Terra Nova", "psychologist Carl Rogers"."""
    noun = token.doc[mention.start - 1] if mention.start else None
    if noun is None or noun.tag_ != "NN" or not _belong_together(noun, token):
        return
    if entity.name.isupper() and not entity.is_person:
        return  # "server UI": the acronym is the noun
    for child in (*token.lefts, *noun.lefts):
        if child.dep_ == "poss" and child.i < mention.start:
            for owner in arguments.meant(child):
                if owner is not entity:
                    yield Nominal(owner, f"have {noun.lower_}", entity, _CERTAIN)
    entity.nouns.add(noun.lower_)
    if kind_of_noun(noun.lower_):
        entity.types[kind_of_noun(noun.lower_)] += 2
        yield Nominal(entity, "be", Literal(core_text(noun)), _LIKELY)


def _is_site(entity: NamedEntity, preposition: Token) -> bool:
    return preposition.lower_ == "of" or entity.type in ("place", "facility", "organization")


def _belong_together(noun: Token, name: Token) -> bool:
    """Tell whether a noun preceding a name describes it.

    "ship Terra Nova" does, "that winter Scott" does not."""
    if noun.head.i == name.i and noun.dep_ in ("compound", "nmod", "amod"):
        return True
    linked = name.head.i == noun.i and name.dep_ in ("appos", "compound")
    twins = noun.head.i == name.head.i and noun.dep_ == name.dep_
    return (linked or twins) and bool(kind_of_noun(noun.lower_))


def _after_name(
    token: Token, mention: Mention, entity: NamedEntity, arguments: Arguments
) -> Iterator[Nominal]:
    """ "Museum in Valentano", "Ross Island, Antarctica"."""
    for child in token.rights:
        placed = child.lower_ == "of" or (child.lower_ in _PLACED and entity.type in _SITED)
        if child.dep_ == "prep" and child.i == mention.end and placed:
            for target in _preposition_targets(child)[:1]:
                target_entity = arguments.named_at(target)
                if (
                    target_entity is not None
                    and target_entity is not entity
                    and _is_site(target_entity, child)
                ):
                    yield Nominal(entity, child.lower_, target_entity, _WEAK)
        elif child.dep_ == "npadvmod" and child.i > mention.end:
            target_entity = arguments.named_at(child)
            if (
                target_entity is not None
                and target_entity.type == entity.type == "place"
                and target_entity is not entity
            ):
                yield Nominal(entity, "in", target_entity, _LIKELY)
