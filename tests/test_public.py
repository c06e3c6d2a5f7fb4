"""The public surface: what ``tgraph`` offers, and that asking for it costs little."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tgraph


def test_every_public_name_can_be_had():
    assert tgraph.__all__ == sorted(tgraph.__all__)
    for name in tgraph.__all__:
        assert getattr(tgraph, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tgraph.nothing


@pytest.mark.parametrize("module", ["tgraph", "tgraph.cli.main", "tgraph.engine.graph"])
def test_importing_loads_nothing_heavy(module: str):
    code = (
        f"import sys, {module}; heavy = {{'numpy', 'openai', 'spacy', 'onnxruntime', 'rdflib',"
        " 'hnswlib', 'igraph', 'networkx', 'tiktoken', 'tokenizers', 'langchain_core',"
        " 'llama_index', 'tgraph.extensions.frameworks.asking'} & set(sys.modules);"
        " sys.exit(f'loaded {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_package_is_typed():
    from importlib.resources import files

    assert files("tgraph").joinpath("py.typed").is_file()
