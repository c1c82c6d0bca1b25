"""Errors of the fleet tools: one class, because each ends the command with its text."""

from __future__ import annotations


class FleetError(Exception):
    """Something a user can act upon: the text says what failed and names the cure."""
