"""What kind of thing a name or a noun stands for, by the words in it."""

from __future__ import annotations

from functools import lru_cache

from tgraph.extract.lexicon import words

_NOUNS = {
    "person": words(
        """
        people man woman boy girl person actor actress singer songwriter writer author poet
        novelist musician composer artist painter director producer player footballer politician
        president king queen prince princess emperor explorer captain officer leader doctor
        physician scientist chemist physicist mathematician biologist geologist naturalist
        engineer lawyer judge bishop priest saint soldier sailor seaman navigator commander
        general admiral lieutenant surgeon professor teacher historian philosopher journalist
        editor photographer wife husband son daughter father mother brother sister uncle aunt
        nephew niece cousin friend gentleman lady clerk merchant banker founder chairman
        secretary minister senator governor mayor coach manager driver pilot astronaut
        businessman entrepreneur architect designer inventor economist theologian psychologist
        rapper guitarist drummer pianist dancer comedian model wrestler boxer swimmer cyclist
        cook carpenter
        """
    ),
    "ship": words(
        """
        ship vessel boat steamer schooner barque barquentine yacht icebreaker submarine frigate
        whaler sloop cruiser destroyer battleship tug freighter liner ketch brig
        """
    ),
    "organization": words(
        """
        company corporation firm organization organisation university college school institute
        institution society association agency bank party club team band orchestra museum
        committee council court government ministry department army navy church airline
        manufacturer publisher studio label federation union foundation group academy laboratory
        commission board league bureau office corps regiment station network hospital inc ltd
        corp co gmbh admiralty
        """
    ),
    "place": words(
        """
        city town village country state county province region district island continent river
        lake mountain sea ocean bay cape peninsula glacier valley desert coast capital
        municipality borough community parish republic kingdom empire territory area location
        park forest hill pole street road avenue square gulf strait canal creek harbour harbor
        port shelf plateau volcano range point sound barrier land headland archipelago suburb
        neighborhood neighbourhood township mount fjord inlet beach rock reef settlement
        """
    ),
    "event": words(
        """
        war battle expedition election festival olympics championship tournament cup revolution
        ceremony conference games season race voyage crisis disaster siege treaty match
        earthquake massacre campaign uprising drift crossing congress journey
        """
    ),
    "work": words(
        """
        book novel film movie song album single poem play series journal magazine newspaper
        painting opera symphony story episode show soundtrack documentary game report diary
        article newsletter periodical musical comic sequel
        """
    ),
    "award": words(
        """
        award prize medal trophy honour honor
        """
    ),
    "facility": words(
        """
        building bridge airport stadium tower castle cathedral palace hut base camp theatre
        theater hall house prison hotel library railway highway monument memorial tunnel dam
        """
    ),
    "product": words(
        """
        aircraft car engine computer software device weapon rocket satellite spacecraft
        """
    ),
    "group": words(
        """
        nationality tribe
        """
    ),
    "law": words(
        """
        act law constitution directive amendment
        """
    ),
}
_BY_NOUN = {noun: kind for kind, nouns in _NOUNS.items() for noun in sorted(nouns)}

_TITLES_MALE = words(
    """
    mr sir lord king prince duke earl count baron father brother uncle master
    """
)
_TITLES_FEMALE = words(
    """
    mrs ms miss lady duchess countess queen princess mother sister aunt madame dame
    """
)
_TITLES = (
    _TITLES_MALE
    | _TITLES_FEMALE
    | words(
        """
    dr captain capt lieutenant lt sergeant private general colonel commander admiral professor
    president saint bishop pope petty
    """
    )
)
_SHIP_PREFIXES = words(
    """
    ss hms rms uss hmas rrs rv mv sy ms
    """
)

_MALE_NAMES = words(
    """
    james john robert michael william david richard joseph thomas charles christopher daniel
    matthew anthony mark donald steven paul andrew joshua kenneth kevin brian george edward
    ronald timothy jason jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin
    scott brandon benjamin samuel gregory frank alexander raymond patrick jack dennis jerry
    tyler aaron henry adam douglas peter nathan zachary walter kyle harold carl jeremy keith
    roger arthur terry lawrence sean christian albert joe ethan austin jesse willie billy bryan
    bruce jordan ralph roy noah dylan eugene wayne alan juan louis russell gabriel randy philip
    harry vincent bobby johnny logan ernest ernst fridtjof roald tom tim bob fred ebenezer
    leonard martin pierre otto karl hans jean marco antonio jose luis carlos pedro olav lars
    nils sven ivan vladimir sergei boris edgar edwin frederick herbert hugh oscar stanley sidney
    simon theodore victor winston ludwig johann johannes friedrich wilhelm franz heinrich
    hjalmar lincoln apsley cecil hubert colin dick
    """
)
_FEMALE_NAMES = words(
    """
    mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty
    margaret sandra ashley kimberly emily donna michelle carol amanda dorothy melissa deborah
    stephanie rebecca sharon laura cynthia kathleen amy angela shirley anna brenda pamela emma
    nicole helen samantha katherine christine debra rachel carolyn janet catherine maria heather
    diane ruth julie olivia joyce virginia victoria kelly lauren christina joan evelyn judith
    megan andrea cheryl hannah jacqueline martha gloria teresa ann anne sara madison frances
    kathryn janice jean abigail alice julia judy sophia grace denise amber doris marilyn
    danielle beverly isabella theresa diana natalie brittany charlotte marie kayla alexis lori
    belle caroline belinda fan irene eve clara ada rosalind lise jane ellen eleanor florence
    edith agnes ingrid astrid kate lucy rose katie sally
    """
)


@lru_cache(maxsize=50_000)
def kind_of_name(name: str, label: str = "") -> str:
    """The type of a name: by its words where they tell, else what the recogniser said."""
    words = [word.strip(".,'’").lower() for word in name.split()]
    while len(words) > 1 and not any(map(str.isalpha, words[-1])):
        words.pop()
    if not words:
        return label
    if words[0] in _TITLES and len(words) > 1 and label != "work":
        return "person"
    if words[0] in _SHIP_PREFIXES and len(words) > 1:
        return "ship"
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    by_word = _BY_NOUN.get(head) or (_BY_NOUN.get(words[0]) if len(words) > 1 else None)
    if by_word in (None, "person") or label in ("work", "person") or len(words) == 1:
        return label or _as_person(words)
    return by_word or label


def _as_person(words: list[str]) -> str:
    return "person" if len(words) > 1 and words[0] in _MALE_NAMES | _FEMALE_NAMES else ""


@lru_cache(maxsize=10_000)
def kind_of_noun(noun: str) -> str:
    """The type of what a common noun (its base form) denotes, empty where that isn't known."""
    return _BY_NOUN.get(noun.lower(), "")


def denotes_person(noun: str) -> bool:
    """Whether a noun can describe a person: known, or by its ending ("whaler", "geologist")."""
    return kind_of_noun(noun) == "person" or noun.endswith(("er", "or", "ist", "man", "ian", "ant"))


@lru_cache(maxsize=10_000)
def gender_of_name(name: str) -> str:
    """``male``, ``female`` or empty, from titles and first names."""
    words = [word.strip(".,'’").lower() for word in name.split()]
    if any(word in _TITLES_FEMALE for word in words[:1]):
        return "female"
    if any(word in _TITLES_MALE for word in words[:1]):
        return "male"
    first = words[1] if len(words) > 2 and words[0] in _TITLES else words[0] if words else ""
    if first in _MALE_NAMES:
        return "male"
    return "female" if first in _FEMALE_NAMES else ""


def is_title(word: str) -> bool:
    return word.strip(".").lower() in _TITLES


def without_title(name: str) -> str:
    """``Robert Falcon Scott`` for ``Captain Robert Falcon Scott``; one name keeps its title."""
    words = name.split()
    while len(words) > 2 and is_title(words[0]):
        words = words[1:]
    return " ".join(words)
