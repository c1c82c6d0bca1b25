"""Reads the metrics of the source's agent, as Prometheus does."""

from __future__ import annotations

import urllib.request

from hack.fleetlib import addresses
from hack.fleetlib.fleet import LocalFleet
from tests.kit import Fleet


def text_of(fleet: Fleet) -> str:
    """Return what Prometheus would be told by the agent of c1."""
    url = f"http://{LocalFleet(fleet.folder).address('c1')}:{addresses.AGENT_HEALTH}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def lines_of(fleet: Fleet, *names: str) -> list[str]:
    """Return the lines of these metrics, in order."""
    return sorted(line for line in text_of(fleet).splitlines() if line.startswith(names))
