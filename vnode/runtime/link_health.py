"""Says whether a target answers, as probes have found it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

CONNECTING: Final = "Connecting"
"""The reason of a health before the first answer: the target is neither healthy nor unhealthy."""
UNREACHABLE: Final = "Unreachable"
"""The reason of a health while the target does not answer."""

LEAVING: Final = "Leaving"
"""The reason of a health once the Target was deleted."""

OTHER_CLUSTER: Final = "OtherCluster"
"""The reason of a health if another cluster than the Target's answers."""


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """Says whether a target answers; `reason` is a CamelCase word, `message` is for people."""

    healthy: bool
    reason: str
    message: str
    since: datetime
