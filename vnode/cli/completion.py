"""Defines `vnode completion`: prints a script that makes a shell complete commands and options."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem, get_completion_class

from vnode.api.errors import ConfigError
from vnode.cli import terminal
from vnode.cli.suggestions import OneOf

_VARIABLE = "_VNODE_COMPLETE"
_NO_FILES = ":4"  # what kubectl reads from a plugin's completion: do not fall back to file names


def script(shell: str) -> str:
    """Return the script to source; ConfigError if the shell is too old."""
    from vnode.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None, f"click does not know {shell}"
    try:
        return found(cli, {}, "vnode", _VARIABLE).source()
    except RuntimeError as error:
        raise ConfigError(str(error)) from error


def candidates(words: list[str]) -> list[CompletionItem]:
    """Return the completions of the last word."""
    from click.shell_completion import ShellComplete

    from vnode.cli.main import cli

    *before, incomplete = words or [""]
    return ShellComplete(cli, {}, "vnode", _VARIABLE).get_completions(before, incomplete)


def for_kubectl() -> None:
    """Complete `kubectl vnode ...`: kubectl calls this entry point as `kubectl_complete-vnode`."""
    from vnode.cli.main import few_collections

    with few_collections():
        for item in candidates(sys.argv[1:]):
            terminal.say(f"{item.value}\t{item.help}" if item.help else item.value)

        terminal.say(_NO_FILES)


def command() -> click.Command:
    """Return the click command."""

    @click.command("completion")
    @click.argument("shell", type=OneOf(("bash", "zsh", "fish")))
    def completion_command(shell: str) -> None:
        """Print a script for the shell to source, e.g. in ~/.bashrc.

        \b
        bash: source <(vnode completion bash)
        zsh:  source <(vnode completion zsh)
        fish: vnode completion fish | source
        """
        terminal.say(script(shell))

    return completion_command
