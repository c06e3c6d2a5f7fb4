"""``tgraph ontology``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, json_array, settings_of, strict_ontology
from tgraph.cli.running import command, open_call_graph
from tgraph.cli.terminal import (
    build_table,
    format_count,
    format_time,
    one_line,
    print_json,
    print_message,
    print_renderable,
)

if TYPE_CHECKING:
    from tgraph.engine.change.ontology_curation import AddedOntology, FitCounts
    from tgraph.extract.ontology import Ontology


@click.group("ontology", context_settings={"help_option_names": ["-h", "--help"]})
def ontology() -> None:
    """Guide the graph by your own classes and properties.

    The ontology is part of the prompts of a model, and extracted entities and facts are mapped to
    the terms of the ontology. A change of the ontology needs no new extraction: the evidence keeps
    the words of the texts.
    """


@command("add")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--reason", default="", help="The reason, kept in the record.")
@strict_ontology
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@chat_options
@common
def add(file: Path, reason: str, as_json: bool, quiet: bool, **flags: Any) -> None:
    """Add an ontology: OWL, RDFS, SKOS concepts or SHACL shapes, in any syntax of RDF.

    An ontology with the same IRI replaces the earlier version. Nothing is downloaded: ontologies
    that the file imports have to be added separately.

    \b
    Examples:
      tgraph ontology add polar.ttl --reason "The terms of our catalogue"
      tgraph ontology add shapes.ttl --strict-ontology
    """
    from tgraph.cli.progress import show_progress

    with (
        open_call_graph(settings_of(flags), create=True) as graph,
        show_progress(quiet) as (progress, message),
    ):
        added = graph.ontologies.add(file, reason=reason, progress=progress, message=message)
    if as_json:
        print_json(added)
        return
    print_message(_added_text(added))
    if added.missing:
        names = ", ".join(map(one_line, added.missing))
        print_message(
            f"Imported ontologies are missing: {names}. Nothing is downloaded; add the file of"
            " each ontology."
        )


def _added_text(added: AddedOntology) -> str:
    classes = format_count(added.classes, "class", "classes")
    term_counts = f"{classes}, {format_count(added.properties, 'property', 'properties')}"
    shapes = ", with shapes" if added.shapes else ""
    place = ", replacing an earlier version" if added.superseded else ""
    strict = (
        " Strict: knowledge excludes entities and facts outside the ontology."
        if added.strict
        else ""
    )
    head = f"Added {one_line(added.name)}: {term_counts}{shapes}{place}.{strict}"
    return f"{head}\n{_fit_text(added.fit)}"


def _fit_text(fit: FitCounts) -> str:
    entities = format_count(fit.entities, "entity", "entities")
    inside = f"Knowledge: {entities}, {format_count(fit.edges, 'edge')}."
    parts = [
        f"{kind} outside the ontology: {', '.join(f'{n:,} {reason}' for reason, n in by.items())}."
        for kind, by in (("Entities", fit.outside_entities), ("Edges", fit.outside_edges))
        if by
    ]
    return "\n".join((inside, *parts))


@command("list")
@json_array
@common
def list_(as_json: bool) -> None:
    """List the ontologies in use, with person, reason and time."""
    with open_call_graph() as graph:
        ontologies = graph.ontologies.read_standing()
    if as_json:
        print_json(ontologies)
    elif ontologies:
        columns = "Name", "Calls itself", "Strict", "Added (UTC)", "By", "Reason"
        rows = (
            (
                one_line(o.name),
                one_line(", ".join(o.iris)),
                "yes" if o.strict else "no",
                format_time(o.added),
                one_line(o.person),
                one_line(o.reason),
            )
            for o in ontologies
        )
        print_renderable(build_table(columns, rows))
    else:
        print_message("There is no ontology. `tgraph ontology add FILE` adds an ontology.")


@command("show")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def show_ontology(name: str | None, as_json: bool) -> None:
    """Show the classes and properties of the ontology NAME, or of all ontologies.

    \b
    Examples:
      tgraph ontology show
      tgraph ontology show polar.ttl --json | jq '.properties[].label'
    """
    with open_call_graph() as graph:
        ontology = graph.ontologies.read_terms(name)
    if as_json:
        print_json(_plain_ontology(ontology))
        return
    if not ontology.classes and not ontology.properties:
        print_message("There is no ontology. `tgraph ontology add FILE` adds an ontology.")
        return
    if ontology.classes:
        rows = [
            (
                one_line(c.label),
                one_line(", ".join(sorted(map(ontology.label, c.parents)))),
                one_line(", ".join(c.names)),
            )
            for c in sorted(ontology.classes.values(), key=lambda c: (c.label, c.iri))
        ]
        print_renderable(build_table(("Class", "Kind of", "Also called"), rows))
    if ontology.properties:
        click.echo()
        lines = [
            (
                one_line(p.label),
                one_line(" and ".join(_format_choice(ontology, choice) for choice in p.domains)),
                one_line(" and ".join(_format_choice(ontology, choice) for choice in p.ranges))
                or one_line(", ".join(sorted(map(ontology.label, p.datatypes)))),
                one_line(", ".join(p.names)),
            )
            for p in sorted(ontology.properties.values(), key=lambda p: (p.label, p.iri))
        ]
        print_renderable(build_table(("Property", "From", "To", "Also called"), lines))


def _plain_ontology(found: Ontology) -> dict[str, list[dict[str, Any]]]:
    """Return classes and properties with lists instead of sets."""
    return {
        "classes": [_sets_to_lists(asdict(term)) for term in found.classes.values()],
        "properties": [_sets_to_lists(asdict(term)) for term in found.properties.values()],
    }


def _sets_to_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sets_to_lists(item) for name, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_sets_to_lists(item) for item in value] if isinstance(value, tuple) else value


def _format_choice(found: Ontology, choice: frozenset[str]) -> str:
    return " or ".join(sorted(map(found.label, choice)))


@command("remove")
@click.argument("name")
@click.option("--reason", required=True, help="The reason, kept in the record.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@chat_options
@common
def remove(name: str, reason: str, quiet: bool, **flags: Any) -> None:
    """Remove an ontology: knowledge is then the same as without the ontology; the record keeps the
    ontology.

    \b
    Examples:
      tgraph ontology remove polar.ttl --reason "The catalogue was given up"
    """
    from tgraph.cli.progress import show_progress

    with (
        open_call_graph(settings_of(flags)) as graph,
        show_progress(quiet) as (progress, message),
    ):
        removed = graph.ontologies.remove(name, reason=reason, progress=progress, message=message)
    print_message(f"Removed {one_line(removed.name)}.")


for _command in (add, list_, show_ontology, remove):
    ontology.add_command(_command)
