"""Frameworks: retrievers, query engines and tools for LangChain and LlamaIndex."""

from __future__ import annotations

from tgraph.extensions import Extension

EXTENSION = Extension(name="frameworks")
