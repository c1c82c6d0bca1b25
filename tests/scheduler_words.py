"""What kube-scheduler says of nodes, in all minors that are supported, and what cures it.

Compared with the sources of 1.33.5, 1.36.3 and 1.37.0 in November 2026. Where minors differ, an
entry has the words of each; tests/versions looks into the programs that run.
"""

from __future__ import annotations

from typing import Final

NEW: Final = "node(s) didn't match Pod's required features"
"""Not said by 1.33."""

_FITS_NOT: Final = "add nodes in the target that are large enough"
_VOLUME_ELSEWHERE: Final = "the pod's volume is bound to other nodes of c2"
_NO_VOLUME: Final = "there is no volume in c2 for the pod's claim"

WORDS: Final[dict[tuple[str, ...], str]] = {
    ("Insufficient %v",): _FITS_NOT,
    ("Too many pods",): _FITS_NOT,
    ("cannot allocate all claims",): "add devices in the target",
    (
        "node(s) had untolerated taint(s)",
        "node(s) had untolerated taint {%s: %s}",  # 1.33
    ): "give the pod a toleration",
    ("node(s) were unschedulable",): "uncordon the nodes of c2",
    ("node(s) didn't match Pod's node affinity/selector",): "compare its constraints",
    ("node(s) didn't match pod affinity rules",): "relax the pod's affinity",
    ("node(s) didn't match pod anti-affinity rules",): "relax the pod's affinity",
    ("node(s) didn't satisfy existing pods anti-affinity rules",): "relax the pod's affinity",
    ("node(s) didn't match pod topology spread constraints",): "relax the pod's topologySpread",
    (
        "node(s) didn't have free ports for the requested pod ports",
    ): "other pods have that host port",
    ("node(s) exceed max volume count",): "the nodes of c2 have as many volumes",
    ("node(s) didn't match PersistentVolume's node affinity",): _VOLUME_ELSEWHERE,
    ("node(s) had no available volume zone",): _VOLUME_ELSEWHERE,
    ("node(s) didn't find available persistent volumes to bind",): _NO_VOLUME,
    ("node(s) did not have enough free storage",): _NO_VOLUME,
    ("pod has unbound immediate PersistentVolumeClaims",): "see why the claim is not bound",
    ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",): "is gone in c2",
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode",
        # of 1.33:
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access",
    ): "another pod has the claim",
    (NEW,): "the nodes of c2 are too old",
    ("node(s) didn't match scheduler-enforced node affinity",): "has an addedAffinity",
}
"""A part of the one cure, by the words for one thing."""
