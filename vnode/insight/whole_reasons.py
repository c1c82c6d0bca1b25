"""Names the cures of reasons that are matched as a whole, before parts of them mean anything. Pure.

Other patterns match words in them: the name of a user has "serviceaccount" in it, which is no
service account that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from vnode.api import cures, saved_manifest

_CURES: Final = (
    (
        rf"{saved_manifest.UNKNOWN}.*",
        (
            "vnode migrate signs what Admiralty has saved of pods that wait; delete any other, and "
            "create it again from the manifest that its user wrote"
        ),
    ),
    (
        rf"is forbidden: User \S+ cannot .*?{cures.NOT_GRANTED}.*",
        "have an administrator of the target run the command that the reason names, there",
    ),
    (
        r"the agent may not make tokens:.*? of the Target",
        (
            "give the agent the right to make tokens, by the command that the reason names, or "
            "have the Target not ask for them"
        ),
    ),
    (
        r"Secret \S+ is the token of service account \S+, which would end in a variable",
        "mount the Secret as a volume, whole, or create one of that name in the target",
    ),
    (
        r"Secret \S+ is the token of service account \S+",
        (
            "have the target ask for tokens of the source, run the pod as that service account, or "
            "create a Secret of that name in the target"
        ),
    ),
    (
        r"Secret \S+ holds no valid token of service account \S+",
        "see that the service account exists, and create the Secret again",
    ),
    (
        r"is forbidden: User \S+ cannot [^;]*",
        (
            "the user that the text names lacks that right: if there is a Source for it, its role "
            f"has been changed: in that cluster {cures.REPAIR}; else vnode connect makes one"
        ),
    ),
    (
        r"the target refuses: .*",
        (
            "vnode connect makes a Source in the target; if there is one, its role has been "
            f"changed: there, {cures.REPAIR}"
        ),
    ),
    (
        r"PersistentVolumeClaim with (the same name and )?ReadWriteOncePod access",
        (
            "another pod has the claim, whose access mode ReadWriteOncePod is for one at a time: "
            "delete that pod, or have this one claim another"
        ),
    ),
)


def take(reasons: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what is left of the reasons of targets, by name, and the cures of the rest."""
    left, found = dict(reasons), []
    for pattern, cure in _CURES:
        if any(re.search(pattern, text) for text in left.values()):
            left = {name: re.sub(pattern, "", text) for name, text in left.items()}
            found.append(cure)

    return left, found
