"""Defines the options by which commands name a cluster and a namespace, and completes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from vnode.cli import access, completing
from vnode.kube.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULT: Final = "By default $KUBECONFIG, ~/.kube/config, or the own pod's."


def options(function: Command) -> Command:
    """Add the options `--kubeconfig` and `--context`; the command gets both as arguments."""
    function = click.option(
        "--context",
        help="Of the kubeconfig; the current one if not given.",
        shell_complete=completing.contexts,
    )(function)
    return click.option("--kubeconfig", type=access.FILE, help=_DEFAULT)(function)


def source_options(function: Command) -> Command:
    """Add the same options, with the aliases `--source` and `--source-context`.

    They are for commands that know two clusters.
    """
    function = click.option(
        "--context",
        "--source-context",
        "context",
        help="The current one if not given.",
        shell_complete=completing.contexts,
    )(function)
    return click.option(
        "--kubeconfig", "--source", "kubeconfig", type=access.FILE, help=f"The source. {_DEFAULT}"
    )(function)


def namespaced(function: Command) -> Command:
    """Add the option `--namespace`; the default is the context's."""
    return click.option(
        "-n",
        "--namespace",
        help="By default that of the context.",
        shell_complete=completing.namespaces,
    )(function)


def all_namespaces(function: Command) -> Command:
    """Add the options `--namespace` and `--all-namespaces`."""
    function = click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")(
        function
    )
    return namespaced(function)


def scope(client: Client, namespace: str | None, everywhere: bool) -> str | None:
    """Return the namespace that the options select, None for all."""
    return None if everywhere else namespace or client.endpoint.namespace
