"""The unit for systemd calls vnode as it is."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

import click

from vnode.cli import main

UNIT = Path(__file__).parents[3] / "examples" / "systemd" / "vnode-agent.service"


def test_its_command_is_one_of_ours_and_it_starts_again() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(UNIT.read_text().replace("\\\n", ""))
    service = unit["Service"]
    assert service["Restart"] == "always"
    program, name, *words = shlex.split(service["ExecStart"])
    given = [word.replace("/etc/vnode/agent.kubeconfig", str(UNIT)) for word in words]
    command = main.cli.get_command(click.Context(main.cli), name)
    assert Path(program).name == "vnode"
    assert command is not None
    context = command.make_context(name, given)
    assert context.params["advertise_address"] == "${ADVERTISE_ADDRESS}"
