"""Situations whose words have in them those of something else: policies and images say anything."""

from __future__ import annotations

from typing import Final

from tests.unit.cli.situation_cases import Case, nowhere, sent
from tests.unit.cli.situations import waiting

FORBIDDEN: Final = 'pods "web" is forbidden: '
NAMES_IT: Final = "the text names what refuses it"
DIGEST: Final = "r.example/app@sha256:ab401f429c403"


def denied(text: str, *unsaid: str) -> Case:
    """Return the case of a webhook of the target that denies the pod in its own words."""
    said = f'admission webhook "validate.kyverno.svc" denied the request: {text}'
    return nowhere(said, NAMES_IT, unsaid=unsaid)


def forbidden(text: str, cure: str, *unsaid: str) -> Case:
    return nowhere(f"{FORBIDDEN}{text}", cure, unsaid=unsaid)


def unpulled(image: str, message: str, cure: str, *unsaid: str) -> Case:
    return sent(
        "container main: ErrImagePull",
        cure,
        status=waiting("ErrImagePull", message),
        unsaid=unsaid,
        containers=[{"name": "main", "image": image}],
    )


MISLEADING: Final[dict[str, Case]] = {
    "a policy about service accounts": denied(
        "pods must not use the default service account", "create the service account"
    ),
    "a policy about host ports": denied("host ports are not allowed", "other pods have"),
    "a policy about classes": denied("a PriorityClass is required", "create the class"),
    "a ValidatingAdmissionPolicy about classes": forbidden(
        "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no RuntimeClass",
        NAMES_IT,
        "create the class",
    ),
    "a constraint of OpenShift": forbidden(
        'unable to validate against any security context constraint: [provider "anyuid": '
        "Forbidden: not usable by user or serviceaccount]",
        "oc adm policy add-scc-to-user NAME -z ACCOUNT",
        "create the service account",
    ),
    "a quota for some scopes only": forbidden(
        "insufficient quota to match these scopes: [{PriorityClass In [urgent]}]",
        "make a ResourceQuota of the scopes [{PriorityClass In [urgent]}]",
        "add nodes",
        "create the class",
    ),
    "a priority that the target computes otherwise": forbidden(
        "the integer value of priority (0) must not be provided in pod spec; priority admission "
        "controller computed 1000 from the given PriorityClass name",
        NAMES_IT,
        "create the class",
    ),
    "a digest with numbers of HTTP in it": unpulled(
        DIGEST,
        f'failed to resolve reference "{DIGEST}": {DIGEST}: not found',
        "correct the image of the pod",
        "takes no more requests",
        "pull secret",
    ),
    "a tag that is a number of HTTP": unpulled(
        "app:429",
        'failed to resolve reference "docker.io/library/app:429": docker.io/library/app:429: not '
        "found",
        "correct the image of the pod",
        "takes no more requests",
    ),
    "an image that is named after certificates": unpulled(
        "jetstack/certificate-manager:1",
        "docker.io/jetstack/certificate-manager:1: not found",
        "correct the image of the pod",
        "trust the certificate",
    ),
    "a registry that asks for patience": unpulled(
        "app:1",
        "unexpected status from GET request to https://registry/v2/x: 429 Too Many Requests",
        "takes no more requests for now",
    ),
    "a registry without TLS": unpulled(
        "app:1", "http: server gave HTTP response to HTTPS client", "serve HTTPS"
    ),
}
