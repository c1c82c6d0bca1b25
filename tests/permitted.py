"""What tests hand to parts of an agent that are not about who takes part and who signs."""

from types import SimpleNamespace
from typing import cast

from vnode.api import kinds
from vnode.api.saved_manifest import SavedManifests
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.namespace_scope import EVERYTHING
from vnode.runtime.enabled_namespaces import EnabledNamespaces

NO_CLIENT = cast("Client", SimpleNamespace(name="none", scope=EVERYTHING))
"""For what only keeps a client."""
MANIFESTS = SavedManifests(lambda: bytes(32), trust_unsigned=True)


def any_namespace(_name: str) -> str:
    """Refuse no namespace."""
    return ""


def all_namespaces(client: Client | None = None) -> EnabledNamespaces:
    """Let every namespace take part; nothing is asked of an API server."""
    informer = Informer(client or NO_CLIENT, kinds.NAMESPACES)
    return EnabledNamespaces(informer, label_required=False)
