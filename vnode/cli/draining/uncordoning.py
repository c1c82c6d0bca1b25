"""`vnode uncordon`: the command line."""

from __future__ import annotations

import click

from vnode.cli.draining import cordoning


def command() -> click.Command:
    """The click command."""
    return cordoning.make("uncordon", False, "Send pods to a target again.")
