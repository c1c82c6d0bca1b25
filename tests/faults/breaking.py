"""Brings about what a plan says breaks: trouble of lanes and processes, each for its time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.faults.plan import Fault, Trouble
from tests.faults.rig import Rig


async def cause(rig: Rig, fault: Fault) -> None:
    """Break, wait, and mend again what is not broken otherwise."""
    await asyncio.sleep(fault.at)
    if fault.trouble is Trouble.KILL:
        await rig.kill(fault.where)
        await asyncio.sleep(fault.seconds)
        await rig.release(fault.where)
        return

    if fault.trouble is Trouble.STOP:
        await rig.freeze(fault.where)
        await asyncio.sleep(fault.seconds)
        await rig.thaw(fault.where)
        return

    begin(rig, fault)
    await asyncio.sleep(fault.seconds)
    end(rig, fault)


def begin(rig: Rig, fault: Fault) -> None:
    """The lane is in trouble from now on."""
    lane = rig.lanes[fault.where]
    match fault.trouble:
        case Trouble.FREEZE:
            lane.freeze()
        case Trouble.REFUSE:
            lane.refusing = True
            lane.reset()
        case Trouble.RESET:
            lane.reset()
        case Trouble.STALL_WATCHES:
            lane.freeze_watches()
        case Trouble.SLOW:
            lane.weather = replace(lane.weather, delay=fault.amount)
        case Trouble.ERRORS:
            errors = {**lane.weather.errors, fault.status: fault.amount}
            lane.weather = replace(lane.weather, errors=errors)
        case Trouble.LOSE:
            lane.weather = replace(lane.weather, lost=fault.amount)


def end(rig: Rig, fault: Fault) -> None:
    """That trouble of the lane is over."""
    lane = rig.lanes[fault.where]
    match fault.trouble:
        case Trouble.FREEZE:
            lane.freeze(False)
        case Trouble.REFUSE:
            lane.refusing = False
        case Trouble.STALL_WATCHES:
            lane.freeze_watches(False)
        case Trouble.SLOW:
            lane.weather = replace(lane.weather, delay=0.0)
        case Trouble.ERRORS:
            rest = {k: v for k, v in lane.weather.errors.items() if k != fault.status}
            lane.weather = replace(lane.weather, errors=rest)
        case Trouble.LOSE:
            lane.weather = replace(lane.weather, lost=0.0)
