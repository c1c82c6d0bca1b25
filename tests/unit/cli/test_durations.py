"""Durations are written in one way, whatever the command."""

from __future__ import annotations

import click
import click.testing
import pytest

from vnode.cli import durations
from vnode.cli.durations import DurationType


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("60", 60), ("2d", 172800), (7, 7)],
)
def test_a_duration_is_seconds(text: object, seconds: float) -> None:
    assert DurationType().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-1s", "1.5h", "m", "٣s", "1d2h"])
def test_what_is_none_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90s, 5m or 1h30m"):
        DurationType().convert(text, None, None)


def test_one_that_is_too_short_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="write 1s or more"):
        DurationType(1).convert("0s", None, None)


def test_commands_that_wait_for_steps_share_an_option() -> None:
    @click.command()
    @durations.STEP
    def waits(timeout: float) -> None:
        click.echo(str(timeout))

    runner = click.testing.CliRunner()
    assert runner.invoke(waits, []).output == "60.0\n"
    assert runner.invoke(waits, ["--timeout", "2m"]).output == "120.0\n"
