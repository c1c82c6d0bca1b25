"""Checks what an agent serves: admission, and logs and exec by its virtual nodes. No I/O."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from vnode.api import keys, webhook_paths
from vnode.cli.doctor import cures
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level, Result, in_days
from vnode.runtime.certs import keypairs
from vnode.targets import conditions, model

CLOCK: Final = "clock"
CERTIFICATE: Final = "webhook certificate"
ADMISSION: Final = "admission"
KUBELETS: Final = "logs and exec"
OF_RUNNING_AGENTS: Final = frozenset((CERTIFICATE, ADMISSION, KUBELETS))
"""What fails while the agent does not run, whatever else there is."""

_NAMED: Final = re.compile(r'webhook "([^"]+)"')
_OURS: Final = ("multicluster.admiralty.io", "vnode.dev")
"""How names of vnode's own webhooks end."""

_SOON: Final = timedelta(days=1)  # webhook certificates are renewed long before


def webhook(facts: ClusterFacts) -> Result:
    """Check the configuration of the webhook."""
    if facts.webhook_denied:
        return Level.SKIP, "its configuration may not be read with these credentials", ""

    hook, *_ = (facts.webhook or {}).get("webhooks") or [None]
    if hook is None:
        return Level.FAIL, "its configuration is missing: no pod is elected", cures.install(facts)

    bundle = (hook.get("clientConfig") or {}).get("caBundle")
    if not bundle:
        cure = "start the agent, which writes it; if it runs, see its log"
        return Level.FAIL, "it has no caBundle: the API server cannot trust it", cure

    authorities = _ends(str(bundle))
    alive = [end for end in authorities if end > facts.now]
    if not alive:
        return Level.FAIL, "no certificate in its caBundle is valid", "restart the agent"

    if "" in webhook_paths.secrets_in(facts.webhook or {}):
        text = "its paths have no secret: whoever reaches the agent has it answer reviews"
        cure = "the agent adds one five minutes after an installation; if it does not, see its log"
        return Level.WARN, text, cure

    return Level.OK, f"its CA ends on {in_days(max(alive), facts.now)}", ""


def _ends(bundle: str) -> list[datetime]:
    try:
        pem = base64.b64decode(bundle)
        return [keypairs.expiry(found) for found in keypairs.parse_bundle(pem)]
    except ValueError:
        return []


def serving(facts: ClusterFacts) -> Result | None:
    """Check the certificate that the webhook shows; None if it cannot be seen from here."""
    if facts.serving is None:
        return None  # a Service cannot be reached from here; the trial pod tests it

    text = f"ends on {in_days(facts.serving, facts.now)}"
    if facts.serving - facts.now < _SOON:
        return Level.FAIL, text, "the agent renews it long before: see its log"

    return Level.OK, text, ""


def admission(facts: ClusterFacts) -> Result:
    """Check what came of a trial pod."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    if facts.webhook is None:
        return Level.SKIP, "without the webhook's configuration it is not tried", ""

    if facts.admission is None and facts.refused_trial:
        return Level.SKIP, f"no trial pod could be created: {facts.refused_trial}", ""

    if facts.admission is None:
        return (
            Level.WARN,
            f"no namespace has the label {label}={value}",
            f"kubectl label namespace NAMESPACE {label}={value}",
        )

    named = _NAMED.search(facts.admission)
    if named and not named[1].endswith(_OURS):
        return _of_another(named[1], facts.admission)

    if facts.admission:
        return Level.FAIL, f"a trial pod: {facts.admission}", cures.reach(facts)

    return Level.OK, "a trial pod was elected (and not kept)", ""


def is_untrusted(facts: ClusterFacts) -> bool:
    """Tell whether the API server does not trust what answers it at the webhook's address."""
    return bool(facts.admission and re.search("x509|certificate", facts.admission))


def is_of_another_time(facts: ClusterFacts) -> bool:
    """Tell whether it does not, since it takes the certificate to have ended, or to begin later."""
    return bool(facts.admission and re.search("expired|not yet valid", facts.admission))


def _of_another(webhook: str, text: str) -> Result:
    """Judge what another webhook of the cluster has made of the trial pod."""
    if "denied the request" in text:
        return Level.SKIP, f"another webhook refuses the trial pod: {text}", ""

    cure = (
        f"see why webhook {webhook} does not answer: kubectl get mutatingwebhookconfigurations,"
        "validatingwebhookconfigurations -o wide names its Service"
    )
    return Level.FAIL, f"a trial pod: {text}", cure


def kubelets(facts: ClusterFacts) -> Iterator[Finding]:
    """Check whether the API server reaches the kubelet API of each virtual node."""
    away = {
        model.key_of(target).node_name
        for target in facts.targets
        if (conditions.recorded(target) or {}).get("status") == "False"
    }
    for name, trouble in facts.kubelets.items():
        check_name, node = KUBELETS, f"of {name}"
        if trouble and name in away:
            text = f"{node} cannot be tried: its target is not connected"
            yield Finding(facts.name, check_name, Level.SKIP, text)
        elif not trouble:
            yield Finding(facts.name, check_name, Level.OK, f"the API server reaches those {node}")
        elif "address not allowed" in trouble or "Forbidden" in trouble[:20]:
            text = f"{node} cannot be tried through the API server: {trouble}"
            yield Finding(facts.name, check_name, Level.SKIP, text)
        else:
            cure = "let the API server reach the agent's --advertise-address and kubelet ports"
            if "x509" in trouble:
                cure = "see docs/limits.md: API servers that check kubelet certificates"

            yield Finding(facts.name, check_name, Level.FAIL, f"{node}: {trouble}", cure)
