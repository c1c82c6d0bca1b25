"""What must be true of Jobs and of their pods' indexes: pure.

`Indexes` is fed with every event. A delegate of an indexed Job must know the index of its proxy,
and an index of a Job that waits for its pods to end completes once. Events of proxies and of
delegates come by different watches, so either may be first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.faults.plan import WantedWorkload, WorkloadKind
from tests.faults.snapshot import REPLACES_FAILED, FleetSnapshot, Violation, node_of, phase
from vnode.api import keys, objects
from vnode.api.objects import Object

INDEX = "batch.kubernetes.io/job-completion-index"
JOB = "batch.kubernetes.io/job-name"
VARIABLE = "JOB_COMPLETION_INDEX"


@dataclass(frozen=True, slots=True)
class CompletionIndex:
    """A proxy's place in its Job; `once` if no other pod may have completed it."""

    job: str
    index: str
    once: bool


@dataclass(slots=True)
class Indexes:
    """What was seen of indexed Jobs since the beginning."""

    violations: list[Violation] = field(default_factory=list)
    checked: int = 0  # delegates that know their index
    _places: dict[str, CompletionIndex] = field(default_factory=dict)  # by UID of the proxy
    _known: dict[str, str | None] = field(default_factory=dict)  # by UID of the proxy, see `index`
    # By UID of the proxy: whether a delegate of it completed where no force can excuse a second.
    _completed: dict[str, bool] = field(default_factory=dict)
    _first: dict[CompletionIndex, str] = field(
        default_factory=dict
    )  # the UID of the proxy that completed it

    def on_proxy(self, pod: Object) -> None:
        """Take note of a proxy that is there, or was changed."""
        annotations, uid = objects.annotations(pod), objects.uid(pod)
        if INDEX in annotations and uid not in self._places:
            job, once = objects.labels(pod).get(JOB, ""), REPLACES_FAILED in annotations
            owner = objects.controller_uid(pod) or job
            self._places[uid] = CompletionIndex(f"{job} ({owner})", annotations[INDEX], once)
            self._compare(uid)
            self._complete(uid)

    def on_delegate(self, pod: Object, *, forced: bool = False) -> None:
        """Take note of a delegate that is there, or was changed.

        It is `forced` if its replacement does not wait for it.
        """
        uid = objects.labels(pod).get(keys.PARENT_UID, "")
        if node_of(pod) and uid not in self._known and _reads_index(pod):
            self._known[uid] = index(pod)
            self._compare(uid)

        if phase(pod) == "Succeeded" and uid not in self._completed:
            self._completed[uid] = forced
            self._complete(uid)

    def _compare(self, uid: str) -> None:
        if uid in self._places and uid in self._known:
            place, known = self._places[uid], self._known[uid]
            self.checked += 1
            if known != place.index:
                text = f"pod {place.index} of {place.job} takes itself for {known!r}"
                self.violations.append(Violation("delegates know their index", text))

    def _complete(self, uid: str) -> None:
        place = self._places.get(uid)
        if place is None or self._completed.get(uid, True):
            return

        if self._first.setdefault(place, uid) != uid and place.once:
            text = f"index {place.index} of {place.job}, in {self._first[place]} and {uid}"
            self.violations.append(Violation("an index completes once", text))


def _reads_index(pod: Object) -> bool:
    return bool(_variables(pod))


def index(pod: Object) -> str | None:
    """Return the index that a pod's containers read; None if they disagree, or read nothing."""
    found = {_resolved(pod, variable) for variable in _variables(pod)}
    return found.pop() if len(found) == 1 else None


def _variables(pod: Object) -> list[Object]:
    return [
        variable
        for container in objects.spec(pod).get("containers") or ()
        for variable in container.get("env") or ()
        if variable.get("name") == VARIABLE
    ]


def _resolved(pod: Object, variable: Object) -> str | None:
    """Return the value that a kubelet gives a variable: the empty string if a key is missing."""
    reference = (variable.get("valueFrom") or {}).get("fieldRef")
    if reference is None:
        value: str | None = variable.get("value")
        return value

    path = str(reference.get("fieldPath") or "")
    for prefix, values in (
        ("metadata.labels['", objects.labels(pod)),
        ("metadata.annotations['", objects.annotations(pod)),
    ):
        if path.startswith(prefix):
            return str(values.get(path.removeprefix(prefix).removesuffix("']"), ""))

    return None


def jobs_complete(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that every Job and each of its indexes completes once what disturbed it is over."""
    for workload in snapshot.wish.workloads.values():
        job = snapshot.jobs.get(objects.join_key("default", workload.name), {})
        status = objects.status(job)
        if workload.kind is not WorkloadKind.JOB:
            continue

        if (status.get("succeeded") or 0) < workload.replicas:
            states = [
                f"{objects.name(p)} {phase(p)} on {node_of(p) or '?'}"
                for p in snapshot.of(workload)
            ]
            yield f"{workload.name} has not completed: {status} {states}"
        elif workload.job.indexed and status.get("completedIndexes") != _all(workload):
            yield f"{workload.name} has completed {status.get('completedIndexes')} only"


def disruptions_fail_no_job(snapshot: FleetSnapshot) -> Iterator[str]:
    """Check that no Job that ignores disruptions failed: only disruptions ever ended its pods."""
    for workload in snapshot.wish.workloads.values():
        job = snapshot.jobs.get(objects.join_key("default", workload.name), {})
        if workload.job.ignores_disruptions and failed(job):
            yield f"{workload.name} failed: {(objects.condition(job, 'Failed') or {})}"


def failed(job: Object) -> bool:
    """Tell whether a Job has ended in failure."""
    return (objects.condition(job, "Failed") or {}).get("status") == "True"


def _all(workload: WantedWorkload) -> str:
    """Return all indexes of a Job as its status writes them: `0-3`, `0,1`, or `0`."""
    last = workload.replicas - 1
    return "0" if last == 0 else ("0,1" if last == 1 else f"0-{last}")
