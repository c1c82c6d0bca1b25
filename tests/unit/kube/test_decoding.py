"""JSON is measured before it is decoded, and large answers do not keep the event loop waiting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import TooLarge, Unreachable
from vnode.kube import answer_limits, decoding
from vnode.kube.answer_limits import AnswerLimit

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('[]{},"\\:'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
)


def count(value: Any) -> int:
    """Return the commas and opening brackets of a value, and one."""
    return 1 + measured(value)


def measured(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0

    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(0, len(value) - 1) + sum(map(measured, inner))


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0

    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, inner), default=0)


@given(VALUES, st.integers(1, 40))
async def test_values_are_counted_and_what_is_in_strings_is_none(value: Any, piece: int) -> None:
    """Wherever the text is cut into pieces, also within an escape."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "PIECE", piece)
        for ascii_only in (True, False):
            payload = json.dumps(value, ensure_ascii=ascii_only).encode()
            assert await decoding.measure(payload, 10_000) == count(value)
            with pytest.raises(TooLarge):
                await decoding.measure(payload, count(value) - 1)


@given(VALUES, st.integers(1, 40))
async def test_the_depth_is_measured_whatever_is_in_strings(value: Any, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "PIECE", piece)
        patch.setattr(decoding, "DEPTH", depth(value))
        payload = json.dumps(value).encode()
        await decoding.measure(payload, 10_000)
        if depth(value):
            patch.setattr(decoding, "DEPTH", depth(value) - 1)
            with pytest.raises(Unreachable, match="levels deep"):
                await decoding.measure(payload, 10_000)


@given(VALUES, st.integers(0, 5))
async def test_a_rough_count_is_no_less_and_misses_no_depth(value: Any, levels: int) -> None:
    payload = json.dumps(value).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "DEPTH", levels)
        most = decoding.most_values(payload)
        if depth(value) > levels:
            assert most is None
        elif most is not None:
            assert most >= count(value)


def test_an_object_as_they_usually_are_is_counted_roughly() -> None:
    conditions = [{"type": "Ready", "status": "True"}] * 90
    assert decoding.most_values(json.dumps({"status": {"conditions": conditions}}).encode())


@given(VALUES, st.integers(1, 200), st.integers(0, 5))
async def test_what_is_not_measured_is_within_the_bounds(
    value: Any, values: int, levels: int
) -> None:
    """An answer that is small is decoded without being measured."""
    bound = AnswerLimit(10_000, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "DEPTH", levels)
        payload = json.dumps(value).encode()
        if count(value) <= values and depth(value) <= levels:
            assert await decoding.decode(payload, bound) == decoding.decode_at_once(payload, bound)
        else:
            with pytest.raises((TooLarge, Unreachable)):
                await decoding.decode(payload, bound)
            with pytest.raises((TooLarge, Unreachable)):
                decoding.decode_at_once(payload, bound)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('{"]":', "}")])
async def test_an_answer_is_a_hundred_levels_deep_at_most(opening: str, closing: str) -> None:
    await decoding.decode((opening * 100 + "1" + closing * 100).encode(), answer_limits.OBJECT)
    with pytest.raises(Unreachable, match="more than 100 levels deep"):
        await decoding.decode((opening * 101 + "1" + closing * 101).encode(), answer_limits.OBJECT)


@pytest.mark.parametrize(
    "text", ["a,[{" * 200_000, '\\"' * 500_000 + ",[{" * 200_000], ids=["plain", "quotes"]
)
async def test_a_long_text_is_one_value(text: str) -> None:
    answer = json.dumps({"metadata": {"a": text}}).encode()
    assert (await decoding.decode(answer, answer_limits.OBJECT))["metadata"]["a"] == text


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 4_000_000 + b",",
        b'"' * 8_000_000 + b'",,',
        b'",",' * 2_000_000 + b"1",
        b"\\" * 8_000_001,
        b"]" * 8_000_000,
        b"[" * 19_000,
        b'["]",' * 4_000,
    ],
    ids=["escaped", "empty", "commas", "backslashes", "closing", "opening", "in strings"],
)
async def test_nonsense_is_told_in_linear_time(body: bytes) -> None:
    with pytest.raises(Unreachable):
        await decoding.decode(body, answer_limits.SMALL)


def page(*items: bytes) -> bytes:
    return b'{"kind":"PodList","metadata":{"resourceVersion":"5"},"items":[%s]}' % b",".join(items)


async def ticks(work: Awaitable[Any]) -> int:
    """Return how often the event loop runs while something is done."""
    running = asyncio.ensure_future(work)
    count = 0
    while not running.done():
        count += 1
        await asyncio.sleep(0)

    running.exception()
    return count


LARGE = {
    "one text": page(b'"%s"' % (b"x" * 15_000_000)),
    "many strings": page(*[b'"a,b"'] * 400_000),
    "many objects": page(*[b"{}"] * 200_000),
    "deep": page(*[b"[" * 90 + b"]" * 90] * 2_000),
}
STEPS = {"one text": 28, "many strings": 20, "many objects": 20, "deep": 20}


@pytest.mark.parametrize("what", LARGE)
async def test_the_event_loop_runs_while_a_large_page_is_decoded(what: str) -> None:
    """Measured in steps, since time depends on the machine: each takes some ten milliseconds."""
    found = []

    async def read() -> None:
        found.append(await decoding.decode_page(LARGE[what], answer_limits.PAGE))

    assert await ticks(read()) > STEPS[what]
    assert found[0] is not None


async def test_too_many_strings_are_not_looked_at_to_the_end() -> None:
    payload = b'",",' * 2_000_000
    slices = len(payload) // decoding.PIECE
    assert await ticks(decoding.decode(payload, answer_limits.SMALL)) < slices + 10


async def test_a_small_answer_is_decoded_without_a_pause() -> None:
    assert await ticks(decoding.decode(b'{"metadata": {}}', answer_limits.OBJECT)) <= 2


async def test_a_page_has_items_a_version_and_a_token() -> None:
    payload = json.dumps(
        {
            "kind": "PodList",
            "metadata": {"resourceVersion": "7", "continue": "more", "other": {}},
            "items": [{"a": 1}, {"b": [2]}],
        }
    ).encode()
    found = await decoding.decode_page(payload, AnswerLimit(1000, 100))
    assert found is not None
    assert (found.items, found.version, found.token) == ([{"a": 1}, {"b": [2]}], "7", "more")
