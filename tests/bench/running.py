"""Runs a benchmark on its fleet to the end, and says what went wrong, or which aims were missed."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiohttp
import msgspec

from hack.fleetlib import progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from tests.bench import results, sequence
from tests.bench.figures import Aim
from vnode.api.errors import VnodeError


class WithAims(Protocol):
    """What a benchmark has measured."""

    @property
    def aims(self) -> list[Aim]:
        """What the project promises itself."""


Run = TypeVar("Run", bound=WithAims)


def run(
    program: str,
    fleet: AbstractContextManager[LocalFleet],
    measure: Callable[[LocalFleet], Coroutine[Any, Any, Run]],
    text: Callable[[Run], str],
    path: Path,
) -> int:
    """Measure, print and save; return 1 if something failed, or an aim was missed."""
    # A terminated benchmark must take down what it has started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failures: list[str] = []
    try:
        with fleet as measured:
            try:
                done = asyncio.run(measure(measured))
            except* (
                *(FleetError, VnodeError, AssertionError),
                *(TimeoutError, aiohttp.ClientError),
            ) as group:
                failures = [str(error) or repr(error) for error in sequence.leaves(group)]
    except FleetError as error:
        failures = [str(error)]
    except KeyboardInterrupt:
        return 130

    if failures:
        progress.say(f"{program}: {'; '.join(failures)}")
        return 1

    assert isinstance(done, msgspec.Struct), "results are saved as JSON"
    results.save(done, text(done), path)
    return 0 if all(aim.reached for aim in done.aims) else 1
