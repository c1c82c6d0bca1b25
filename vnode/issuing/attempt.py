"""Goes all steps of one request, in order, up to the first that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import keys, kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ConfigError, Conflict, Denied, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.issuing import setup, token_secret
from vnode.issuing.request import PROFILES, IssueSpec
from vnode.issuing.rights import AuthorRights
from vnode.issuing.setup import TargetSetup
from vnode.issuing.steps import IssueProgress, IssueStep, StepFailed
from vnode.issuing.token_secret import TokenPlace
from vnode.kube import account_tokens
from vnode.kube.client import Client
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING, OTHER_CLUSTER
from vnode.targets import token_renewal
from vnode.targets.token_renewal import ManagedToken

SECRETS_ROLE = "vnode-issued-secrets"
"""The ClusterRole that lets the agent write Secrets, where an operator binds it."""


class IssuePlace(NamedTuple):
    """The Target that a request means, if it `is_known`, and its link, if it is connected."""

    is_known: bool
    link: Link | None

    @property
    def answering(self) -> Link | None:
        """The link if it answers, and its cluster is known to be the one that the Target was."""
        link = self.link
        if link is None or not link.answers:
            return None

        return None if link.health.reason in (CONNECTING, OTHER_CLUSTER) else link

    def check_known(self, spec: IssueSpec) -> None:
        """Raise StepFailed if there is no such Target."""
        if self.is_known:
            return

        is_profile = spec.cluster.kind == PROFILES
        reason = "InvalidTargetClusterProfile" if is_profile else "TargetNotFound"
        what = "no Target references" if is_profile else "there is no"
        raise StepFailed(IssueStep.VALID, reason, f"{what} {spec.cluster}")

    def usable(self, spec: IssueSpec) -> Link:
        """Return the link, by which requests may be sent now; StepFailed if there is none."""
        if (link := self.answering) is not None:
            return link

        why = f": {self.link.health.message}" if self.link is not None else " yet"
        text = f"{spec.cluster} does not answer{why}"
        raise StepFailed(IssueStep.ACCOUNT, "TargetUnreachable", text)


NOWHERE: Final = IssuePlace(False, None)
"""The place of a request whose Target is gone for good."""


class IssueGrant(NamedTuple):
    """The token that a request's Secret holds; the Secret before and after, if it was written."""

    token: ManagedToken
    before: Object | None = None
    after: Object | None = None
    is_new: bool = False


class IssueAttempt:
    """Carries out a request once."""

    def __init__(
        self, local: Client, authors: RecordedAuthors, clock: Clock, written: Expectations
    ) -> None:
        self._local = local
        self._authors = authors
        self._clock = clock
        self._written = written

    async def run(
        self,
        obj: Object,
        spec: IssueSpec,
        place: IssuePlace,
        progress: IssueProgress,
        is_due: Callable[[ManagedToken], bool],
    ) -> IssueGrant:
        """Go the steps; StepFailed says which one could not be done, and why."""
        place.check_known(spec)
        rights = await self._check(obj, spec)
        progress.done(IssueStep.VALID, "Valid", "its author is authorized to request this token")
        link = place.usable(spec)
        await self._keep_until_revoked(obj)
        target = TargetSetup(link.client, rights, spec, objects.key(obj))
        progress.done(IssueStep.ACCOUNT, *await target.account())
        for step, roles, reason in (
            (IssueStep.ROLES, spec.roles, "RoleSetupSucceeded"),
            (IssueStep.CLUSTER_ROLES, spec.cluster_roles, "ClusterRoleSetupSucceeded"),
        ):
            progress.done(step, reason, await target.roles(step, roles))

        for step, roles, reason in (
            (IssueStep.ROLE_BINDINGS, spec.roles, "RoleBindingSucceeded"),
            (IssueStep.CLUSTER_ROLE_BINDINGS, spec.cluster_roles, "ClusterRoleBindingSucceeded"),
        ):
            progress.done(step, reason, await target.bindings(step, roles))

        progress.cluster_uid = link.cluster_uid or ""
        grant = await self._token(obj, spec, link, is_due)
        name = objects.name(obj)
        progress.done(IssueStep.TOKEN, "TokenRetrieved", f"the token is in Secret {name}")
        return grant

    async def _check(self, obj: Object, spec: IssueSpec) -> AuthorRights:
        """Return what is asked about its author, who may have anything issued at all."""
        author = self._authors.author(obj)
        if author is None:
            raise StepFailed(
                IssueStep.VALID,
                "AuthorUnknown",
                "its author is unknown: vnode's webhook was not called when it was created, or "
                "more than 30 s before, or its key has been replaced; delete the request, and "
                "create it again",
            )

        rights = AuthorRights(self._local, author)
        if lacking := await rights.lacks_to_issue(spec):
            raise StepFailed(IssueStep.VALID, setup.AUTHOR_MAY_NOT, lacking)

        return rights

    async def _keep_until_revoked(self, obj: Object) -> None:
        """Have the request stay, once it is deleted, until what it was given is taken away."""
        present = objects.finalizers(obj)
        if keys.ISSUED_TOKEN in present:
            return

        body = objects.finalizers_patch(obj, [*present, keys.ISSUED_TOKEN])
        kind = kinds.AUTH_TOKEN_REQUESTS
        if await self._written.patch(self._local, kind, obj, body) is None:
            raise StepFailed(IssueStep.VALID, "Deleted", "it is gone")

    async def _token(
        self, obj: Object, spec: IssueSpec, link: Link, is_due: Callable[[ManagedToken], bool]
    ) -> IssueGrant:
        place = TokenPlace.of(link.client.endpoint, link.cluster_uid or "")
        before = await self._present(obj)
        token = token_secret.token_of(before, place, spec)
        if is_new := token is None or is_due(token):
            token = await self._request(link.client, spec)

        wanted = token_secret.build(obj, place, spec, token.text)
        if before is not None and before.get("data") == wanted["data"]:
            return IssueGrant(token)

        try:
            after = await self._put(before, wanted)
        except Denied as error:
            text = (
                f"the agent may not write Secrets in namespace {objects.namespace(obj)}: bind "
                f"ClusterRole {SECRETS_ROLE} to it there ({error.message})"
            )
            raise StepFailed(IssueStep.TOKEN, setup.FORBIDDEN, text) from error
        except (AlreadyExists, Conflict, NotFound) as error:
            text = f"the Secret has changed meanwhile: {error.message}"
            raise StepFailed(IssueStep.TOKEN, "Conflict", text) from error

        return IssueGrant(token, before, after, is_new)

    async def _present(self, obj: Object) -> Object | None:
        """Return the Secret of a request; StepFailed if the name is taken by another one."""
        try:
            found = await self._local.get(kinds.SECRETS, objects.name(obj), objects.namespace(obj))
        except NotFound:
            return None

        if not token_secret.is_of(found, obj):
            text = (
                f"there is a Secret {objects.name(obj)} that was not made for this request: delete "
                "it, or give the request another name"
            )
            raise StepFailed(IssueStep.TOKEN, "SecretNotOurs", text)

        return found

    async def _request(self, client: Client, spec: IssueSpec) -> ManagedToken:
        wanted: Object = {"expirationSeconds": spec.life}
        if spec.audience:
            wanted["audiences"] = [spec.audience]

        now = self._clock.now()
        try:
            granted = await account_tokens.request(client, *spec.account, wanted)
            asked = ManagedToken("", spec.account, now, now, spec.life)
            token_renewal.check_granted(asked, granted.text, now)
        except ConfigError as error:
            raise StepFailed(IssueStep.TOKEN, "TokenRefused", str(error)) from error
        except VnodeError as error:
            raise StepFailed(IssueStep.TOKEN, setup.reason_of(error), str(error)) from error

        token = token_renewal.read(granted.text, spec.life)
        if token is None:
            text = "the target's token does not say how long it lives"
            raise StepFailed(IssueStep.TOKEN, "TokenRefused", text)

        return token

    async def _put(self, before: Object | None, wanted: Object) -> Object:
        if before is None:
            return await self._local.create(kinds.SECRETS, wanted)

        gone = {key: None for key in before.get("data") or {} if key not in wanted["data"]}
        annotations = {"annotations": objects.annotations(wanted)}
        body = {"metadata": annotations, "data": {**gone, **wanted["data"]}}
        name, namespace = objects.name(before), objects.namespace(before)
        patch = objects.if_unchanged(body, before)
        return await self._local.patch(kinds.SECRETS, name, patch, namespace)
