"""What a shell is offered at Tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied, Unreachable
from vnode.cli import completion
from vnode.cli.access import Access


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> APIServer:
    found = APIServer("c1", SystemClock())
    for kind, name, space in (
        (kinds.TARGETS, "gpu", "default"),
        (kinds.TARGETS, "hidden", "other"),
        (kinds.CLUSTER_TARGETS, "cloud", ""),
    ):
        found.add(kind, {"metadata": {"name": name, "namespace": space}, "spec": {}})

    for name, marks in (("web", {keys.ELECT: ""}), ("plain", {})):
        metadata = {"name": name, "namespace": "default", "annotations": marks}
        found.add(kinds.PODS, {"metadata": metadata, "spec": {}})

    monkeypatch.setattr(Access, "client", lambda _self: found.client())
    return found


def offered(*words: str) -> list[str]:
    return [item.value for item in completion.candidates(list(words))]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("drain", "-n", "default", ""), ["cloud", "gpu"]),
        (("cordon", "-n", "default", "g"), ["gpu"]),
        (("disconnect", "-n", "other", "h"), ["hidden"]),
        (("explain", "-n", "default", ""), ["web"]),
        (("explain", "-n", "default", "pod", "w"), ["web"]),
    ],
)
def test_names_that_there_are_are_offered(
    server: APIServer, words: tuple[str, ...], expected: list[str]
) -> None:
    assert offered(*words) == expected


def raises(error: Exception) -> Callable[..., Any]:
    def client(_self: Access) -> Any:
        raise error

    return client


def test_a_cluster_that_does_not_answer_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Access, "client", raises(Unreachable("refused")))
    assert offered("drain", "") == []


def test_what_may_not_be_read_is_left_out(server: APIServer) -> None:
    server.fail(Denied(403, "Forbidden", ""), verb="list", kind=kinds.CLUSTER_TARGETS)
    assert offered("drain", "-n", "default", "") == ["gpu"]
