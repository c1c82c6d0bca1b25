"""All commands together: one form of durations, hints for mistyped words, help that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from vnode.cli import examples, main
from vnode.cli.durations import DurationType
from vnode.cli.suggestions import OneOf

ROOT = click.Context(main.cli, info_name="vnode")
NAMES = [*main.cli.list_commands(ROOT), "admission"]
TIME = re.compile(r"\b(timeout|lifetime|duration|period|interval|seconds|delay|ttl)\b")


def commands() -> Iterator[tuple[str, click.Command]]:
    yield "vnode", main.cli
    for name in NAMES:
        command = main.cli.get_command(ROOT, name)
        assert command is not None
        yield name, command


NAMED = {
    f"{name} {parameter.opts[0]}": parameter
    for name, command in commands()
    for parameter in command.params
}
PARAMETERS = [pytest.param(parameter, id=name) for name, parameter in NAMED.items()]


def is_duration(parameter: click.Parameter) -> bool:
    """Tell by its name, help and metavar whether it takes a duration."""
    told = (*parameter.opts, parameter.metavar or "", getattr(parameter, "help", None) or "")
    is_flag = bool(getattr(parameter, "is_flag", False))
    return not is_flag and bool(TIME.search(" ".join(told).replace("-", " ").lower()))


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_each_duration_is_written_in_the_one_way(parameter: click.Parameter) -> None:
    assert is_duration(parameter) == isinstance(parameter.type, DurationType)


def test_the_durations_that_there_are() -> None:
    found = {each.opts[0] for each in NAMED.values() if is_duration(each)}
    assert found == {"--timeout", "--token-lifetime", "--webhook-timeout", "--grace-period"}


@pytest.mark.parametrize("name", ["install", "connect", "quickstart", "replace-target"])
def test_a_number_alone_is_seconds_in_each_command(name: str) -> None:
    command = main.cli.get_command(ROOT, name)
    assert command is not None
    [lifetime] = [each for each in command.params if each.name == "token_lifetime"]
    assert lifetime.type_cast_value(ROOT, "7200") == lifetime.type_cast_value(ROOT, "2h") == 7200
    with pytest.raises(click.BadParameter, match="write 10m or more"):
        lifetime.type_cast_value(ROOT, "599")


def test_the_timeout_of_the_webhook_is_whole_seconds_within_what_kubernetes_takes() -> None:
    command = main.cli.get_command(ROOT, "install")
    assert command is not None
    given = command.make_context("install", ["--webhook-timeout", "10s"]).params["timeout"]
    assert (given, type(given)) == (10, int)
    for text, cure in (("0", "write 1s or more"), ("1m", "write 30s or less")):
        with pytest.raises(click.BadParameter, match=cure):
            command.make_context("install", ["--webhook-timeout", text])


CHOICES = [
    pytest.param(parameter, id=name)
    for name, parameter in NAMED.items()
    if isinstance(parameter.type, click.Choice)
]


@pytest.mark.parametrize("parameter", CHOICES)
def test_of_a_mistyped_word_it_is_said_which_was_meant(parameter: click.Parameter) -> None:
    assert isinstance(parameter.type, OneOf)
    for word in parameter.type.choices:
        mistyped = word[:-1] + "q" if len(word) > 3 else word.upper()
        with pytest.raises(click.BadParameter) as refused:
            parameter.type_cast_value(ROOT, mistyped)

        assert refused.value.message.endswith(f"Did you mean {word!r}?")


def helps() -> Iterator[tuple[str, str]]:
    for name, _command in commands():
        words = ["--help"] if name == "vnode" else [name, "--help"]
        yield name, CliRunner().invoke(main.cli, words, prog_name="vnode").output


def test_no_help_is_wider_than_a_terminal() -> None:
    lines = [(name, line) for name, shown in helps() for line in shown.splitlines()]
    assert len(lines) > 200
    assert [(name, line) for name, line in lines if len(line) > 80] == []


def test_vnode_itself_shows_examples_which_are_right() -> None:
    shown = dict(helps())["vnode"]
    assert shown.index("Examples:") > shown.index("Commands:")
    for line in examples.of(""):
        assert f"\n    {line}\n" in shown
        _vnode, name, *words = line.split()
        if name != "COMMAND":
            command = main.cli.get_command(ROOT, name)
            assert command is not None
            command.make_context(name, words)
