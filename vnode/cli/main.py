"""Runs the command `vnode`: finds the subcommand, imports it alone, turns errors into one line.

A subcommand is a module of this package with a function `command()` that returns the click command.
Adding one takes a line in `_COMMANDS`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import click

from vnode import __version__
from vnode.api.errors import VnodeError
from vnode.cli import error_texts, examples, suggestions, terminal
from vnode.cli.suggestions import OneOf
from vnode.telemetry import logs

# Name -> (module, first line of the help), so that `vnode --help` imports nothing.
_COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "quickstart": ("vnode.cli.quickstart.command", "Install on both sides, and connect them."),
    "agent": ("vnode.cli.agent", "Run the agent of one cluster."),
    "install": ("vnode.cli.install", "Apply CRDs, RBAC and the webhook configuration."),
    "connect": ("vnode.cli.connect.command", "Let one cluster run pods in another."),
    "replace-target": (
        "vnode.cli.replace.command",
        "Put another cluster in the place of a target.",
    ),
    "disconnect": ("vnode.cli.remove.disconnect", "Take a connection away."),
    "uninstall": ("vnode.cli.remove.uninstall", "Take vnode out of a cluster."),
    "migrate": ("vnode.cli.migrate", "Take over what Admiralty sent without a cluster name."),
    "get": ("vnode.cli.get.command", "Show targets, nodes, pods, sources or policies."),
    "plan": ("vnode.cli.plan.command", "Show what a placement policy would do."),
    "explain": ("vnode.cli.explain.command", "Tell the whole story of a pod."),
    "top": ("vnode.cli.top.command", "Show what targets and pods use, live."),
    "dashboard": ("vnode.cli.dashboard.command", "Show all of that in a browser, live."),
    "doctor": ("vnode.cli.doctor.command", "Check both sides of each connection."),
    "cordon": ("vnode.cli.drain.cordon", "Send no more pods to a target."),
    "uncordon": ("vnode.cli.drain.uncordon", "Send pods to a target again."),
    "drain": ("vnode.cli.drain.command", "Cordon a target and evict its pods."),
    "completion": ("vnode.cli.completion", "Print a script for the shell's completion."),
    "scheduler-config": ("vnode.cli.scheduler_config", "Print the candidate scheduler's file."),
    "version": ("vnode.cli.version", "Print the versions of this command and of the agents."),
}

_HIDDEN: Final = {"admission": "vnode.cli.admission"}
"""Name -> module, of what the agent starts itself."""

_LEVELS: Final = ("debug", "info", "warning", "error")


class LazyGroup(click.Group):
    """Imports a subcommand when it is called, or its own help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all names, in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name; None if there is none."""
        module = _HIDDEN.get(cmd_name) or _COMMANDS.get(cmd_name, ("", ""))[0]
        if not module:
            return None

        command = importlib.import_module(module).command()
        assert isinstance(command, click.Command), f"command() of {cmd_name} made no command"
        command.epilog = examples.epilog(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of one that does not exist, say which was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = suggestions.did_you_mean(args[0], _COMMANDS)
            if not hint:
                raise

            raise click.UsageError(error.message + hint, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_module, text) in _COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    help="Virtual nodes for Kubernetes: a cluster sees each other cluster as one Node.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples.epilog(""),
)
@click.version_option(__version__, prog_name="vnode", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Short for --log-level debug.")
@click.option(
    "--log-level",
    type=OneOf(_LEVELS),
    default="info",
    show_default=True,
    envvar="VNODE_LOG_LEVEL",
    help="Least level that is logged, to standard error.",
)
@click.option(
    "--log-format",
    type=OneOf(("auto", "json", "text")),
    default="auto",
    show_default=True,
    envvar="VNODE_LOG_FORMAT",
    help="auto is text on a terminal, else JSON.",
)
def cli(verbose: bool, log_level: str, log_format: str) -> None:
    _collect_from_now_on()  # click has imported the subcommand
    logs.configure("debug" if verbose else log_level, log_format)


def log_flags() -> list[str]:
    """Return the flags by which another process of vnode logs as this one does."""
    given = click.get_current_context().find_root().params
    level = "debug" if given.get("verbose") else given.get("log_level", "info")
    return ["--log-level", level, "--log-format", given.get("log_format", "auto")]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a subcommand's coroutine; an error in a TaskGroup is raised without its group."""
    try:
        asyncio.run(coroutine)
    except BaseExceptionGroup as group:
        raise first_error(group) from group


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first VnodeError in a group of exceptions, else the first exception."""
    leaves: list[BaseException] = []
    stack: list[BaseException] = [group]
    while stack:
        error = stack.pop()
        if isinstance(error, BaseExceptionGroup):
            stack.extend(reversed(error.exceptions))
        else:
            leaves.append(error)

    return next((leaf for leaf in leaves if isinstance(leaf, VnodeError)), leaves[0])


PROBLEMS_FOUND: Final = 3
"""Exit code of a command that ran well, and found something that does not work."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Keep garbage collections out of a process of one command: a sixth of what a short one takes.

    What imports make stays: nothing is collected until `_collect_from_now_on`. The process ends
    with the block: the interpreter would look at all objects once more, and free what the system
    takes back anyway.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()


def _collect_from_now_on() -> None:
    """Let the collector run, unless it does, and leave alone what the imports have made."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def kubectl_plugin() -> NoReturn:
    """Run `kubectl vnode`: the entry point of `kubectl-vnode`."""
    main("kubectl vnode")


def main(name: str = "vnode") -> NoReturn:
    """Run the command line.

    Exit codes: 0 done, 1 failed (one line says why), 2 wrong usage, 3 the command found problems
    (doctor), 130 Ctrl-C.
    """
    with few_collections():
        try:
            code = cli.main(prog_name=name, complete_var="_VNODE_COMPLETE", standalone_mode=False)
        except VnodeError as error:
            terminal.say(f"Error: {error_texts.text_of(error)}", err=True)
            sys.exit(1)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)

        sys.exit(code if isinstance(code, int) else 0)
