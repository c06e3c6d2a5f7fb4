"""English words whose forms no rule of endings connects."""

from __future__ import annotations

from tgraph.resources import tables

FORMS: dict[str, str] = {
    form: family[0]
    for family in map(str.split, tables("words")["families"].splitlines())
    for form in family[1:]
}
"""The first word of the family for each other form."""
