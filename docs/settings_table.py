"""Prints the table of docs/reference/settings.md from the settings themselves."""

from __future__ import annotations

from pydantic import BaseModel

from tgraph.settings import Settings


def rows(model: type[BaseModel], prefix: str = "") -> list[str]:
    lines = []
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            lines += rows(annotation, f"{prefix}{name}.")
            continue
        default = "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{prefix}{name}` | {default} | {field.description or ''} |")
    return lines


def table() -> str:
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows(Settings)]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
