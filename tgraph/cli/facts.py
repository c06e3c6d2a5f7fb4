"""``tgraph facts`` and ``tgraph curations``: what people state, deny and take back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tgraph.cli.options import chat_options, common, json_array, settings_of
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
from tgraph.errors import UsageError

if TYPE_CHECKING:
    from tgraph.engine.change.corrections import Correction
    from tgraph.explain.trace.curations import Curation

reason_option = click.option("--reason", required=True, help="The reason, kept in the record.")
weight_option = click.option(
    "--weight",
    type=click.FloatRange(1, 10),
    help="The strength of the fact, 1 to 10; 5 by default.",
)
datatype_option = click.option(
    "--datatype", metavar="TYPE", help="The object is a value of this type, such as date."
)
_WIDTH = 60
_ID = 12


@click.group("facts", context_settings={"help_option_names": ["-h", "--help"]})
def facts() -> None:
    """List, add, edit and deny facts about entities.

    FACT is the id of an edge (the IRI, or the beginning of the id shown by `facts list`), or three
    names: subject, predicate, object. Each decision is recorded; `tgraph curations undo` reverses a
    decision.
    """


@command("list")
@click.argument("entity")
@json_array
@common
def list_(entity: str, as_json: bool) -> None:
    """List the facts about ENTITY with their ids.

    \b
    Examples:
      tgraph facts list "Roald Amundsen"
      tgraph facts list "Roald Amundsen" --json | jq '.[] | select(.by_hand)'
    """
    with open_call_graph() as graph:
        known_facts = graph.entities.read_facts(entity)
        if as_json:
            print_json(known_facts)
        elif known_facts:
            rows = (
                (
                    fact.edge.rpartition(":")[2][:_ID],
                    one_line(fact.text),
                    f"{fact.weight:g}",
                    f"{fact.documents:,}" + (" + by hand" if fact.by_hand else ""),
                )
                for fact in known_facts
            )
            print_renderable(build_table(("Id", "Fact", "Weight", "Documents"), rows))
        else:
            print_message(f"There are no facts about {one_line(entity)}.")


@command("add")
@click.argument("subject")
@click.argument("predicate")
@click.argument("object_", metavar="OBJECT")
@click.option("--literal", is_flag=True, help="OBJECT is a text, not the name of an entity.")
@datatype_option
@click.option("--description", help="A description of the fact.")
@weight_option
@reason_option
@chat_options
@common
def add(
    subject: str,
    predicate: str,
    object_: str,
    literal: bool,
    datatype: str | None,
    description: str | None,
    weight: float | None,
    reason: str,
    **flags: Any,
) -> None:
    """Add a fact: evidence stated by a person, beside the evidence in documents.

    A name unknown to the graph becomes a new entity, with a message. The fact is quoted, traced and
    audited like a document, under the title "Stated by hand", with your name if the setting
    `person` has your name.

    \b
    Examples:
      tgraph facts add "Roald Amundsen" "was born in" Borge --reason "parish register"
      tgraph facts add "Roald Amundsen" "was born on" 1872-07-16 --datatype date --reason "the same"
    """
    with open_call_graph(settings_of(flags)) as graph:
        values = {"description": description or "", "weight": weight}
        correction = graph.entities.add_fact(
            subject,
            predicate,
            object_,
            reason=reason,
            literal=literal,
            datatype=datatype,
            **values,  # type: ignore[arg-type]
        )
    print_correction(correction)


@command("edit")
@click.argument("fact", nargs=-1, required=True)
@click.option("--subject", default="", help="The new subject.")
@click.option("--predicate", default="", help="The new predicate.")
@click.option("--object", "object_", default="", help="The new object.")
@click.option("--literal", is_flag=True, help="The object is a text, not the name of an entity.")
@datatype_option
@click.option(
    "--description", help="A description of the fact, in place of the description in documents."
)
@weight_option
@reason_option
@chat_options
@common
def edit(
    fact: tuple[str, ...],
    subject: str,
    predicate: str,
    object_: str,
    literal: bool,
    datatype: str | None,
    description: str | None,
    weight: float | None,
    reason: str,
    **flags: Any,
) -> None:
    """Replace FACT with another fact, or change the description or weight of FACT.

    The old fact is denied and the new fact is added, as one decision; `tgraph curations undo`
    reverses both.

    \b
    Examples:
      tgraph facts edit 742df8d082bf --object Borge --reason "parish register"
      tgraph facts edit Fram "was built by" "Colin Archer" --weight 9 --reason "certain"
    """
    _check_fact(fact)
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.edit_fact(
            *fact,
            reason=reason,
            subject=subject,
            predicate=predicate,
            object=object_,
            literal=literal,
            datatype=datatype,
            description=description,
            weight=weight,
        )
    print_correction(correction)


@command("deny")
@click.argument("fact", nargs=-1, required=True)
@reason_option
@chat_options
@common
def deny(fact: tuple[str, ...], reason: str, **flags: Any) -> None:
    """Remove FACT from the graph, also if documents state FACT later or under other names.

    The evidence in documents stays on record, and searches still find the sentences as text.
    Answers based on the fact are called into question in `sessions` and `trace`.

    \b
    Examples:
      tgraph facts deny 742df8d082bf --reason "a misprint, see the errata"
      tgraph facts deny "Robert Scott" reach "North Pole" --reason "it was the South Pole"
    """
    _check_fact(fact)
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.entities.deny_fact(*fact, reason=reason)
    print_correction(correction)


def _check_fact(fact: tuple[str, ...]) -> None:
    if len(fact) not in (1, 3):
        raise UsageError(
            "A fact is named by its id, or by subject, predicate and object.",
            "Put names of several words in quotation marks.",
        )


def print_correction(done: Correction) -> None:
    """Print the results of a correction."""
    print_message(f"{one_line(done.said)} ({done.curation})")
    if done.new:
        names = ", ".join(map(one_line, done.new))
        print_message(f"New to the graph: {names}.")
    if done.questioned:
        print_message(f"Answers called into question: {len(done.questioned):,}.")


for _command in (list_, add, edit, deny):
    facts.add_command(_command)


@click.group("curations", context_settings={"help_option_names": ["-h", "--help"]})
def curations() -> None:
    """List, show and undo decisions of people about the graph (curations).

    ID is the IRI of the curation, the UUID, the beginning of the UUID, or `last`.
    """


@command("list")
@click.option("--standing", is_flag=True, help="List only decisions in force.")
@json_array
@common
def list_curations(standing: bool, as_json: bool) -> None:
    """List the decisions, newest first: kind, time, person, reason, and whether the decision is in
    force.

    \b
    Examples:
      tgraph curations list --standing
      tgraph curations list --json | jq '.[] | select(.label == "Fact denied")'
    """
    with open_call_graph() as graph:
        curations = [
            curation
            for curation in graph.history.read_curations()
            if curation.standing or not standing
        ]
        if as_json:
            print_json(curations)
        elif curations:
            columns = "Id", "Decision", "About", "Decided (UTC)", "By", "Reason", "Standing"
            print_renderable(build_table(columns, map(_curation_row, curations)))
        else:
            print_message("There are no decisions by people.")


def _curation_row(each: Curation) -> tuple[str, ...]:
    return (
        _curation_uuid(each.curation)[:8],
        each.label,
        one_line(each.what, _WIDTH),
        format_time(each.decided),
        one_line(each.person),
        one_line(each.reason, _WIDTH),
        "" if each.standing else "undone",
    )


def _curation_uuid(curation: str) -> str:
    return curation.rpartition("curation:")[2]


@command("show")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common
def show_decision(name: str, as_json: bool) -> None:
    """Show one decision with the results and the recorded note.

    \b
    Examples:
      tgraph curations show last
    """
    with open_call_graph() as graph:
        decision = graph.history.find_curation(name)
        if as_json:
            print_json(decision)
            return
        lines = [
            f"{decision.label}: {one_line(decision.what)}",
            f"Decided {format_time(decision.decided)}"
            + (f" by {one_line(decision.person)}" * bool(decision.person)),
            f"Reason: {one_line(decision.reason)}",
            f"Curation: {decision.curation}",
            *([f"Takes back: {decision.undoes}"] if decision.undoes else []),
            *([f"Undone by: {decision.undone_by}"] if decision.undone_by else []),
            *(
                f"{result.kind}: {result.iri}"
                + (f" (ended {format_time(result.ended)})" * bool(result.ended))
                for result in decision.results
            ),
            *([f"Document: {decision.document}"] if decision.document else []),
        ]
        click.echo("\n".join(lines))
        if decision.document and any(result.kind == "Accession" for result in decision.results):
            text = graph.documents.read_text(decision.document)
            click.echo(
                "".join(f"  {one_line(line)}\n" for line in text.splitlines() if line), nl=False
            )


@command("undo")
@click.argument("name", metavar="ID")
@reason_option
@chat_options
@common
def undo(name: str, reason: str, **flags: Any) -> None:
    """Undo a decision: the graph is then the same as without the decision. `last` is the last
    decision in force.

    All parts of a decision are undone together. The decision and the undoing stay on record.
    Answers based on the decision are called into question.

    \b
    Examples:
      tgraph curations undo last --reason "the register was misread"
    """
    with open_call_graph(settings_of(flags)) as graph:
        correction = graph.history.undo_curation(name, reason=reason)
    print_message(f"Undone: {one_line(correction.said)} ({correction.curation})")
    if correction.questioned:
        print_message(f"{format_count(len(correction.questioned), 'answer')} called into question.")


for _command in (list_curations, show_decision, undo):
    curations.add_command(_command)
