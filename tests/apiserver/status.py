"""The errors that an API server answers with, as metav1.Status.

The server raises them, and the in-memory client turns them into the classes of `vnode.api.errors`,
as `vnode.kube.answers` does with what comes over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping

from vnode.api import errors
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import answers


class StatusError(Exception):
    """An error answer; `causes` are the messages of its details, by field."""

    def __init__(
        self, code: int, reason: str, message: str, causes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = dict(causes or {})

    def body(self) -> Object:
        """Build the metav1.Status."""
        status: Object = {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
        }
        if self.causes:
            causes = [{"field": field, "message": text} for field, text in self.causes.items()]
            status["details"] = {"causes": causes}

        return status

    def error(self) -> errors.ApiError:
        """Build the exception that a client raises for it."""
        return answers.refusal(self.code, self.body())


def not_found(kind: Kind, name: str) -> StatusError:
    """Build the error for an object that is not there."""
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found')


def unknown_path() -> StatusError:
    """Build the error for a path that the server does not serve."""
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> StatusError:
    """Build the error for a create that lost against an earlier one."""
    return StatusError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists')


def conflict(kind: Kind, name: str, why: str) -> StatusError:
    """Build the error for a write that does not fit the object's present state."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(409, "Conflict", message)


def modified(kind: Kind, name: str) -> StatusError:
    """Build the Conflict for a resource version that is not the present one."""
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and "
        "try again",
    )


def precondition(kind: Kind, name: str, what: str, wanted: str, found: str) -> StatusError:
    """Build the Conflict for a precondition that does not hold."""
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return conflict(kind, name, why)


def invalid(kind: Kind, name: str, field: str, cause: str) -> StatusError:
    """Build the error for an object with a wrong field."""
    message = f'{kind.kind} "{name}" is invalid: {field}: {cause}'
    return StatusError(422, "Invalid", message, {field: cause})


def bad_request(message: str) -> StatusError:
    """Build the error for a request that cannot be understood."""
    return StatusError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """Build the error for a request that admission or authorization refuses."""
    return StatusError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}')


def expired(message: str = "The resourceVersion for the provided list is too old.") -> StatusError:
    """Build the error for a version that was compacted away."""
    return StatusError(410, "Expired", message)


def success(**details: str) -> Object:
    """Build the answer of a request that has no object to show."""
    status: Object = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success"}
    return {**status, "details": details} if details else status
