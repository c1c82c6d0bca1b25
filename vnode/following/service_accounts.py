"""Service accounts that pods name, made in targets whose Target asks for it.

Only the name follows: no labels or annotations, by which clouds give rights to an account, and no
references to Secrets. The account mounts no token unless a pod insists on it. One that is in the
target already is used as it is. Unlike claims, an account has nothing to lose, so it goes with its
last pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import keys, kinds
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.family import Family, FamilyContext, Original
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor


class ServiceAccounts(Family):
    """The family of service accounts; the references of pods are the only originals."""

    carried = (kinds.SERVICE_ACCOUNTS,)
    setting = "following.configMapsAndSecrets"
    role = "vnode-source-service-accounts"

    def __init__(self, context: FamilyContext, references: ReferenceIndex) -> None:
        self._identity = context.identity
        self._references = references

    @property
    def denial_cure(self) -> str:
        return (
            f"bind ClusterRole {self.role} to this source there, or take annotation "
            f"{keys.CREATE_SERVICE_ACCOUNTS} off the Target"
        )

    async def open(self, _tasks: Supervisor) -> None:
        """Begin; there is nothing to watch but the pods."""

    def serves(self, link: Link) -> bool:
        """Tell whether the Target asks for accounts."""
        return link.options.create_service_accounts

    def need(self, key: Key, link: Link) -> Need:
        return self._references.need(key, link)

    def keys_on(self, node: str) -> Iterator[Key | None]:
        return self._references.keys_on(node)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        return self._references.involved_objects(key)

    async def original(self, _ref: Ref, _link: Link, _copy: Object | None) -> Original:
        """Return what stands for an original: a pod that names an account needs one."""
        return Original("", "", "")

    async def build(self, ref: Ref, _original: Original, _link: Link) -> Object:
        return account(ref, self._identity)

    def is_up_to_date(self, _ref: Ref, _copy: Object, _original: Original) -> bool:
        """Accept any content: an account is never updated."""
        return True

    def is_equivalent(self, _other: Object, _original: Original) -> bool:
        """Accept an account that somebody else created: it is meant to be used."""
        return True


def account(ref: Ref, identity: Identity) -> Object:
    """Build an account without rights, marked as made for pods of this cluster. Pure."""
    named = {"metadata": {"name": ref.name, "namespace": ref.namespace}}
    return {
        "metadata": copies.metadata(named, identity),
        "automountServiceAccountToken": False,
    }
