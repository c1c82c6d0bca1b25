"""Makes what an account needs in a target: account, roles, bindings; and checks what is there.

Each step changes only what differs, so it can be done any number of times. What is made has the
label `vnode.dev/issued` with the UID of its request, and a label for each request that uses it. By
these it is told, when a request goes, what is to go with it (`revocation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Unreachable,
    VnodeError,
)
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.issuing.request import IssueSpec, RequestedRole
from vnode.issuing.rights import AuthorRights
from vnode.issuing.steps import IssueStep, StepFailed
from vnode.kube.client import Client

AUTHOR_MAY_NOT: Final = "AuthorMayNot"
FORBIDDEN: Final = "Forbidden"
_BEING_DELETED: Final = "because it is being terminated"


def reason_of(error: VnodeError) -> str:
    """Return the reason of a condition for an error of a target."""
    match error:
        case Denied():
            return FORBIDDEN
        case Invalid():
            return "Invalid"
        case NotFound():
            return "NotFound"
        case Unreachable():
            return "TargetUnreachable"
        case _:
            return "TargetFailed"


class TargetSetup:
    """Carries out a request in a target, with the Target's own client."""

    def __init__(self, target: Client, rights: AuthorRights, spec: IssueSpec, about: str) -> None:
        self._target = target
        self._rights = rights
        self._spec = spec
        self._annotations = {keys.ISSUED: about}

    async def account(self) -> tuple[str, str]:
        """Find or make the service account; return the reason and message of the condition."""
        namespace, name = self._spec.account
        step, kind = IssueStep.ACCOUNT, kinds.SERVICE_ACCOUNTS
        found = await self._find(step, kind, name, namespace)
        where = f"service account {namespace}/{name}"
        if found is None:
            await self._create(step, kind, {"metadata": self._metadata(name, namespace)})
            return "ServiceAccountCreated", f"{where} was created"

        if objects.is_terminating(found):
            raise StepFailed(step, "ServiceAccountMarkedForDeletion", f"{where} is being deleted")

        await self._share(step, kind, found)
        return "ServiceAccountFound", f"{where} exists"

    async def roles(self, step: IssueStep, roles: Sequence[RequestedRole]) -> str:
        """Find or make roles; return the message of the condition."""
        made = [await self._role(step, role) for role in roles]
        return f"{len(roles)} roles: {made.count(False)} found, {made.count(True)} created"

    async def bindings(self, step: IssueStep, roles: Sequence[RequestedRole]) -> str:
        """Bind the account to roles; return the message of the condition."""
        for role in roles:
            await self._binding(step, role)

        return f"{len(roles)} roles are bound"

    async def _role(self, step: IssueStep, role: RequestedRole) -> bool:
        """Find or make a role; return whether it is of our making."""
        found = await self._find(step, role.kind, role.name, role.namespace)
        if found is not None and not self._is_ours(found):
            # It is bound as it is, so what it allows now is what counts.
            rules = found.get("rules") or ()
            await self._check(step, role, rules, "bind")
            await self._share(step, role.kind, found)
            return False

        if not role.rules:
            message = f"{role} does not exist, and the request has no rules to make it of"
            raise StepFailed(step, "RoleNotFound", message)

        await self._check(step, role, role.rules, "escalate")
        rules = list(role.rules)
        if found is None:
            metadata = self._metadata(role.name, role.namespace)
            await self._create(step, role.kind, {"metadata": metadata, "rules": rules})
        elif found.get("rules") != rules:
            await self._patch(step, role.kind, found, {"rules": rules})

        return True

    async def _check(
        self, step: IssueStep, role: RequestedRole, rules: Sequence[Object], verb: str
    ) -> None:
        if lacking := await self._rights.lacks(role, rules, verb):
            raise StepFailed(step, AUTHOR_MAY_NOT, f"cannot grant {role}: {lacking}")

    async def _binding(self, step: IssueStep, role: RequestedRole) -> None:
        name, kind = self._spec.binding_name(role), role.binding_kind
        namespace, account = self._spec.account
        subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
        reference = {"apiGroup": role.kind.group, "kind": role.kind.kind, "name": role.name}
        found = await self._find(step, kind, name, role.namespace)
        if found is None:
            metadata = self._metadata(name, role.namespace)
            body = {"metadata": metadata, "roleRef": reference, "subjects": subjects}
            await self._create(step, kind, body)
        elif not self._is_ours(found) or found.get("roleRef") != reference:
            message = f"there is a {kind.kind} {name} that vnode has not made: delete it"
            raise StepFailed(step, "NotOurs", message)
        elif found.get("subjects") != subjects:
            await self._patch(step, kind, found, {"subjects": subjects})

    def _is_ours(self, obj: Object) -> bool:
        """Tell whether an object was made for this request."""
        return objects.labels(obj).get(keys.ISSUED) == self._spec.uid

    async def _share(self, step: IssueStep, kind: Kind, found: Object) -> None:
        """Have what another request has made stay while this one uses it."""
        labels = objects.labels(found)
        if keys.ISSUED in labels and self._spec.label not in labels:
            await self._patch(step, kind, found, {"metadata": {"labels": {self._spec.label: ""}}})

    def _metadata(self, name: str, namespace: str) -> Object:
        labels = {keys.ISSUED: self._spec.uid, self._spec.label: ""}
        metadata: Object = {"name": name, "labels": labels, "annotations": self._annotations}
        return {**metadata, "namespace": namespace} if namespace else metadata

    async def _find(self, step: IssueStep, kind: Kind, name: str, namespace: str) -> Object | None:
        try:
            return await self._target.get(kind, name, namespace or None)
        except NotFound:
            return None
        except VnodeError as error:
            raise _failed(step, error) from error

    async def _create(self, step: IssueStep, kind: Kind, body: Object) -> None:
        """Make an object, and its namespace if there is none."""
        namespace = objects.namespace(body)
        try:
            try:
                await self._target.create(kind, body)
            except NotFound:
                if not namespace:
                    raise

                await self._make_namespace(namespace)
                await self._target.create(kind, body)
        except VnodeError as error:
            raise _failed(step, error) from error

    async def _make_namespace(self, name: str) -> None:
        metadata = {"name": name, "labels": {keys.ISSUED: self._spec.uid}}
        try:
            await self._target.create(
                kinds.NAMESPACES, {"metadata": {**metadata, "annotations": self._annotations}}
            )
        except AlreadyExists:
            return  # somebody else was faster

    async def _patch(self, step: IssueStep, kind: Kind, obj: Object, body: Object) -> None:
        """Patch exactly the object that was read."""
        name, namespace = objects.name(obj), objects.namespace(obj) or None
        try:
            await self._target.patch(kind, name, objects.if_unchanged(body, obj), namespace)
        except (Conflict, NotFound) as error:
            raise StepFailed(
                step, "Conflict", f"{kind.kind} {name} has changed meanwhile"
            ) from error
        except VnodeError as error:
            raise _failed(step, error) from error


def _failed(step: IssueStep, error: VnodeError) -> StepFailed:
    if step is IssueStep.ACCOUNT and _BEING_DELETED in str(error):
        return StepFailed(step, "ServiceAccountNamespaceMarkedForDeletion", str(error))

    return StepFailed(step, reason_of(error), str(error))
