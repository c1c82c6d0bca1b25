"""The part of the agent's configuration that is about a Kueue of its cluster."""

from __future__ import annotations

import msgspec


class KueueConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is done for a Kueue of this cluster; it takes rights of its own, `vnode-kueue`."""

    placement_check: bool = False
    """Whether AdmissionChecks whose controller is `vnode.dev/placement` are answered."""
    allocatable_without_others: bool = False
    """Whether what others use in a target is left out of its virtual node's allocatable."""
