"""Dependency rules: turn a parsed sentence into statements, as tokens and predicates.

Covered are active and passive clauses, copulas, relative and participial clauses, coordination
of subjects, verbs and objects, open complements ("begin to explore") and prepositional objects,
whose preposition joins the predicate ("be born in"). Labels are those of ClearNLP, which
spaCy's English pipelines use. Arguments stay tokens here; ``tgraph.extract.english.arguments``
resolves them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tgraph.extract.english.parser import (
    core_text,
    find_conjuncts,
    find_lemma,
    is_noun,
    negation_of,
    verb_lemma,
)
from tgraph.extract.entity_types import denotes_person
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_OBJECTS = frozenset({"dobj", "oprd", "attr"})
_PREPOSITIONS = frozenset({"prep", "agent", "dative"})
_OF_ADJECTIVES = frozenset({"prep", "ccomp", "xcomp", "advcl", "pcomp"})
_RELATIVE = frozenset({"WDT", "WP"})
_CONDITIONS = frozenset({"if", "unless", "whether", "lest"})
_NOBODY = frozenset({"GPE", "LOC", "FAC", "LAW", "LANGUAGE", "DATE", "EVENT"})
_NO_OR_FEW = frozenset({"no", "none", "neither", "few", "hardly", "nobody"})
_COPULAS = frozenset({"be", "become", "remain", "seem", "appear", "get", "grow", "feel", "look"})
_OPEN = frozenset({"possible", "impossible", "likely", "unlikely", "unclear", "doubtful", "false"})
_NOT = frozenset({"from", "without", "of", "against"})
_HEDGES = frozenset({"would", "could", "might", "may", "can", "should", "'d", "’d"})
_SAYING = word_set("english", "saying")
_IMPLICATIVE = word_set("english", "implicative")
_OF_VERBS = word_set("english", "of_verbs")
_DEEPEST = 6
_MODALS = {"'ll": "will", "’ll": "will", "'d": "would", "’d": "would", "ca": "can", "wo": "will"}


@dataclass(frozen=True, slots=True)
class TokenStatement:
    """Subject and object tokens joined by a predicate; ``direct`` marks subjects standing
    inside the clause."""

    subject: Token
    predicate: str
    object: Token
    verb: Token
    direct: bool = True
    reported: bool = False


_Complement = tuple[str, "Token"]  # a predicate and its object


def read_statements(sentence: Span) -> Iterator[TokenStatement]:
    """Yield statements of a sentence, in verb order. Questions yield nothing."""
    if sentence.text.rstrip("\"'”’) ").endswith("?"):
        return
    for token in sentence:
        if (
            token.tag_.startswith("VB") and token.dep_ not in ("aux", "auxpass", "xcomp", "amod")
        ) or (token.dep_ == "xcomp" and _controlling_object(token) is not None):
            yield from _of_verb(token)


def find_antecedent(relative: Token) -> Token | None:
    """Return the noun denoted by a relative pronoun.

    In "a lawyer from Cardiff, who ..." the result is the person, though the clause may attach
    to the place."""
    noun = next((clause.head for clause in relative.ancestors if clause.dep_ == "relcl"), None)
    if noun is None or noun.dep_ != "pobj":
        return noun
    if relative.lower_ in ("who", "whom") and noun.ent_type_ in _NOBODY:
        return _person_above(noun)
    if relative.lower_ not in ("who", "whom"):
        clause = next(clause for clause in relative.ancestors if clause.dep_ == "relcl")
        return None if _hangs_loose(clause, noun) else noun
    return _person_above(noun) or noun


def _person_above(noun: Token) -> Token | None:
    """Return the person described by a noun phrase: the lawyer of "lawyer from Cardiff"."""
    person = noun.head.head
    return person if is_noun(person) and denotes_person(find_lemma(person.lower_, "noun")) else None


def _of_verb(verb: Token) -> Iterator[TokenStatement]:
    if _is_conditional(verb):
        return
    subjects, direct = _find_subjects(verb)
    if len(subjects) > 1 and any(token.lower_ == "respectively" for token in verb.sent):
        return  # which belongs to which is not said by the grammar
    reported = bool(subjects) and _is_reported(verb)
    for predicate, obj in _find_complements(verb, predicate_of(verb)) if subjects else ():
        for subject in subjects:
            if subject.i != obj.i:
                yield TokenStatement(subject, predicate, obj, verb, direct, reported)


def _is_conditional(verb: Token) -> bool:
    """Tell whether a verb states or depends on a condition ("if Scott had ...")."""
    if any(map(_has_condition, chain([verb], verb.ancestors))):
        return True
    while verb.dep_ == "conj":
        verb = verb.head
    if verb.dep_ == "ccomp" and any(c.lower_ in _OPEN for c in verb.head.children):
        return True
    if any(child.tag_ == "MD" and child.lower_ in _HEDGES for child in verb.children):
        return False  # the predicate says so: "would ..."
    return any(child.dep_ == "advcl" and _has_condition(child) for child in verb.children)


def _has_condition(verb: Token) -> bool:
    return any(child.dep_ == "mark" and child.lower_ in _CONDITIONS for child in verb.children)


def _is_reported(verb: Token) -> bool:
    clause = verb
    while clause.dep_ == "conj":
        clause = clause.head
    return clause.dep_ == "ccomp" and verb_lemma(clause.head) in _SAYING


def subjects_of(verb: Token) -> list[Token]:
    """Return a verb's subject tokens, including subjects inherited from preceding clauses."""
    return _find_subjects(verb)[0]


def _find_subjects(verb: Token, depth: int = 0) -> tuple[list[Token], bool]:
    """Return subject tokens of a verb, plus a flag for subjects inside its clause."""
    clause_subjects = [child for child in verb.children if child.dep_ in _SUBJECTS]
    if clause_subjects:
        if _is_wanted(verb):
            return [], True
        if clause_subjects[-1].lower_ in _NO_OR_FEW or any(
            c.lower_ in _NO_OR_FEW for c in clause_subjects[-1].children
        ):
            return [], True
        subjects = _resolve_token(clause_subjects[-1])
        return [lift_noun(t) for t in subjects] if clause_subjects[
            -1
        ].tag_ in _RELATIVE else subjects, True
    if depth > _DEEPEST or any(child.dep_ in ("expl", "csubj") for child in verb.children):
        return [], False
    return _inherited_subjects(verb, depth), False


def _is_wanted(verb: Token) -> bool:
    """Tell whether a "to" clause with its subject expresses a request, not a fact.

    Example: "asked the king to go"."""
    infinite = any(child.tag_ == "TO" for child in verb.children)
    return infinite and verb_lemma(verb.head) not in _IMPLICATIVE


def _inherited_subjects(verb: Token, depth: int) -> list[Token]:
    head, role = verb.head, verb.dep_
    if role == "acl" and (verb.tag_ not in ("VBN", "VBG") or _hangs_loose(verb, head)):
        return []
    if role in ("acl", "relcl") and is_noun(head):
        return [lift_noun(head)]
    if verb.tag_ == "VBG" and role in ("advcl", "pcomp"):
        by = head if role == "advcl" else head.head
        if _is_verb(by) and is_passive(by):
            return []  # "were computed by taking ...": who did is not said
    if role == "xcomp":
        controller = _controlling_object(verb)
        if controller is not None:
            subjects = _find_subjects(head, depth + 1)[0]
            return [controller] if verb_lemma(head) in _IMPLICATIVE and subjects else []
        return _find_subjects(head, depth + 1)[0]
    adverbial = role == "advcl" and verb.tag_ in ("VBG", "VBN")
    if _is_verb(head) and (adverbial or role == "conj"):
        return _find_subjects(head, depth + 1)[0]
    if any(child.dep_ == "poss" for child in verb.children):
        return []
    if role == "pcomp" and _is_verb(head.head) and verb.tag_ == "VBG" and head.lower_ not in _NOT:
        return _find_subjects(head.head, depth + 1)[0]
    return []


def _hangs_loose(clause: Token, noun: Token) -> bool:
    """Tell whether a clause after a comma or bracket may describe an earlier noun: "the Center
    for Arts, designed by ...", "the medium (Acme), supplemented with ..."."""
    between = noun.doc[noun.i + 1 : clause.left_edge.i]
    if any(token.text in "()[]" for token in between):
        return True
    inner = noun.dep_ == "pobj" and is_noun(noun.head.head)
    return inner and any(token.text == "," for token in between)


def _resolve_token(token: Token) -> list[Token]:
    """Return a relative pronoun's antecedent, or any other token with conjuncts."""
    if token.tag_ not in _RELATIVE:
        return find_conjuncts(token)
    noun = find_antecedent(token)
    return [noun] if noun is not None else []


def lift_noun(noun: Token) -> Token:
    """Return a describing noun's target: copula subject, or apposition head."""
    if noun.tag_ in ("NNP", "NNPS"):
        return noun
    if noun.dep_ == "attr":
        subjects = [child for child in noun.head.children if child.dep_ in _SUBJECTS]
        if subjects and verb_lemma(noun.head) == "be":
            return subjects[0]
    if noun.dep_ == "appos" and is_noun(noun.head):
        return noun.head
    return noun


def _controlling_object(verb: Token) -> Token | None:
    """The object that governs an open complement: "asked Sheeran to write"."""
    if verb.dep_ != "xcomp" or not _is_verb(verb.head):
        return None
    return next((child for child in verb.head.children if child.dep_ == "dobj"), None)


def predicate_of(verb: Token) -> str:
    """Return a verb as predicate: base form, or "be" with participle, keeping negation and
    modals."""
    negation, modal = _find_negation(verb), _find_modal(verb)
    negation = "never" if negation == "never" else "not" if negation else ""
    particle = next((child.lower_ for child in verb.children if child.dep_ == "prt"), "")
    if is_passive(verb):
        words = [modal, "be", negation, verb.lower_, particle]
    elif verb_lemma(verb) == "be":
        words = [modal, "be", negation]
    else:
        support = "do" if negation == "not" and not modal else ""
        words = [modal, support, negation, verb_lemma(verb), particle]
    return " ".join(filter(None, words))


def _find_negation(verb: Token) -> str:
    """Return a verb's negation word, including negated alternatives ("will not share or sell")."""
    denies = (c.lower_ for c in verb.children if c.dep_ == "neg" or c.lower_ in ("nor", "never"))
    negation = next(denies, "")
    if negation or not _is_alternative(verb):
        return negation
    return _find_negation(verb.head)


def _is_alternative(verb: Token) -> bool:
    joined = verb.dep_ == "conj" and not any(child.dep_ in _SUBJECTS for child in verb.children)
    first = verb.head if joined else verb
    while first.dep_ == "conj":
        first = first.head
    return joined and any(t.dep_ == "cc" and t.lower_ in ("or", "nor") for t in first.subtree)


def _find_modal(verb: Token) -> str:
    modal = next((_MODALS.get(c.lower_, c.lower_) for c in verb.children if c.tag_ == "MD"), "")
    alone = verb.tag_ == "VB" and not any(
        child.dep_ in _SUBJECTS or child.dep_ == "aux" for child in verb.children
    )
    return _find_modal(verb.head) if not modal and alone and verb.dep_ == "conj" else modal


def is_passive(verb: Token) -> bool:
    if any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children):
        return True
    if any(child.dep_ in ("aux", "dobj") for child in verb.children):
        return False
    if verb.tag_ == "VBN" and verb.dep_ == "ccomp":
        return True  # "saw it listed"
    if any(child.dep_ == "nsubj" for child in verb.children):
        return False
    participle = verb.tag_ in ("VBN", "VBD") and verb_lemma(verb) != "be"
    if verb.dep_ == "conj" and participle and _is_verb(verb.head):
        return is_passive(verb.head)
    return verb.tag_ == "VBN" and verb.dep_ in ("acl", "advcl", "relcl")


def _find_complements(verb: Token, base: str, depth: int = 0) -> Iterator[_Complement]:
    direct = _direct_objects(verb)
    gapped = not direct and _lacks_object(verb)
    states = [child for child in verb.children if child.dep_ == "acomp"]
    beside = _with_object(base, direct or (states if verb_lemma(verb) in _COPULAS else []))
    for child in verb.children:
        if child in direct:
            yield from ((base, token) for token in _resolve_token(child))
        elif child.dep_ == "acomp":
            yield from _adjective_complements(base, child)
        elif child.dep_ in _PREPOSITIONS and not gapped:
            if child.lower_ != "of" or verb_lemma(verb) in _OF_VERBS:
                yield from _prepositional_complements(beside, child)
        elif child.dep_ == "npadvmod":
            yield (f"{beside} @", child)
        elif child.dep_ == "xcomp" and not direct and depth < _DEEPEST and _is_verb(child):
            joint = " to " if any(c.lower_ == "to" for c in child.children) else " "
            form = child.lower_ if child.tag_ == "VBG" else predicate_of(child)
            yield from _find_complements(child, base + joint + form, depth + 1)
    if verb.dep_ == "relcl" and any(c.lower_ == "where" and c.tag_ == "WRB" for c in verb.children):
        yield f"{base} in", verb.head


def _lacks_object(verb: Token) -> bool:
    """Tell whether a verb's object precedes its clause: "the forces it had in France"."""
    relative = any(t.tag_ in _RELATIVE or t.tag_ == "WRB" for t in verb.lefts)
    return verb.dep_ == "relcl" and not relative and not is_passive(verb)


def _direct_objects(verb: Token) -> list[Token]:
    """Return direct objects of a verb, without recipient pronouns: "brought him a pill"."""
    direct = [child for child in verb.children if child.dep_ in _OBJECTS]
    recipients = [child for child in direct if child.dep_ == "dobj" and child.tag_ == "PRP"]
    return [c for c in direct if c not in recipients[:1]] if len(direct) > 1 else direct


def _adjective_complements(base: str, adjective: Token) -> Iterator[_Complement]:
    said_of = [child for child in adjective.children if child.dep_ in _OF_ADJECTIVES]
    if not any(child.i > adjective.i for child in said_of):
        yield (base, adjective)
    for child in said_of:
        if child.dep_ == "prep":
            yield from _prepositional_complements(f"{base} {adjective.lower_}", child)


def _prepositional_complements(
    base: str, preposition: Token, depth: int = 0
) -> Iterator[_Complement]:
    predicate = f"{base} {preposition.lower_}"
    complete = any(child.dep_ == "pobj" for child in preposition.children)
    for child in preposition.children:
        if child.dep_ == "pobj":
            yield from ((predicate, token) for token in _resolve_token(child))
        elif child.dep_ == "prep" and depth < _DEEPEST:
            yield from _prepositional_complements(base if complete else predicate, child, depth + 1)


def _with_object(base: str, direct: list[Token]) -> str:
    """Return a predicate including its direct object, for further complements: "reach the South
    Pole" + "on"."""
    if direct and (direct[0].tag_ == "PRP" or direct[0].dep_ == "acomp"):
        return f"{base} {direct[0].lower_}"
    if not direct or not is_noun(direct[0]):
        return base
    words = f"{negation_of(direct[0])} {core_text(direct[0])}".strip()
    return f"{base} {words}" if words and len(words.split()) <= 4 else base


def _is_verb(token: Token) -> bool:
    return token.tag_.startswith("VB")
