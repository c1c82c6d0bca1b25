"""Causes the faults of a plan, in fault proxies and processes, each for its time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from tests.faults.harness import Harness
from tests.faults.plan import Fault, Trouble


async def cause(harness: Harness, fault: Fault) -> None:
    """Break, wait, and mend again what is not broken otherwise."""
    await asyncio.sleep(fault.at)
    if fault.trouble is Trouble.KILL:
        await harness.kill(fault.where)
        await asyncio.sleep(fault.seconds)
        await harness.release(fault.where)
    elif fault.trouble is Trouble.STOP:
        await harness.freeze(fault.where)
        await asyncio.sleep(fault.seconds)
        await harness.thaw(fault.where)
    else:
        begin(harness, fault)
        await asyncio.sleep(fault.seconds)
        end(harness, fault)

    if fault.outage:
        harness.outages[fault.outage] = time.monotonic()


def begin(harness: Harness, fault: Fault) -> None:
    """Let the fault of a proxy begin."""
    fault_proxy = harness.fault_proxies[fault.where]
    match fault.trouble:
        case Trouble.FREEZE:
            fault_proxy.freeze()
        case Trouble.REFUSE:
            fault_proxy.refusing = True
            fault_proxy.reset()
        case Trouble.RESET:
            fault_proxy.reset()
        case Trouble.STALL_WATCHES:
            fault_proxy.freeze_watches()
        case Trouble.SLOW:
            fault_proxy.profile = replace(fault_proxy.profile, delay=fault.amount)
        case Trouble.ERRORS:
            errors = {**fault_proxy.profile.errors, fault.status: fault.amount}
            fault_proxy.profile = replace(fault_proxy.profile, errors=errors)
        case Trouble.LOSE:
            fault_proxy.profile = replace(fault_proxy.profile, lost=fault.amount)


def end(harness: Harness, fault: Fault) -> None:
    """Undo the fault of a proxy."""
    fault_proxy = harness.fault_proxies[fault.where]
    match fault.trouble:
        case Trouble.FREEZE:
            fault_proxy.freeze(False)
        case Trouble.REFUSE:
            fault_proxy.refusing = False
        case Trouble.STALL_WATCHES:
            fault_proxy.freeze_watches(False)
        case Trouble.SLOW:
            fault_proxy.profile = replace(fault_proxy.profile, delay=0.0)
        case Trouble.ERRORS:
            rest = {k: v for k, v in fault_proxy.profile.errors.items() if k != fault.status}
            fault_proxy.profile = replace(fault_proxy.profile, errors=rest)
        case Trouble.LOSE:
            fault_proxy.profile = replace(fault_proxy.profile, lost=0.0)
