"""What `vnode quickstart` has helm do, and what it needs to be told."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.cli import terminal
from vnode.cli.access import Access
from vnode.cli.connect.connect import Side
from vnode.cli.doctor import examining
from vnode.cli.quickstart import command, helm
from vnode.cli.quickstart.helm import Chart
from vnode.cli.quickstart.steps import Quickstart, QuickstartOptions


def test_a_release_is_made_or_upgraded_in_the_cluster_that_is_named() -> None:
    side = Side("source", Access(Path("c1"), "admin"))
    chart = Chart("charts/vnode", (Path("a.yaml"), Path("b.yaml")), ("x=y",))
    assert " ".join(helm.words(side, chart, "vnode", 90)) == (
        "upgrade --install vnode charts/vnode --namespace vnode --create-namespace --timeout 90s "
        "--kubeconfig c1 --kube-context admin --values a.yaml --values b.yaml --set x=y"
    )


def test_values_of_both_come_before_those_of_one() -> None:
    both, one, other = (Path(name) for name in ("both", "one", "other"))
    made = command.charts("c", "example/vnode", (both,), (one,), (other,))
    assert made["source"].values == (both, one)
    assert made["target"].values == (both, other)
    assert made["target"].settings == ("controllerManager.image.repository=example/vnode",)
    assert command.charts(None, "example/vnode", (), (), ()) == {}


def test_without_helm_the_error_names_the_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigError, match=r"helm not found: install Helm.*vnode install"):
        helm.check()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_waited_for_is_said_on_a_terminal_only(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(terminal, "is_terminal", lambda: is_terminal)
    command.begin("waiting for the agent")
    command.tell("the agent runs")
    waits = "... waiting for the agent\n" if is_terminal else ""
    assert capsys.readouterr().out == f"{waits}✓ the agent runs\n"


async def run(clock: Clock, patches: pytest.MonkeyPatch, told: list[str], *uids: str) -> None:
    """Run a quickstart between clusters of these UIDs, where no agent comes up."""
    servers = {}
    for role, uid in zip(("source", "target"), uids, strict=True):
        servers[role] = APIServer(role, clock)
        servers[role].add(kinds.NAMESPACES, {"metadata": {"name": "kube-system", "uid": uid}})

    async def version(_client: object) -> tuple[str, None]:
        return "v1.36.3", None

    async def install(_words: object, role: str) -> None:
        told.append(f"helm in {role}")

    patches.setattr(Side, "client", lambda side: servers[side.role].client())
    patches.setattr(examining, "read_version", version)
    patches.setattr(helm, "check", lambda: None)
    patches.setattr(helm, "install", install)
    sides = (Side("source", Access()), Side("target", Access()))
    chart = Chart("charts/vnode")
    connection: Any = SimpleNamespace(agent_namespace="vnode")
    options = QuickstartOptions(connection, {"source": chart, "target": chart}, 120)
    await Quickstart(*sides, options, told.append, lambda text: told.append(f"... {text}")).run()


@pytest.mark.looptime
async def test_nothing_is_installed_where_both_sides_are_one_cluster(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a wrong context: the target's values would be put over those of the source."""
    told = list[str]()
    with pytest.raises(ConfigError, match=r"source and target are one cluster \(us is the UID"):
        await run(clock, monkeypatch, told, "us", "us")

    assert len(told) == 2
    assert all("cluster answers" in line for line in told)


@pytest.mark.looptime
async def test_each_step_that_may_take_long_is_told_before_it_is_done(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[str]()
    with pytest.raises(ConfigError, match="no agent leads in the source cluster after 120 s"):
        await run(clock, monkeypatch, told, "us", "there")

    assert told[2:] == [
        "... helm installs vnode in the source cluster, at most 2m",
        "helm in source",
        "vnode is installed in the source cluster: release vnode",
        "... helm installs vnode in the target cluster, at most 2m",
        "helm in target",
        "vnode is installed in the target cluster: release vnode",
        "... waiting for the agent of the source cluster, at most 2m",
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no chart", "helm failed in the target cluster: Error: no chart$"),
        (
            "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            "one was broken off: .* helm uninstall vnode.* helm rollback vnode; then run the same",
        ),
    ],
)
async def test_what_helm_says_is_told_and_what_to_do_if_it_was_broken_off(
    said: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "helm"
    program.write_text(f"#!/bin/sh\necho 'Error: {said}' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConfigError, match=told):
        await helm.install(["upgrade"], "target")
