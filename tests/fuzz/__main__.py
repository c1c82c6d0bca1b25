"""`make fuzz`: mutated inputs of all kinds, round by round, to whole agents, for a while.

    python -m tests.fuzz [--seed SEED] [--minutes 60] [--only KIND ...]
    python -m tests.fuzz --seed 7 --rounds 3:4 [--only chaperons]     one round again
    python -m tests.fuzz --seed 7 --rounds 3:4 --only chaperons --inputs 12     one input again

Each input has a randomness of its own, which its seed, round, kind and number give. After each
round an honest pod must run and end, and nothing must have been logged, blocked or written that
must not be.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.fuzz import measuring
from tests.fuzz.driving import FuzzRun, FuzzSettings, distinct
from tests.fuzz.shrinking import shrink

_MOST_SHOWN: Final = 10


def main() -> int:
    """Run what the command line asks for; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    seed = random.SystemRandom().randrange(10**9)
    parser.add_argument("--seed", type=int, default=seed, help="of all inputs; drawn by default")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long; %(default)s")
    parser.add_argument("--rounds", default="0:", help="FIRST:END, which of them; all by default")
    parser.add_argument("--only", action="append", default=[], help="kinds of inputs")
    parser.add_argument("--inputs", default="", help="numbers of inputs, with commas")
    parser.add_argument("--go-on", action="store_true", help="also after a finding")
    parser.add_argument(
        "--callback-limit",
        type=float,
        default=measuring.LIMIT,
        metavar="SECONDS",
        help="CPU time that one callback may take; %(default)s",
    )
    parser.add_argument("--keep", type=Path, help="a new folder for logs, which is kept")
    arguments = parser.parse_args()
    first, _, end = arguments.rounds.partition(":")
    settings = FuzzSettings(
        arguments.seed,
        arguments.minutes * 60,
        range(int(first or 0), int(end or sys.maxsize)),
        tuple(arguments.only),
        tuple(int(number) for number in arguments.inputs.split(",") if number),
        arguments.go_on,
        arguments.callback_limit,
    )
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
        return asyncio.run(_run(settings, arguments.keep))

    with tempfile.TemporaryDirectory(prefix="vnode-fuzz-") as folder:
        return asyncio.run(_run(settings, Path(folder)))


async def _run(settings: FuzzSettings, folder: Path) -> int:
    running = asyncio.create_task(_fuzz(settings, folder))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    return await running


async def _fuzz(settings: FuzzSettings, folder: Path) -> int:
    print(f"fuzz: seed {settings.seed}", flush=True)
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # agents may send nonsense
    run = FuzzRun(settings, folder)
    await run.run()
    print(*run.lines, sep="\n")
    found = distinct(run.found)
    for shown in run.shown[:_MOST_SHOWN]:
        print(f"input {shown}")

    for finding in found[:_MOST_SHOWN]:
        print(f"WRONG {finding}", flush=True)

    if not found:
        return 0

    number = run.failed or settings.rounds.start
    print(f"{len(run.found)} findings; again: {settings.repeated(number, number + 1)}", flush=True)
    if run.failed is not None and not settings.inputs:
        few = await shrink(settings, number, {finding.rule for finding in found}, folder)
        print(f"few inputs are enough: {few.repeated(number, number + 1)}")

    return 1


if __name__ == "__main__":
    sys.exit(main())
