"""The components of a graph: each is made by a model, by the embedded default, or refused."""

import pytest

from tgraph.engine.components import ComponentProperty, Components
from tgraph.errors import UsageError
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

PROPERTIES = [
    key for key, value in vars(Components).items() if isinstance(value, ComponentProperty)
]
BY_ARGUMENT = {"suggester": (3, 100), "step_answerer": (100,), "synthesiser": (100,)}
NEEDS_A_MODEL = ("claims", "model_alone", "decomposer", "step_answerer")
ONLY_WITH_A_MODEL = ("query_writer",)


def components(tmp_path, *, chat=None, **settings):
    values = load_settings(None, settings)
    return Components(values, tmp_path, chat=chat, embedder=HashingEmbedder())


def component(parts, name):
    found = getattr(parts, name)
    return found(*BY_ARGUMENT[name]) if name in BY_ARGUMENT else found


@pytest.mark.parametrize("name", [*PROPERTIES, *BY_ARGUMENT])
def test_each_component_can_be_made_for_a_model(name, tmp_path):
    assert component(components(tmp_path, chat=ScriptedModel()), name)


@pytest.mark.parametrize(
    "name", [name for name in (*PROPERTIES, *BY_ARGUMENT) if name != "_model_extractor"]
)
def test_each_component_can_be_made_without_a_model_or_says_that_it_needs_one(name, tmp_path):
    parts = components(tmp_path)
    if name in NEEDS_A_MODEL:
        with pytest.raises(UsageError, match="no language model is set"):
            component(parts, name)
    else:
        assert (component(parts, name) is None) == (name in ONLY_WITH_A_MODEL)


def test_contexts_by_a_model_need_one(tmp_path):
    by_model = {"contextual_search.by_model": True}
    assert components(tmp_path, chat=ScriptedModel(), **by_model).situator
    with pytest.raises(UsageError, match="no language model is set"):
        _ = components(tmp_path, **by_model).situator


def test_a_component_is_made_once(tmp_path):
    parts = components(tmp_path, chat=ScriptedModel())
    assert parts.report_writer is parts.report_writer
    assert parts.extractor is parts.extractor
    assert parts.checker is parts.checker
