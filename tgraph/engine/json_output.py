"""The base class of the JSON objects that commands and the server print."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    """A JSON object whose keys are printed in the order of its fields.

    ``model_validate`` reads the fields from the attributes of a value of ``tgraph``. A model is
    built when it is first used, since a command uses few of them.
    """

    model_config = ConfigDict(from_attributes=True, extra="forbid", frozen=True, defer_build=True)
