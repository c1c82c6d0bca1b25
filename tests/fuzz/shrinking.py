"""Finds few inputs that are enough for a finding: runs its round again, with ever fewer of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fuzz.driving import FuzzRun, FuzzSettings


async def shrink(
    settings: FuzzSettings, number: int, rules: set[str], folder: Path
) -> FuzzSettings:
    """Return settings that break one of these rules by few inputs of one kind; else the same.

    What depends on chance, or on earlier rounds, does not shrink.
    """
    settings = replace(settings, rounds=range(number, number + 1))
    attempts = 0

    async def fails(tried: FuzzSettings) -> bool:
        nonlocal attempts
        attempts += 1
        run = FuzzRun(tried, folder / f"shrink-{attempts}")
        await run.run()
        return any(finding.rule in rules for finding in run.found)

    for kind in settings.kinds:
        tried = replace(settings, only=(kind.name,))
        if not await fails(tried):
            continue

        left = list(settings.inputs or range(kind.count))
        while len(left) > 1:
            middle = len(left) // 2
            for half in (left[:middle], left[middle:]):
                if await fails(replace(tried, inputs=tuple(half))):
                    left = half
                    break
            else:
                break

        return replace(tried, inputs=tuple(left))

    return settings
