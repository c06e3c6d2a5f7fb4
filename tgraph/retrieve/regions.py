"""Places that hold others: whoever was born in Warsaw was born in Poland too."""

from __future__ import annotations

import re

from tgraph.resources import name_list

_WIDE = re.compile(
    r"\b(?:africa|america|antarctic|antarctica|archipelago|asia|australasia|bay|canton|coast|"
    r"continent|county|department|district|empire|england|europe|glacier|gulf|highlands|island|"
    r"islands|isle|isles|kingdom|lake|land|mountain|mountains|oceania?|ocean|peninsula|prefecture|"
    r"province|region|republic|river|scandinavia|scotland|sea|shelf|shire|sound|state|states|strait|"
    r"territory|union|valley|wales|north|south|east|west|northern|southern|eastern|western|"
    r"mediterranean|arctic|atlantic|pacific|baltic)\b|shire\b"
)
"""Words of the names of regions and waters."""

_COUNTRIES = frozenset(name_list("regions", "names"))


def is_region(name: str) -> bool:
    """Whether a name, normalised, is of a country, a region or a water rather than of a town."""
    bare = name.removeprefix("the ")
    return bare in _COUNTRIES or _WIDE.search(bare) is not None
