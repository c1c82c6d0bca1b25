"""The command line around the subcommands."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext

import click
import pytest
from click.testing import CliRunner

from vnode import __version__
from vnode.api.errors import ConfigError
from vnode.cli import examples, main
from vnode.telemetry import logs


def test_help_lists_every_subcommand_and_each_of_them_loads():
    shown = CliRunner().invoke(main.cli, ["--help"])
    for name in main.cli.list_commands(click.Context(main.cli)):
        assert name in shown.output
        assert CliRunner().invoke(main.cli, [name, "--help"]).exit_code == 0


NAMES = main.cli.list_commands(click.Context(main.cli))


@pytest.mark.parametrize("name", NAMES)
def test_each_help_ends_with_examples_which_are_right(name):
    shown = CliRunner().invoke(main.cli, [name, "--help"]).output
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None
    assert examples.of(name)
    for line in examples.of(name):
        assert f"\n    {line}\n" in f"{shown}\n"
        program, called, *words = line.partition(" >")[0].split()
        assert (program, called) == ("vnode", name)
        command.make_context(name, words)


def test_help_imports_no_subcommand():
    code = (
        "import sys; from click.testing import CliRunner; from vnode.cli import main; "
        "CliRunner().invoke(main.cli, ['--help']); "
        "sys.exit('aiohttp' in sys.modules or 'vnode.cli.install' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_version():
    assert CliRunner().invoke(main.cli, ["--version"]).output == f"vnode {__version__}\n"


LONG_NAME = ["--cluster-name", "x" * 64]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["scheduler-config", "--extender", "http://x"], 1, "Error: --extender"),
        (["scheduler-config"], 2, "Missing option '--extender'"),
        (["nothing"], 2, "No such command 'nothing'"),
        (["conect", "x"], 2, "No such command 'conect'. Did you mean 'connect'?"),
        (["Explain"], 2, "Did you mean 'explain'?"),
        (["install", "--kubeconfig", "absent"], 1, "Error: cannot read kubeconfig absent"),
        (["connect", "--source", "absent", "--target", "x"], 1, "Error: --source: cannot read"),
        (
            ["agent", *LONG_NAME],
            1,
            "cannot be the value of a label, which targets need it for: use",
        ),
    ],
)
def test_errors_are_a_line_and_an_exit_code(words, code, text, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["vnode", *words])
    monkeypatch.setattr(logs, "configure", lambda *_words: None)
    monkeypatch.setattr(main, "few_collections", nullcontext)  # this process lives on
    with pytest.raises(SystemExit) as ended:
        main.main()

    assert ended.value.code == code
    assert text in capsys.readouterr().err


def test_our_own_error_is_found_in_a_group_of_others():
    ours = ConfigError("cure")
    nested = ExceptionGroup("inner", [ValueError(), ours])
    assert main.first_error(ExceptionGroup("outer", [KeyError(), nested])) is ours
    other = KeyError()
    assert main.first_error(ExceptionGroup("outer", [other])) is other


COLLECTIONS = """
import gc, os, sys
from vnode.cli import main, terminal
def told():
    return sum(each["collections"] for each in gc.get_stats())
before = told()
def say(*_args, **_options):
    print(told() - before, gc.isenabled(), gc.get_freeze_count() > 10_000)
    gc.unfreeze()
terminal.say = say
sys.argv = ["vnode", "get", "targets", "--kubeconfig", os.devnull]
try:
    main.main()
finally:
    print(gc.get_freeze_count() > 10_000)
"""


def test_a_command_neither_collects_garbage_while_it_imports_nor_at_its_end():
    done = subprocess.run([sys.executable, "-c", COLLECTIONS], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.split() == ["0", "True", "True", "True"]
