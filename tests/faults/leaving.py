"""Takes vnode out of clusters and puts it back, by its own command line, as administrators do.

`vnode disconnect` of a target; `vnode uninstall` in one, whose delegates end or stay. What is gone
is made again when the step is over: `vnode install`, the agent, its scheduler, `vnode connect`.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from hack.fleetlib import agents
from hack.fleetlib.errors import FleetError
from tests.faults import harness as harnesses
from tests.faults.harness import Harness
from tests.faults.hostility import PLANTS
from tests.faults.plan import SOURCE, Action, Verb
from tests.faults.snapshot import Violation
from vnode.api import keys, kinds, objects
from vnode.api.errors import VnodeError

SECONDS = 120.0  # for which an administrator tries
_AGAIN = 1.0
_STEP = ("--timeout", "15")  # seconds that a step of a removal waits for pods
_NOT_YET = "run this again"
_NO_TARGET = "there is no Target"
_PROCESSES = (*agents.AGENTS, agents.CANDIDATE_SCHEDULER)


class Leaver:
    """Of a harness. `disconnected` and `uninstalled` are clusters that are to be brought back."""

    def __init__(self, harness: Harness) -> None:
        self.disconnected: set[str] = set()
        self.uninstalled: set[str] = set()
        self.violations: list[Violation] = []
        self._harness = harness

    async def leave(self, action: Action) -> None:
        """Do it, as often as it takes."""
        if action.verb is Verb.DISCONNECT:
            self.disconnected.add(action.target)
            await self._persist(lambda: self._disconnect(action.target))
            return

        self.uninstalled.add(action.target)
        keep = action.verb is Verb.UNINSTALL_KEEP
        await self._persist(lambda: self._uninstall(action.target, keep))
        await self._harness.take_away(action.target, _PROCESSES)
        if not keep:
            await self._look_for_rest(action.target)

    async def install_again(self) -> None:
        """Install vnode again where it was uninstalled, and connect these targets."""
        for target in sorted(self.uninstalled):
            await self._persist(lambda target=target: self._install(target))
            await self._persist(lambda target=target: self._start(target))
            self._harness.give_back(target, _PROCESSES)
            await self._persist(lambda target=target: self._connect(target))
            self.uninstalled.discard(target)

    async def connect_again(self) -> None:
        """Connect the targets that were disconnected."""
        for target in sorted(self.disconnected):
            await self._persist(lambda target=target: self._connect(target))
            self.disconnected.discard(target)

    async def _persist(self, do: Callable[[], bool]) -> None:
        """Wait until it says that it is done; its last error if that takes too long."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                if await asyncio.to_thread(do):
                    return
            except (FleetError, OSError, subprocess.TimeoutExpired) as error:
                if time.monotonic() > until:
                    raise FleetError(f"not done within {SECONDS:g} s: {error}") from error

            await asyncio.sleep(_AGAIN)

    def _disconnect(self, target: str) -> bool:
        fleet = self._harness.fleet
        files: tuple[str, ...] = ("--source", str(fleet.kubeconfig(SOURCE)))
        files += ("--target", str(fleet.kubeconfig(target)))
        try:
            agents.vnode("disconnect", target, *files, "--namespace", "default", *_STEP)
        except FleetError as error:
            if _NO_TARGET not in str(error):
                raise

        return True

    def _uninstall(self, target: str, keep: bool) -> bool:
        where = ("--kubeconfig", str(self._harness.fleet.kubeconfig(target)))
        which = "keep" if keep else "delete"
        output = agents.vnode("uninstall", *where, "--delegates", which, *_STEP)
        return _NOT_YET not in output

    async def _look_for_rest(self, target: str) -> None:
        """Check that nothing of any source is left where vnode was uninstalled with its delegates.

        The hostile source does not count: it goes on planting, with an administrator's rights.
        """
        client = self._harness.clients[target]
        while True:
            try:
                left = await client.list(kinds.POD_CHAPERONS, None)
                for kind in (kinds.PODS, *kinds.FOLLOWING):
                    left += await client.list(kind, None, label_selector=keys.PARENT_UID)
            except VnodeError:
                await asyncio.sleep(_AGAIN)
            else:
                break

        for obj in left:
            if objects.namespace(obj) == PLANTS:
                continue

            self.violations.append(
                Violation("nothing is left where vnode was", f"{objects.key(obj)} in {target}")
            )

    def _install(self, target: str) -> bool:
        agents.install(self._harness.fleet.site(target))
        return True

    def _start(self, target: str) -> bool:
        """Start the agents with the token of their new account, the scheduler with the new CA."""
        fleet, place = self._harness.fleet, self._harness.fleet.site(target)
        state, names = fleet.state(), harnesses.agents_of(fleet, target)
        scheduler = state.process(target, agents.CANDIDATE_SCHEDULER)
        if down := [name for name in names if not state.process(target, name).alive]:
            agents.as_service_account(place, "vnode")
            harnesses.point_at(
                place.folder / "vnode.kubeconfig", self._harness.urls[f"{target}>{target}"]
            )
            for name in down:
                fleet.start(target, name)

        agents.start_candidate_scheduler(fleet.directory, place, Path(scheduler.argv[0]))
        return True

    def _connect(self, target: str) -> bool:
        harnesses.connect(self._harness.fleet, target, self._harness.urls[f"{SOURCE}>{target}"])
        return True
