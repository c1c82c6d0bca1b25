"""What the demo says at its end."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from hack.fleetlib import demo
from hack.fleetlib.terminal import Terminal
from hack.fleetlib.tools import binaries
from vnode.cli import main


def test_the_commands_to_go_on_with_are_right_and_show_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(binaries, "locate", lambda: {"kubectl": Path("/bin/kubectl")})
    running: Any = SimpleNamespace(kubeconfig=lambda name: Path(__file__), directory=Path("/d"))
    output = io.StringIO()
    demo._say_what_is_left(Terminal(output), running)
    lines = [line.strip().partition("  ")[0] for line in output.getvalue().splitlines()]
    called = [line.split()[1:] for line in lines if line.startswith("vnode ")]
    assert [name for name, *_words in called] == ["get", "explain", "dashboard", "doctor"]
    for name, *words in called:
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        command.make_context(name, words)
