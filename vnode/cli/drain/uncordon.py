"""Defines `vnode uncordon`."""

from __future__ import annotations

import click

from vnode.cli.drain import cordon


def command() -> click.Command:
    """Return the click command."""
    return cordon.make("uncordon", False, "Send pods to a target again.")
