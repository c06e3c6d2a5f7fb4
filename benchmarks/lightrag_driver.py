"""Indexes files with LightRAG, or asks its questions; run by the Python that has ``lightrag-hku``.

Usage: PYTHON lightrag_driver.py ROOT DIMENSION own|shared [FILE...]. For the file ``-`` it reads
one document from standard input, whose chunks are parted by ``BREAK``. Without files each line of
standard input is a JSON array of a mode, a question and perhaps options; for each a line with the
CPU seconds that its answer took is printed. Everything is LightRAG's default but the dimension of
the vectors and, where it is ``shared``, the TLS context of its clients, which each call makes anew
otherwise.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

BREAK = "\n=+=+=\n"
Call = Callable[..., Awaitable[Any]]


def _sharing(call: Call, option: str) -> Call:
    """The call with a client of its own, as it is shipped, whose TLS context is not its own."""
    client = import_module("openai").DefaultAsyncHttpxClient
    context = import_module("ssl").create_default_context()

    @wraps(call)
    def shared(*arguments: Any, **options: Any) -> Awaitable[Any]:
        own = {option: {"http_client": client(verify=context)}}
        return call(*arguments, **options, **own)

    return shared


def _opened(root: str, dimension: int, clients: str) -> Any:
    binding = import_module("lightrag.llm.openai")
    shipped = binding.openai_embed
    say, embed = binding.gpt_4o_mini_complete, shipped.func
    if clients == "shared":
        say = _sharing(say, "openai_client_configs")
        embed = _sharing(embed, "client_configs")
    vectors = import_module("lightrag.utils").EmbeddingFunc(
        embedding_dim=dimension,
        func=embed,
        max_token_size=shipped.max_token_size,
        model_name=shipped.model_name,
        supports_asymmetric=shipped.supports_asymmetric,
    )
    graph = import_module("lightrag").LightRAG
    return graph(working_dir=root, llm_model_func=say, embedding_func=vectors)


async def _index(graph: Any, files: list[str]) -> None:
    if files == ["-"]:  # by itself: each document has all of its files written anew
        split = {"split_by_character": BREAK, "split_by_character_only": True}
        await graph.ainsert(sys.stdin.read(), **split)
    else:
        texts = [Path(file).read_text("utf-8") for file in files]
        await graph.ainsert(texts, file_paths=files)
    counts = await graph.get_processing_status()
    if counts.get("processed") != len(files):
        raise SystemExit(f"Of {len(files)} documents not all were processed: {counts}")


async def _ask(graph: Any) -> None:
    parameters = import_module("lightrag").QueryParam
    while line := await asyncio.to_thread(sys.stdin.readline):
        mode, question, *options = json.loads(line)
        given = {name: value for each in options for name, value in each.items()}
        start = time.process_time()
        answer = await graph.aquery(question, param=parameters(mode=mode, **given))
        spent = time.process_time() - start
        print(json.dumps({"cpu": spent, "characters": len(answer or "")}), flush=True)


async def main(root: str, dimension: str, clients: str, *files: str) -> None:
    graph = _opened(root, int(dimension), clients)
    await graph.initialize_storages()
    await (_index(graph, list(files)) if files else _ask(graph))
    await graph.finalize_storages()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
