"""Places that hold others: whoever was born in Warsaw was born in Poland too."""

from __future__ import annotations

import re

_WIDE = re.compile(
    r"\b(?:africa|america|antarctic|antarctica|archipelago|asia|australasia|bay|canton|coast|"
    r"continent|county|department|district|empire|england|europe|glacier|gulf|highlands|island|"
    r"islands|isle|isles|kingdom|lake|land|mountain|mountains|oceania?|ocean|peninsula|prefecture|"
    r"province|region|republic|river|scandinavia|scotland|sea|shelf|shire|sound|state|states|strait|"
    r"territory|union|valley|wales|north|south|east|west|northern|southern|eastern|western|"
    r"mediterranean|arctic|atlantic|pacific|baltic)\b|shire\b"
)
"""Words of the names of regions and waters."""

_NAMES = """
afghanistan, alaska, albania, algeria, andorra, angola, antigua and barbuda, argentina, armenia,
australia, austria, austria-hungary, azerbaijan, bahamas, bahrain, bangladesh, barbados,
bavaria, belarus, belgium, belize, benin, bhutan, bohemia, bolivia, bosnia and herzegovina,
botswana, brandenburg, brazil, britain, brittany, brunei, bulgaria, burkina faso, burma,
burundi, california, cambodia, cameroon, canada, cape verde, catalonia, chad, chile, china,
colombia, comoros, congo, connacht, cornwall, costa rica, crimea, croatia, cuba, cumbria,
cyprus, czechia, czechoslovakia, denmark, devon, djibouti, dominica, dorset, ecuador, egypt, el
salvador, equatorial guinea, eritrea, essex, estonia, eswatini, ethiopia, fiji, finland,
flanders, florida, france, gabon, galicia, gambia, georgia, germany, ghana, great britain,
greece, greenland, grenada, guatemala, guinea, guinea-bissau, guyana, haiti, hawaii, hesse,
holland, honduras, hungary, iceland, illinois, india, indonesia, iran, iraq, ireland, israel,
italy, ivory coast, jamaica, japan, jordan, kazakhstan, kent, kenya, kiribati, korea, kosovo,
kuwait, kyrgyzstan, laos, lapland, latvia, lebanon, leinster, lesotho, liberia, libya,
liechtenstein, lithuania, luxembourg, madagascar, malawi, malaysia, maldives, mali, malta,
massachusetts, mauritania, mauritius, mexico, michigan, micronesia, moldova, monaco, mongolia,
montenegro, morocco, mozambique, munster, myanmar, namibia, nauru, nepal, netherlands, new
zealand, nicaragua, niger, nigeria, norfolk, normandy, norway, ohio, oman, ontario, pakistan,
palau, palestine, panama, papua new guinea, paraguay, pennsylvania, persia, peru, philippines,
poland, pomerania, portugal, prussia, qatar, quebec, queensland, romania, russia, rwanda, samoa,
san marino, saudi arabia, saxony, senegal, serbia, seychelles, siam, siberia, sicily, sierra
leone, silesia, singapore, slovakia, slovenia, somalia, somerset, spain, sri lanka, sudan,
suffolk, suriname, surrey, sussex, sweden, switzerland, syria, taiwan, tajikistan, tanzania,
tasmania, texas, thailand, thuringia, togo, tonga, trinidad and tobago, tunisia, turkey,
turkmenistan, tuscany, tuvalu, tyrol, uganda, uk, ukraine, ulster, uruguay, us, usa, ussr,
uzbekistan, vanuatu, vatican, venezuela, victoria, vietnam, virginia, wallonia, yemen,
yugoslavia, zaire, zambia, zimbabwe, 中国, 日本
"""
_COUNTRIES = frozenset(name.strip() for name in _NAMES.replace("\n", " ").split(","))


def is_region(name: str) -> bool:
    """Whether a name, normalised, is of a country, a region or a water rather than of a town."""
    bare = name.removeprefix("the ")
    return bare in _COUNTRIES or _WIDE.search(bare) is not None
