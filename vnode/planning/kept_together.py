"""Keeps pods together that have to reach each other, as those of a Ray cluster or an MPI job. Pure.

Their operators give all pods of a group a label with the same value, and take for granted that each
pod reaches the others, which pods in two clusters seldom do. Where no placement policy is for such
a pod, it is as if there were one of the mode Single that groups by that label. So whoever has
joined the networks of the clusters says so by a policy, and everybody else need not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.planning.policy import Mode, Policy

_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_JOB: Final = "jobset.sigs.k8s.io/job-key"

LABELS: Final = (
    "ray.io/cluster",  # KubeRay
    "leaderworkerset.sigs.k8s.io/group-key",  # LeaderWorkerSet: of one leader with its workers
    _JOB_SET,  # JobSet, and so TrainJob
    "training.kubeflow.org/job-name",  # MPIJob, PyTorchJob and their like
    "spark-app-selector",  # Spark: a driver with its executors
    "volcano.sh/job-name",
    "dask.org/cluster-name",
)
"""The labels of pods by which operators name such groups."""

MOST: Final = 32

_NAME: Final = "the setting keepTogether"


class KeptTogether:
    """The policies of pods that have one of these labels; the first one counts.

    A JobSet may ask for exclusive placement, by an annotation that JobSet's controller gives its
    pods: each of its Jobs gets a place of its own. Then the pods of a Job are the group, since two
    Jobs that exclude each other could not both be in one target.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._policies = {label: _by(label) for label in labels}
        self._of_a_job = _by(_JOB)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._policies)

    @property
    def groupings(self) -> frozenset[str]:
        """What these policies group by."""
        return frozenset((*self._policies, _JOB) if self._policies else ())

    def of(self, pod: Object) -> Policy | None:
        """Return the policy for a pod that no other one is for; None if it is in no such group."""
        labels = objects.labels(pod)
        if self._policies.keys().isdisjoint(labels):  # almost all pods
            return None

        policy = next(policy for label, policy in self._policies.items() if label in labels)
        if policy.group_by == _JOB_SET and _EXCLUSIVE in objects.annotations(pod):
            return self._of_a_job

        return policy


def _by(label: str) -> Policy:
    return Policy(_NAME, "", None, Mode.SINGLE, group_by=label, is_default=True)
