"""Both clusters derive the same trace from a pod's UID, and choose the same pods."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.telemetry import spans
from vnode.telemetry.spans import SpanLink

UID = "3f0e8a4c-6f0b-4d8e-9c1f-0a1b2c3d4e5f"


def test_the_trace_has_the_name_of_the_pods_uid() -> None:
    assert f"{spans.trace_id(UID):032x}" == UID.replace("-", "")
    assert 0 < spans.root_id(UID) < 2**64
    assert spans.root_id(UID) != spans.candidate_id(UID, UID)


@pytest.mark.parametrize("uid", ["", "web", "00000000-0000-0000-0000-000000000000"])
def test_what_is_no_uid_is_not_traced(uid: str) -> None:
    assert spans.trace_id(uid) == 0
    assert not spans.is_sampled(uid, 1.0)


@given(st.uuids(version=4), st.floats(0, 1))
def test_who_is_traced_at_a_ratio_is_traced_at_each_higher_one(uid: UUID, ratio: float) -> None:
    assert spans.is_sampled(str(uid), 1.0)
    assert not spans.is_sampled(str(uid), 0.0)
    if spans.is_sampled(str(uid), ratio):
        assert spans.is_sampled(str(uid), min(1.0, ratio * 1.1))


def test_a_tenth_is_about_a_tenth_whatever_bits_of_a_uid_are_fixed() -> None:
    uids = (
        str(UUID(int=n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128, version=4))
        for n in range(1, 2001)
    )
    assert 120 < sum(spans.is_sampled(uid, 0.1) for uid in uids) < 280


def test_a_span_below_another_never_ends_before_it_starts() -> None:
    span = spans.child(UID, "bind", 7.0, 5.0)
    assert (span.start, span.end, span.parent) == (5.0, 5.0, spans.root_id(UID))
    assert spans.child(UID, "bind", 1.0, 2.0).id != spans.child(UID, "bind", 1.5, 2.0).id


def test_a_traceparent_is_a_link() -> None:
    text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert spans.link_of(text) == (
        SpanLink(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7),
    )


@pytest.mark.parametrize("text", ["", "00-0-0-01", f"00-{'0' * 32}-{'1' * 16}-01", "x" * 10_000])
def test_what_is_no_traceparent_is_no_link(text: str) -> None:
    assert spans.link_of(text) == ()
