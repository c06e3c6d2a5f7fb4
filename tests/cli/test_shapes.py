"""A value's JSON and its schema come from one table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import jsonschema
import pytest

from tgraph.engine.json_shape import JsonKey, JsonShape


@dataclass(frozen=True)
class Port:
    name: Annotated[str, "as the chart has it"]
    depth: float | None = None

    @property
    def is_deep(self) -> Annotated[bool, "more than ten"]:
        return (self.depth or 0) > 10


@dataclass(frozen=True)
class Voyage:
    ports: tuple[Port, ...]
    days: Mapping[str, int]
    first: Port | None = None


PORT = JsonShape("PortOut", Port, "A port.", "port=name depth is_deep")
VOYAGE = JsonShape(
    "VoyageOut",
    Voyage,
    None,
    "ports days first length",
    (PORT,),
    {"length": JsonKey(int, "in ports", lambda voyage: len(voyage.ports))},
)
FRAM = Voyage((Port("Oslo", 30.0), Port("Tromsø")), {"north": 3})


def test_attributes_are_printed_in_their_order_and_parts_by_their_own_shapes():
    assert VOYAGE.plain(FRAM) == {
        "ports": [
            {"port": "Oslo", "depth": 30.0, "is_deep": True},
            {"port": "Tromsø", "depth": None, "is_deep": False},
        ],
        "days": {"north": 3},
        "first": None,
        "length": 2,
    }
    assert list(VOYAGE.plain(FRAM)) == ["ports", "days", "first", "length"]


def test_what_the_value_can_t_tell_is_given():
    assert VOYAGE.plain(FRAM, first=FRAM.ports[1])["first"]["port"] == "Tromsø"


def test_the_schema_has_the_types_and_descriptions_of_the_value():
    schema = VOYAGE.model().model_json_schema(mode="serialization")
    port = schema["$defs"]["PortOut"]
    assert port["description"] == "A port."
    assert port["properties"]["port"]["description"] == "as the chart has it"
    assert port["properties"]["is_deep"] == {
        "description": "more than ten", "title": "Is Deep", "type": "boolean",
    }  # fmt: skip
    assert port["required"] == ["port", "depth", "is_deep"]
    assert schema["properties"]["length"]["description"] == "in ports"
    jsonschema.validate(VOYAGE.plain(FRAM), schema)


def test_a_key_with_a_default_is_not_required():
    shape = JsonShape("PortOut", Port, None, "name depth", defaults=True)
    assert shape.model().model_json_schema(mode="serialization")["required"] == ["name"]


def test_a_name_that_the_class_has_not_is_an_error():
    with pytest.raises(AttributeError, match="Port has no tide"):
        JsonShape("PortOut", Port, None, "tide").model()


def test_printing_imports_no_pydantic():
    code = """
import sys
from tgraph.engine.json_shape import JsonShape
from tgraph.model import Source
assert JsonShape("S", Source, None, "title").plain(Source("d", "Fram", "p")) == {"title": "Fram"}
assert "pydantic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
