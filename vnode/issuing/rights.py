"""Finds what the author of a request may not do themselves, so that it is not done for them.

The API server of this cluster is asked: it knows its users, and the clusters behind Targets need
not. As in RBAC's own check of escalation, whoever makes a role must hold what it allows, or have
the verb `escalate` on it; whoever binds one that exists, what that allows, or the verb `bind`. What
the Target's own credentials may give comes on top of that, in the target
(docs/decisions/0055).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from vnode.api import kinds, objects
from vnode.api.authors import Author
from vnode.api.objects import Object
from vnode.issuing import request as requests
from vnode.issuing.config import IssuingConfig
from vnode.issuing.request import IssueSpec, RequestedRole
from vnode.kube.client import Client

MOST: Final = 400
"""Reviews for a role: one that allows more must be allowed by `bind` or `escalate`."""
_AT_CREATION: Final = 5.0
"""Seconds that the creation of a request waits for reviews, half of what its API server allows."""


def to_issue(spec: IssueSpec) -> list[Object]:
    """Return what an author must be allowed, whatever the roles are.

    That is to have credentials issued for the cluster, and to be the account, whose other rights
    nobody can foresee.
    """
    cluster, (namespace, name) = spec.cluster, spec.account
    issue = {
        "verb": "issue",
        "group": cluster.kind.group,
        "resource": cluster.kind.plural,
        "name": cluster.name,
    }
    if cluster.namespace:
        issue["namespace"] = cluster.namespace

    token = {"verb": "create", "group": "", "resource": "serviceaccounts", "subresource": "token"}
    return [issue, {**token, "namespace": namespace, "name": name}]


def waiver(role: RequestedRole, verb: str) -> Object:
    """Return the right, `bind` or `escalate`, that makes the single ones of a role needless."""
    kind = role.kind
    right = {"verb": verb, "group": kind.group, "resource": kind.plural, "name": role.name}
    return {**right, "namespace": role.namespace} if role.namespace else right


def singles(namespace: str, rules: Sequence[Object]) -> Iterator[Object]:
    """Yield the single rights that rules give in a namespace, "" for all namespaces."""
    for rule in rules:
        groups, listed = rule.get("apiGroups") or (), rule.get("resources") or ()
        if not (groups and listed):
            groups = listed = ()  # nobody has checked how long the other is

        for verb in rule.get("verbs") or ():
            if not namespace:  # a Role's rules about other paths mean nothing
                for path in rule.get("nonResourceURLs") or ():
                    yield {"verb": verb, "path": path}

            for group in groups:
                for resource in listed:
                    yield from _named(namespace, rule, verb, group, resource)


def _named(namespace: str, rule: Object, verb: str, group: str, resource: str) -> Iterator[Object]:
    plural, _, subresource = resource.partition("/")
    right = {"verb": verb, "group": group, "resource": plural}
    if subresource:
        right["subresource"] = subresource

    if namespace:
        right["namespace"] = namespace

    for name in rule.get("resourceNames") or ("",):
        yield {**right, "name": name} if name else right


def described(right: Object) -> str:
    """Return a right in the words of `kubectl auth can-i`."""
    if "path" in right:
        return f"{right['verb']} {right['path']}"

    resource = ".".join(filter(None, (right["resource"], right["group"])))
    parts = [right["verb"], "/".join(filter(None, (resource, right.get("subresource"))))]
    if name := right.get("name"):
        parts.append(f"named {name}")

    namespace = right.get("namespace")
    return " ".join(parts) + (f" in namespace {namespace}" if namespace else "")


class AuthorRights:
    """Asks this cluster what an author may do."""

    def __init__(self, client: Client, author: Author) -> None:
        self._client = client
        self._author = author

    async def lacks_to_issue(self, spec: IssueSpec) -> str:
        """Return what an author lacks to have anything issued by such a request; "" if nothing."""
        return await self._first_lacking(to_issue(spec))

    async def lacks(self, role: RequestedRole, rules: Sequence[Object], verb: str) -> str:
        """Return what an author lacks to give somebody a role with these rules; "" if nothing."""
        by_verb = waiver(role, verb)
        if await self._may(by_verb):
            return ""

        rights: list[Object] = []
        for right in singles(role.namespace, rules):
            rights.append(right)
            if len(rights) > MOST:
                return (
                    f"{self._author.username} may not {described(by_verb)}, and {role} has more "
                    f"than {MOST} single rights, which are too many to check"
                )

        lacking = await self._first_lacking(rights)
        return f"{lacking} (nor {described(by_verb)})" if lacking else ""

    async def lacks_to_make_roles(self, spec: IssueSpec) -> str:
        """Return what an author lacks to have the roles made that a request describes; "" if
        nothing. Who may bind a role may do so if it exists, which only the target knows."""
        for role in (*spec.roles, *spec.cluster_roles):
            if not role.rules or await self._may(waiver(role, "bind")):
                continue

            if lacking := await self.lacks(role, role.rules, "escalate"):
                return f"cannot grant {role}: {lacking}"

        return ""

    async def _first_lacking(self, rights: Sequence[Object]) -> str:
        for right in rights:
            if not await self._may(right):
                return f"{self._author.username} may not {described(right)}"

        return ""

    async def _may(self, right: Object) -> bool:
        review = {"spec": self._author.review(right)}
        answer = await self._client.create(kinds.SUBJECT_ACCESS_REVIEWS, review)
        return bool(objects.status(answer).get("allowed"))


def refusal(client: Client, config: IssuingConfig) -> Callable[[Object, Author], Awaitable[str]]:
    """Return what says why a request by an author is refused at its creation; "" if it is not.

    That is so if they may not give a role that is to be made. Roles that exist are looked at later,
    since that takes the target; and so are all where there are too many reviews to wait for.
    """

    async def refuse(obj: Object, author: Author) -> str:
        if not config.enabled:
            return "the agents of this cluster issue no tokens: issuing.enabled is false"

        spec = requests.decode(obj, config.max_expiration_seconds)
        rights = AuthorRights(client, author)
        if lacking := await rights.lacks_to_issue(spec):
            return lacking

        try:
            async with asyncio.timeout(_AT_CREATION):
                return await rights.lacks_to_make_roles(spec)
        except TimeoutError:
            return ""  # the request's condition says it

    return refuse
