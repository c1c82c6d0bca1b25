"""From a request to the read or write that it asks for; synchronous, so that each is one step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from tests.apiserver import patches, resources, status
from tests.apiserver.applying import FieldManagers
from tests.apiserver.reading import Reader
from tests.apiserver.requests import APIRequest
from tests.apiserver.writing import ObjectWriter
from tests.unsigned_tokens import jwt
from vnode.api import account_users, kinds, objects
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH

if TYPE_CHECKING:
    from tests.apiserver.server import Admission

_VERSION: Final = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}
_SHORTEST_TOKEN: Final = 600  # seconds


class Dispatcher:
    """Answers requests; StatusError for those that fail."""

    def __init__(self, reader: Reader, writer: ObjectWriter, clock: Clock) -> None:
        self.admissions: list[Admission] = []
        self._reader = reader
        self._writer = writer
        self._clock = clock
        self._managers = FieldManagers()
        self.refused: set[tuple[str, str]] = set()  # verb and resource, for reviews of access
        self.users: dict[str, str] = {}  # by token

    def begin(self, request: APIRequest) -> bool:
        """Do the first of the two steps that a request has; False if it has only one."""
        if (request.verb, request.kind, request.subresource) != ("delete", kinds.PODS, ""):
            return False

        return not request.is_dry_run and self._writer.end_grace(request.key, request.body)

    def answer(self, request: APIRequest) -> Any:
        """Carry out a request."""
        kind = request.kind
        if kind is None:
            return _discovery(request.path)

        match request.verb:
            case "get":
                return self._reader.get(request, kind)
            case "list":
                return self._reader.list(request, kind)
            case "create":
                return self._create(request, kind)
            case "update":
                return self._update(request, kind, lambda old: _replaced(kind, old, request.body))
            case "patch":
                return self._patch(request, kind)
            case "delete" if request.name and not request.subresource:
                return self._delete(request, kind)
            case _:
                raise status.StatusError(405, "MethodNotAllowed", "the method is not allowed")

    def _create(self, request: APIRequest, kind: Kind) -> Object:
        if kind == kinds.TOKEN_REVIEWS:
            return {**request.body, "status": self._reviewed(objects.spec(request.body))}

        if kind in resources.REVIEWS:
            return {**request.body, "status": {"allowed": self._allows(request.body)}}

        if kind is resources.BINDINGS:
            return self._bind(f"{request.namespace}/{objects.name(request.body)}", request)

        match kind, request.subresource:
            case _, "":
                return self._writer.create(
                    kind,
                    self._admitted(request, request.body),
                    request.namespace,
                    dry=request.is_dry_run,
                )
            case kinds.PODS, "binding":
                return self._bind(request.key, request)
            case kinds.PODS, "eviction":
                options = request.body.get("deleteOptions")
                dry = request.is_dry_run or (options or {}).get("dryRun") == ["All"]
                self._writer.delete(kind, request.key, options, dry=dry)
                return status.success()
            case kinds.SERVICE_ACCOUNTS, "token":
                return self._token(request, kind)
            case _:
                raise status.unknown_path()

    def _bind(self, key: str, request: APIRequest) -> Object:
        self._writer.bind(key, request.body)
        return status.success()

    def _token(self, request: APIRequest, kind: Kind) -> Object:
        self._reader.get(request, kind)
        spec = {"expirationSeconds": 3600, **objects.spec(request.body)}
        if spec["expirationSeconds"] < _SHORTEST_TOKEN:
            cause = "Invalid value: may not specify a duration less than 10 minutes"
            raise status.invalid(kind, request.name, "spec.expirationSeconds", cause)

        self._check_bound(request, kind, spec.get("boundObjectRef") or {})
        user, now = account_users.user_of(request.namespace, request.name), self._clock.now()
        ends = now + timedelta(seconds=spec["expirationSeconds"])
        life = {"iat": int(now.timestamp()), "exp": int(ends.timestamp())}
        token = jwt(iss="https://memory.invalid", sub=user, jti=len(self.users), **life)
        self.users[token] = user
        answer = {"token": token, "expirationTimestamp": objects.timestamp(ends)}
        return {**request.body, "spec": spec, "status": answer}

    def _allows(self, review: Object) -> bool:
        spec = objects.spec(review)
        asked = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
        parts = asked.get("resource", asked.get("path", "")), asked.get("subresource", "")
        return (asked.get("verb", ""), "/".join(filter(None, parts))) not in self.refused

    def _reviewed(self, spec: Object) -> Object:
        """Answer whose token it is, whenever it ends and whatever it is for."""
        if not spec.get("token"):
            raise status.bad_request("token is required for TokenReview in authentication")

        user = self.users.get(spec["token"])
        return {"authenticated": True, "user": {"username": user}} if user else {"user": {}}

    def _check_bound(self, request: APIRequest, kind: Kind, bound: Object) -> None:
        """Refuse a token for a pod or Secret that is not there, or for a pod that is another's."""
        held = {each.kind: each for each in (kinds.PODS, kinds.SECRETS)}.get(bound.get("kind", ""))
        if held is None:
            return

        obj = self._writer.present(held, f"{request.namespace}/{bound['name']}")
        if bound.get("uid", objects.uid(obj)) != objects.uid(obj):
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID"
            raise status.conflict(kind, request.name, why)

        account = objects.spec(obj).get("serviceAccountName")
        if held == kinds.PODS and account != request.name:
            raise status.bad_request(
                f"cannot bind token for serviceaccount {request.name!r} to pod running with "
                f"different serviceaccount name"
            )

    def _patch(self, request: APIRequest, kind: Kind) -> Object:
        body = request.body
        match request.content_type:
            case content if content == MERGE_PATCH:
                return self._update(request, kind, lambda old: patches.merge(old, body))
            case content if content == STRATEGIC_PATCH and not resources.is_custom(kind):
                return self._update(request, kind, lambda old: patches.strategic(old, body))
            case content if content == APPLY_PATCH:
                return self._apply(request, kind)
            case "application/json-patch+json":
                return self._update(request, kind, lambda old: _patched(kind, old, body))
            case other:
                message = f"the body of the request was in an unknown format: {other}"
                raise status.StatusError(415, "UnsupportedMediaType", message)

    def _apply(self, request: APIRequest, kind: Kind) -> Object:
        body, manager = request.body, request.query.get("fieldManager", "")
        if not manager:
            raise status.bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required")

        if request.subresource:  # whoever applies to several of them is a manager in each
            manager = f'{manager}" with subresource "{request.subresource}'

        force = request.query.get("force") == "true"

        def change(old: Object) -> Object:
            return self._managers.apply(kind, old, body, manager, force=force)

        try:
            answer = self._update(request, kind, change)
        except status.StatusError as error:
            if error.code != 404 or request.subresource:
                raise

            obj = self._admitted(request, body)
            answer = self._writer.create(kind, obj, request.namespace, dry=request.is_dry_run)

        if not request.is_dry_run:
            self._managers.record(objects.uid(answer), body, manager)

        return answer

    def _update(
        self, request: APIRequest, kind: Kind, change: Callable[[Object], Object]
    ) -> Object:
        return self._writer.update(
            kind,
            request.key,
            lambda old: self._admitted(request, change(old)),
            subresource=request.subresource,
            is_patch=request.verb == "patch",
            dry=request.is_dry_run,
        )

    def _delete(self, request: APIRequest, kind: Kind) -> Object:
        obj, gone = self._writer.delete(kind, request.key, request.body, dry=request.is_dry_run)
        if not gone:
            return obj

        return status.success(name=request.name, kind=kind.plural, uid=objects.uid(obj))

    def _admitted(self, request: APIRequest, obj: Object) -> Object:
        for admission in self.admissions:
            obj = admission(request, obj)

        return obj


def _replaced(kind: Kind, old: Object, body: Object) -> Object:
    if resources.needs_version(kind) and not objects.resource_version(body):
        cause = "Invalid value: 0x0: must be specified for an update"
        raise status.invalid(kind, objects.name(old), "metadata.resourceVersion", cause)

    return body


def _patched(kind: Kind, old: Object, body: Any) -> Object:
    try:
        new: Object = jsonpatch.apply_patch(old, body)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise status.invalid(kind, objects.name(old), "", str(error)) from error

    return new


def _discovery(path: str) -> Object:
    if path == "/version":
        return dict(_VERSION)

    served = [kind for kind in resources.ALL if kind.path().rpartition("/")[0] == path]
    if not served:
        raise status.unknown_path()

    entries = [
        {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced} for kind in served
    ]
    version = served[0].api_version
    return {"kind": "APIResourceList", "groupVersion": version, "resources": entries}
