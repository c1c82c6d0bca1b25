"""What a shell is offered at Tab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied, Unreachable
from vnode.cli import completion
from vnode.cli.access import Access
from vnode.cli.get import cluster_views
from vnode.cli.main import cli


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> APIServer:
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
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({"contexts": [{"name": "work"}, {"name": "home"}]}))
    monkeypatch.setenv("KUBECONFIG", str(file))
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
        (("replace-target", "-n", "default", "g"), ["gpu"]),
        (("uncordon", "-n", "default", ""), ["cloud", "gpu"]),
        (("get", "targets", "-n", "default", ""), ["cloud", "gpu"]),
        (("get", "targets", "-A", ""), ["cloud", "gpu", "hidden"]),
        (("get", "targets", "-n", "default", "gpu", ""), ["cloud"]),
        (("get", "nonsense", ""), []),
        (("doctor", "--context", "w"), ["work"]),
        (("connect", "--target-context", ""), ["home", "work"]),
        (("get", "targets", "-n", "o"), ["other"]),
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


NAMES: set[str] = {"name", "names", "target", "arguments", "resource", "context", "namespace"}
"""What commands call their parameters that are names of what a cluster or a kubeconfig has."""
OF_AGENTS: set[str] = {"agent", "admission", "install", "scheduler-config"}
"""Their `--namespace` and `--context` are those of agents, which manifests name, not people."""


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        yield from ((name, parameter) for parameter in command.params)


@pytest.mark.parametrize(
    ("command", "parameter"),
    [
        pytest.param(command, parameter, id=f"{command}-{parameter.name}")
        for command, parameter in parameters()
        if command not in OF_AGENTS
        and (command, parameter.name) not in {("connect", "name"), ("quickstart", "name")}
        and (parameter.name in NAMES or str(parameter.name).endswith("_context"))
        and not isinstance(parameter.type, click.Path)
    ],
)
def test_every_name_that_a_command_takes_is_completed(
    server: APIServer, command: str, parameter: click.Parameter
) -> None:
    context = click.Context(cli)
    found = cli.get_command(context, command)
    assert found is not None
    here = click.Context(found, parent=context)
    here.params |= {"resource": cluster_views.TARGETS, "namespace": "default"}
    assert parameter.shell_complete(here, "")
