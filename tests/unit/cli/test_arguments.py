"""Arguments on the command line that are wrong, or another form of the right ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from vnode.cli.get import resources
from vnode.cli.main import cli
from vnode.cli.replace import command

NOWHERE = {
    "clusters": [{"name": "it", "cluster": {"server": "https://192.0.2.1"}}],
    "contexts": [{"name": "it", "context": {"cluster": "it"}}],
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Write a kubeconfig without a current context, and return its path.

    No connection is tried with it unless its context is named.
    """
    file = tmp_path / "config"
    file.write_text(json.dumps(NOWHERE))
    return str(file)


@pytest.mark.parametrize("what", ["pods", "pod", "po", "targets", "target"])
def test_top_takes_the_names_that_get_takes(what: str, kubeconfig: str) -> None:
    done = CliRunner().invoke(cli, ["top", what, "--once", "--kubeconfig", kubeconfig])
    assert "no current-context" in str(done.exception)


def test_top_names_what_there_is() -> None:
    done = CliRunner().invoke(cli, ["top", "nodes"])
    assert done.exit_code == 2
    assert "'targets', 'pods'" in done.output


def test_get_says_which_resource_was_meant_and_its_help_names_all() -> None:
    done = CliRunner().invoke(cli, ["get", "tragets"])
    assert done.exit_code == 2
    assert "Did you mean 'targets'?" in done.output
    shown = CliRunner().invoke(cli, ["get", "--help"]).output
    named = shown.partition("RESOURCE is one of")[2].partition(".")[0]
    assert {word.strip(",") for word in named.split()} - {"and"} == set(resources.NAMES)


@pytest.mark.parametrize("address", ["localhost", "192.0.2.1:9443", "https://192.0.2.1"])
def test_an_agent_is_told_that_its_address_is_none(address: str, kubeconfig: str) -> None:
    words = ["agent", "--kubeconfig", kubeconfig, "--context", "it", "--advertise-address", address]
    expected = str(CliRunner().invoke(cli, words).exception)
    assert expected.startswith(f"{address!r} is not an IP address: pass --advertise-address")


def test_the_flags_of_replace_target_are_of_the_drain_or_of_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    async def note(*arguments: object) -> None:
        given.extend(arguments)

    monkeypatch.setattr(command, "replace_target", note)
    words = ["replace-target", "c2", "--target-context", "new", "--lost", "--force"]
    words += ["--timeout", "5m", "--agent-namespace", "agents", "--no-renew"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    _source, _target, former, options, connecting, _report = given
    assert (former, options.name, options.lost, options.rules.force) == (None, "c2", True, True)
    assert (options.grace, options.limit, options.per_minute) == (None, 300, 60)
    assert (connecting.renew, connecting.confirm_cluster) == (False, True)
    assert connecting.agent_namespace == options.agent_namespace == "agents"
