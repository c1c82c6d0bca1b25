"""Injected answers are those that an API server could give."""

from __future__ import annotations

import json
import random

import pytest

from tests.faults import fault_profile
from tests.faults.fault_profile import Fate, FaultProfile, RequestHead

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("request_", "status", "could"),
    [
        (RequestHead("PATCH", f"{PODS}/a"), 409, True),
        (RequestHead("POST", f"{PODS}/a/binding"), 409, True),
        (RequestHead("POST", PODS), 409, False),
        (RequestHead("GET", PODS), 409, False),
        (RequestHead("GET", f"{PODS}?watch=true&resourceVersion=1"), 410, True),
        (RequestHead("GET", f"{PODS}?limit=500&continue=x"), 410, True),
        (RequestHead("GET", PODS), 410, False),
        (RequestHead("GET", PODS), 429, True),
        (RequestHead("POST", PODS), 500, True),
    ],
)
def test_an_error_is_one_that_a_server_could_give(
    request_: RequestHead, status: int, could: bool
) -> None:
    assert fault_profile.could_answer(request_, status) is could


def test_fates_follow_the_shares() -> None:
    dice, patch = random.Random(1), RequestHead("PATCH", f"{PODS}/a")
    stormy = FaultProfile(errors={500: 0.5}, lost=0.5)
    fates = [stormy.fate(patch, dice) for _ in range(1000)]
    assert 400 < fates.count(500) < 600
    assert 150 < fates.count(Fate.LOSE_ANSWER) < 350
    assert all(fault_profile.CLEAR.fate(patch, dice) is Fate.PASS for _ in range(10))


def test_only_writes_lose_their_answers() -> None:
    lossy, dice = FaultProfile(lost=1.0), random.Random(1)
    assert lossy.fate(RequestHead("GET", PODS), dice) is Fate.PASS
    review = RequestHead("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert lossy.fate(review, dice) is Fate.PASS
    assert lossy.fate(RequestHead("DELETE", f"{PODS}/a"), dice) is Fate.LOSE_ANSWER


@pytest.mark.parametrize("status", [409, 410, 429, 500])
def test_an_answer_is_whole(status: int) -> None:
    head, body = fault_profile.answer(status).split(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert f"Content-Length: {len(body)}".encode() in head
    assert json.loads(body)["code"] == status


def test_a_head_is_read() -> None:
    head = b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
    request, headers = fault_profile.parse(head)
    assert request.is_watch
    assert (request.path, headers["content-length"]) == ("/api/v1/pods", "3")
