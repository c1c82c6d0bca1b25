"""Decides what becomes of Secrets that are tokens of service accounts, which pods mount.

Such a Secret never follows: another cluster knows neither the account nor the signature. It decides
as which account a program speaks, so no other token stands in for it. A Target that asks for tokens
of the source gets one for the same account. Any other target is not used, unless somebody there has
made a Secret of that name.

A token is made for no account but the one for which the Secret itself has a token that the API
server accepts: whoever may create a Secret or write its annotations has no more of an account by
it than he had.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from vnode.api import account_users, keys, kinds, objects, service_tokens
from vnode.api.errors import ConfigError, NotFound
from vnode.api.objects import Object
from vnode.api.service_tokens import SecretUse
from vnode.following.references import Ref
from vnode.kube.client import Client
from vnode.runtime.link import Link

_ACCOUNT: Final = "kubernetes.io/service-account.name"


class TokenSecret(NamedTuple):
    """A Secret of the source that holds a token, and its account."""

    name: str
    uid: str
    account: str


Holders = Mapping[str, TokenSecret]
"""By name of the Secret."""


class TokenSecrets:
    """Finds the Secrets that are tokens of service accounts.

    `is_token` tells it of one Secret; with True as its second argument, also of one that no
    informer has seen yet.
    """

    def __init__(self, local: Client, is_token: Callable[[Ref, bool], Awaitable[bool]]) -> None:
        self._local = local
        self._is_token = is_token

    async def admit(self, pod: Object, link: Link) -> tuple[Holders, str]:
        """Return the Secrets for which the target gets tokens, and a note for the pod's user.

        Raises ConfigError if the pod would have less in the target, or somebody else's token.
        """
        holders: dict[str, TokenSecret] = {}
        notes = []
        for use in await self._uses(pod):
            if use.renewed and link.options.source_api is not None:
                holders[use.name] = await self._prove(pod, use.name)
            elif not await _exists(use.name, objects.namespace(pod), link):
                if not use.optional:
                    raise ConfigError(await self._refusal(pod, use, link))

                notes.append(await self._refusal(pod, use, link))

        return holders, "; ".join(dict.fromkeys(notes))

    async def holders(self, pod: Object) -> tuple[Holders, str]:
        """Return the Secrets for which a delegate pod has tokens, and why it has no more of some.

        One that was deleted since is left out: its token has ended with it.
        """
        holders: dict[str, TokenSecret] = {}
        problems = []
        for use in await self._uses(pod):
            try:
                if use.renewed:
                    holders[use.name] = await self._prove(pod, use.name)
            except ConfigError as error:
                problems.append(str(error))

        return holders, "; ".join(problems)

    async def _uses(self, pod: Object) -> list[SecretUse]:
        namespace = objects.namespace(pod)
        return [
            use
            for use in dict.fromkeys(service_tokens.secret_uses(objects.spec(pod)))
            if await self._is_token(Ref(kinds.SECRETS, namespace, use.name), not use.optional)
        ]

    async def _prove(self, pod: Object, name: str) -> TokenSecret:
        """Return whose token a Secret is, as the API server itself says."""
        namespace = objects.namespace(pod)
        secret = await self._local.get(kinds.SECRETS, name, namespace)
        account, token = _account(secret), _token(secret)
        user = await self._user(token) if token else ""
        if user != account_users.user_of(namespace, account):
            raise ConfigError(
                f"Secret {name} holds no valid token of service account {account or 'unknown'}: "
                "see that the account exists, and delete the Secret and create it again, for the "
                "token controller to fill it in"
            )

        return TokenSecret(name, objects.uid(secret), account)

    async def _user(self, token: str) -> str:
        """Return whom the API server takes the token's bearer for; "" for nobody."""
        head = {"apiVersion": kinds.TOKEN_REVIEWS.api_version, "kind": kinds.TOKEN_REVIEWS.kind}
        review = {**head, "spec": {"token": token}}
        status = objects.status(await self._local.create(kinds.TOKEN_REVIEWS, review))
        user = (status.get("user") or {}).get("username")
        return str(user or "") if status.get("authenticated") else ""

    async def _refusal(self, pod: Object, use: SecretUse, link: Link) -> str:
        secret = await self._local.get(kinds.SECRETS, use.name, objects.namespace(pod))
        text = f"Secret {use.name} is the token of service account {_account(secret)}"
        if link.options.source_api is not None:
            return (
                f"{text}, which would end in a variable or below a subPath: mount it as a volume, "
                f"or create a Secret of that name in target {link.target.name}"
            )

        return (
            f"{text}, and such Secrets do not follow: have target {link.target.name} ask for "
            f"tokens, by the annotation {keys.TOKENS}, run the pod as that account, or create a "
            "Secret of that name in the target"
        )


def _account(secret: Object) -> str:
    return objects.annotations(secret).get(_ACCOUNT, "")


def _token(secret: Object) -> str:
    """Return the token; "" if the controller has not written it yet, or somebody has spoilt it."""
    try:
        held = str((secret.get("data") or {}).get(service_tokens.TOKEN) or "")
        return base64.b64decode(held, validate=True).decode()
    except (binascii.Error, UnicodeError):
        return ""


async def _exists(name: str, namespace: str, link: Link) -> bool:
    try:
        await link.client.get(kinds.SECRETS, name, namespace)
    except NotFound:
        return False

    return True
