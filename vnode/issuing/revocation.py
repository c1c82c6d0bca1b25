"""Takes away, in a target, what was made for a request: bindings, then roles, then the account.

Nothing goes that has not our label and the UID of the request, nothing that another request uses,
and never a namespace.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.issuing.request import IssueSpec
from vnode.kube.client import Client

_ATTEMPTS: Final = 5  # for an object that others change meanwhile


async def revoke(target: Client, spec: IssueSpec) -> None:
    """Take all of it away; a VnodeError says why something is left."""
    roles = (*spec.roles, *spec.cluster_roles)
    for role in roles:
        name = spec.binding_name(role)
        await _release(target, role.binding_kind, name, role.namespace, spec.label)

    for role in roles:
        await _release(target, role.kind, role.name, role.namespace, spec.label)

    namespace, account = spec.account
    await _release(target, kinds.SERVICE_ACCOUNTS, account, namespace, spec.label)


async def _release(target: Client, kind: Kind, name: str, namespace: str, label: str) -> None:
    """Delete an object that is ours, unless another request uses it: then leave it to that one.

    That one may end at the same time, so look again if the object has changed.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            await _release_as_read(target, kind, name, namespace, label)
        except Conflict:
            if not attempts_left:
                raise
        else:
            return


async def _release_as_read(
    target: Client, kind: Kind, name: str, namespace: str, label: str
) -> None:
    """Release the object as it is now; Conflict if it changes meanwhile."""
    try:
        found = await target.get(kind, name, namespace or None)
    except NotFound:
        return

    labels = objects.labels(found)
    if keys.ISSUED not in labels or label not in labels:
        return

    if _is_shared(labels, label):
        await _leave(target, kind, found, label)
    else:
        # As it was read: another request may join it meanwhile.
        version = objects.resource_version(found)
        with suppress(NotFound):
            await target.delete(
                kind, name, namespace or None, uid=objects.uid(found), version=version
            )


def _is_shared(labels: dict[str, str], label: str) -> bool:
    return any(key.startswith(keys.ISSUED_FOR) and key != label for key in labels)


async def _leave(target: Client, kind: Kind, found: Object, label: str) -> None:
    body = objects.if_unchanged({"metadata": {"labels": {label: None}}}, found)
    name, namespace = objects.name(found), objects.namespace(found) or None
    with suppress(NotFound):
        await target.patch(kind, name, body, namespace)
