"""`vnode uncordon`: the command line."""

from __future__ import annotations

import click

from vnode.cli.drain import cordon


def command() -> click.Command:
    """The click command."""
    return cordon.make("uncordon", False, "Send pods to a target again.")
