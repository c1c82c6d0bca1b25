"""Durations are written in one way, whatever the command."""

from __future__ import annotations

import click
import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import durations as api_durations
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


@pytest.mark.parametrize(("text", "cure"), [("31", "write 30s or less"), ("9" * 400, "30s")])
def test_one_that_is_too_long_is_refused(text: str, cure: str) -> None:
    with pytest.raises(click.BadParameter, match=cure):
        DurationType(1, 30).convert(text, None, None)


def test_no_option_takes_more_than_a_hundred_years() -> None:
    with pytest.raises(click.BadParameter, match="write 36500d or less"):
        DurationType().convert("9" * 400, None, None)


def test_kubectls_word_for_each_pods_own_is_taken_where_there_is_one() -> None:
    assert DurationType(own=True).convert("-1", None, None) == -1
    assert DurationType(own=True).convert("1m", None, None) == 60
    with pytest.raises(click.BadParameter):
        DurationType().convert("-1", None, None)


@given(st.integers(0, 36_500 * 24 * 3600))
def test_what_is_written_is_read_as_it_was(seconds: int) -> None:
    assert api_durations.seconds(api_durations.written(seconds), "it", days=True) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90, "1m30s"), (7200, "2h"), (86400, "1d"), (90000, "25h")]
)
def test_durations_are_written_briefly(seconds: float, text: str) -> None:
    assert api_durations.written(seconds) == text


def test_commands_that_wait_for_steps_share_an_option() -> None:
    @click.command()
    @durations.STEP
    def waits(timeout: float) -> None:
        click.echo(str(timeout))

    runner = click.testing.CliRunner()
    assert runner.invoke(waits, []).output == "60.0\n"
    assert runner.invoke(waits, ["--timeout", "2m"]).output == "120.0\n"
