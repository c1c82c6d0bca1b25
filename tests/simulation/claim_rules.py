"""What has to hold of devices by claim: at every change, and once all pods have ended.

Claims of the source stay without devices; a device has one claim; pods that share a claim are in
one target; and who lost a place, or has ended, leaves no claim behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.apiserver.store import Change
from tests.faults.snapshot import Violation
from tests.simulation.clusters import SimulatedCluster
from tests.simulation.device_claims import SHARED, claims_in, device_of, users_of
from vnode.api import device_claims, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object


@dataclass(slots=True)
class ClaimWatcher:
    """Looks at each change of a claim, in all clusters."""

    sources: Mapping[str, SimulatedCluster]
    targets: Mapping[str, SimulatedCluster]
    wrong: list[str] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    """All devices that any claim ever had."""
    shared_in: set[str] = field(default_factory=set)
    """All targets where the shared claim ever had one."""

    def follow(self) -> None:
        """Look from now on."""
        for source in self.sources.values():
            source.server.store.changed.add(self._on_source)

        for name, target in self.targets.items():
            target.server.store.changed.add(
                lambda kind, change, name=name: self._on_target(name, kind, change)
            )

    def _on_source(self, kind: Kind, change: Change) -> None:
        if kind is kinds.RESOURCE_CLAIMS and change.new is not None and objects.status(change.new):
            self.wrong.append(f"source: {objects.name(change.new)} has a status")

    def _on_target(self, name: str, kind: Kind, change: Change) -> None:
        claim = change.new
        if kind is not kinds.RESOURCE_CLAIMS or claim is None or not device_of(claim):
            return

        devices = Counter(
            device for each in claims_in(self.targets[name]) if (device := device_of(each))
        )
        self.given.update(devices)
        if device := next((device for device, count in devices.items() if count > 1), ""):
            self.wrong.append(f"{name}: {device} is given twice")

        if objects.name(claim) == SHARED:
            self.shared_in.add(name)
            self._check_shared()

    def _check_shared(self) -> None:
        """Tell whether pods that are bound share the claim in several targets."""
        places = {
            objects.node_name(pod)
            for source in self.sources.values()
            for pod in source.pods()
            if SHARED in device_claims.named(objects.spec(pod)) and _has_place(pod)
        }
        if len(places) > 1:
            self.wrong.append(f"claim {SHARED} is used by pods on {sorted(places)}")

    def left(self) -> Iterator[Violation]:
        """Yield what is wrong once all pods have ended."""
        for what in dict.fromkeys(self.wrong):
            yield Violation("claims are of one cluster", what)

        for name, target in self.targets.items():
            for claim in claims_in(target):
                what = f"{name}: {objects.name(claim)} is left, for {users_of(claim)}"
                yield Violation("no claim is left", what)

            for template in target.server.store.all(kinds.RESOURCE_CLAIM_TEMPLATES):
                yield Violation("no claim is left", f"{name}: template {objects.name(template)}")


def _has_place(pod: Object) -> bool:
    return bool(objects.node_name(pod)) and not objects.is_finished(pod)
