"""tgraph answers questions over a body of documents and proves every answer."""

from __future__ import annotations

__version__ = "0.1.0"
