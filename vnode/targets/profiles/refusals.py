"""Names why a ClusterProfile gives no access, in the words of its Target's Ready condition."""

from __future__ import annotations

from typing import Final

from vnode.api.errors import ConfigError, Unreachable

NOT_FOUND: Final = "ProfileNotFound"
NOT_BELIEVED: Final = "NamespaceNotAllowed"
NO_ACCESS: Final = "NoAccessProvider"
UNKNOWN_PROVIDER: Final = "UnknownProvider"
REFUSED: Final = "ProfileRefused"
NOT_SERVED: Final = "InventoryNotServed"
UNREADABLE: Final = "ProfileUnreadable"
PLUGIN_RUNS: Final = "AwaitingCredentials"
PLUGIN_FAILED: Final = "PluginFailed"


class ProfileRefused(ConfigError):
    """A profile cannot be used, or must not be; `reason` is for the Target's condition."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ProfileUnavailable(Unreachable):
    """A profile, or its credentials, cannot be had now; a connection that there is goes on."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
