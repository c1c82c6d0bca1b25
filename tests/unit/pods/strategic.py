"""What an API server makes of a strategic merge patch for a pod's status, where tests need it."""

from __future__ import annotations

from tests.apiserver import patches
from vnode.api.objects import Object


def apply(pod: Object, patch: Object) -> None:
    """Change the pod as the patch says: its annotations and its status."""
    if not patch:
        return

    annotations = {
        **pod["metadata"].get("annotations", {}),
        **patch["metadata"].get("annotations", {}),
    }
    pod["metadata"]["annotations"] = {k: v for k, v in annotations.items() if v is not None}
    old = pod["status"]
    pod["status"] = patches.strategic(old, patch["status"])
    _keep_generations(pod["status"], old)


def _keep_generations(status: Object, old: Object) -> None:
    """Keep the `observedGeneration`s of a pod, which leaving them out does not clear."""
    if "observedGeneration" in old:
        status.setdefault("observedGeneration", old["observedGeneration"])

    before = {entry["type"]: entry for entry in reversed(old.get("conditions") or [])}
    for entry in status.get("conditions") or ():
        if number := before.get(entry["type"], {}).get("observedGeneration"):
            entry.setdefault("observedGeneration", number)
