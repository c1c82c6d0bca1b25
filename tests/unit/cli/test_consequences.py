"""What a removal would do is said before it is done, and nothing is done without a yes."""

from __future__ import annotations

import sys

import click
import pytest

from tests.apiserver.server import APIServer
from tests.unit.cli.explained_pods import proxy
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.cli import terminal
from vnode.cli.remove import consequences

pytestmark = pytest.mark.looptime

TARGET: Object = {"metadata": {"name": "c2", "namespace": "default"}, "spec": {}}


def running(name: str, *, owned: bool = True, phase: str = "Running") -> Object:
    pod = proxy(node="admiralty-default-c2", phase=phase)
    pod["metadata"] |= {"name": name, "uid": name}
    if owned:
        owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]

    return pod


@pytest.fixture
async def server(clock):
    server = APIServer("c1", clock)
    server.add(kinds.PODS, running("a"))
    server.add(kinds.PODS, running("b", owned=False))
    server.add(kinds.PODS, running("done", phase="Succeeded"))
    return server


async def test_pods_of_a_target_are_counted_and_those_without_an_owner_named(server):
    lines = await consequences.of_targets(server.client(), [TARGET])
    assert lines == [
        "deletes Target default/c2 and node/admiralty-default-c2",
        "  2 pods run there: their containers end, and their owners replace them",
        "  1 of them have no owner, and are lost: default/b",
        "  vnode drain c2 moves them before, and keeps disruption budgets",
    ]


async def test_pods_that_are_kept_are_said_to_go_on(server):
    _target, pods = await consequences.of_targets(server.client(), [TARGET], keep=True)
    assert pods == "  2 pods run there: their containers go on, and nobody follows them"


async def test_pods_of_sources_are_counted(server):
    assert await consequences.of_delegates(server.client(), keep=False) == []
    server.add(kinds.POD_CHAPERONS, {"metadata": {"name": "x", "namespace": "default"}, "spec": {}})
    (line,) = await consequences.of_delegates(server.client(), keep=False)
    assert line.startswith("1 pods of sources run here: they end")


@pytest.mark.parametrize(
    ("dry_run", "yes", "is_terminal", "answer", "goes_on", "says"),
    [
        (True, False, True, None, False, True),
        (True, True, False, None, False, True),
        (False, True, True, None, True, False),
        (False, False, False, None, True, False),
        (False, False, True, True, True, True),
        (False, False, True, False, False, True),
    ],
)
def test_somebody_at_a_terminal_is_asked_and_scripts_go_on(
    dry_run, yes, is_terminal, answer, goes_on, says, monkeypatch, capsys
):
    """The output may be a pipe all the same: `vnode uninstall ... | tee log`."""

    def confirm(_question: str, *, err: bool) -> bool:
        assert answer is not None, "nobody is to be asked"
        assert err
        return bool(answer)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: is_terminal)
    monkeypatch.setattr(terminal, "is_terminal", lambda: False)
    monkeypatch.setattr(click, "confirm", confirm)
    assert consequences.may_go_on(["deletes x"], dry_run=dry_run, yes=yes) is goes_on
    shown = capsys.readouterr()
    assert ("deletes x" in (shown.out if dry_run else shown.err)) is says
    assert ("deletes x" in shown.out) is dry_run
