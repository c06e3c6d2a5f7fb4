"""The table of steps: each row names classes that there are, and what they are made with."""

from typing import Any

import pytest

from tgraph.engine.components import Components, StepFactory
from tgraph.errors import UsageError
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

STEPS = {name: step for name, step in vars(Components).items() if isinstance(step, StepFactory)}
NEEDS_A_MODEL = ("claims", "_model_situator", "alone", "decomposer", "_step_answerer")
GIVEN: dict[str, dict[str, Any]] = {"_suggester": {"count": 3}}


@pytest.mark.parametrize("name", STEPS)
def test_each_step_can_be_made_for_a_model(name, tmp_path):
    parts = Components(
        load_settings(None), tmp_path, chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    assert STEPS[name].make(parts, **GIVEN.get(name, {}))


@pytest.mark.parametrize("name", [name for name in STEPS if name != "_model_extractor"])
def test_each_step_can_be_made_without_one_or_says_that_it_needs_one(name, tmp_path):
    parts = Components(load_settings(None), tmp_path, embedder=HashingEmbedder())
    given = {**GIVEN, "_entailment": {"embedder": parts.embedder}}.get(name, {})
    if name in NEEDS_A_MODEL:
        with pytest.raises(UsageError, match="none is set"):
            STEPS[name].make(parts, **given)
    else:
        assert STEPS[name].make(parts, max_context_tokens=100, **given)


def test_who_does_a_step_stays_the_same(tmp_path):
    parts = Components(
        load_settings(None), tmp_path, chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    assert parts.report_writer is parts.report_writer
    assert parts.extractor is parts.extractor
    assert parts.checker is parts.checker
