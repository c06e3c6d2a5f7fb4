"""What is sent, and what is hashed: the same JSON as if it were written in one go."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tgraph.models.base import canonical_json
from tgraph.models.openai import write_body

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(st.dictionaries(st.sampled_from(["role", "content", "name"]), TEXT), max_size=3)


@given(st.dictionaries(TEXT, VALUES, max_size=4), MESSAGES)
def test_the_json_is_that_of_the_whole_body(others, messages):
    request = {"model": "m", "messages": messages, **others}
    request["messages"] = messages
    body = write_body(request)
    assert body.sent == json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    assert body.canonical == canonical_json(request)
    assert json.loads(body.sent) == request


def test_members_are_sent_in_their_order():
    request = {"model": "m", "messages": [{"role": "user", "content": "é"}], "b": {"z": 1, "a": 2}}
    assert write_body(request).sent.endswith('"content":"é"}],"b":{"z":1,"a":2}}')
