"""How values are drawn: a value names a form, and what draws that is loaded when it is asked for.

Values stand below what draws them and never import it.
"""

from __future__ import annotations

from pkgutil import resolve_name

_RENDERERS = {
    "notebook": "tgraph.explain.render.html:notebook",
    "markdown": "tgraph.explain.evaluation_report:markdown",
}


def render(value: object, form: str) -> str:
    """The value in a form; ``TypeError`` where nothing draws such a value in it."""
    return str(resolve_name(_RENDERERS[form])(value))
