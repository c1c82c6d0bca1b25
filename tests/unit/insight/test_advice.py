"""The cure is that of the reason, not of other words in its message."""

from __future__ import annotations

import pytest

from vnode.api import cures
from vnode.api.saved_manifest import UNKNOWN
from vnode.insight import refusal_cures

AGAIN = "the pod is tried again by itself when something changes that can help it"
ACCOUNT = "create the service account, or name another one, in the target"
NO_MINTER = (
    'c2: the agent may not make tokens: serviceaccounts "default" is forbidden: User '
    '"system:serviceaccount:vnode:vnode" cannot create resource "serviceaccounts/token"; run '
    "kubectl --namespace team-a create rolebinding vnode-token-minter "
    "--clusterrole=vnode-token-minter --serviceaccount=vnode:vnode, or remove annotation "
    "vnode.dev/service-account-tokens of the Target"
)
NOT_GRANTED = (
    "c2: podchaperons.multicluster.admiralty.io is forbidden: User "
    '"system:serviceaccount:vnode:c1" cannot create resource "podchaperons" in API group '
    '"multicluster.admiralty.io" in the '
    f'namespace "team-a"; {cures.grant("team-a")}'
)
NO_ACCOUNT = 'c3: pods "x" is forbidden: error looking up service account a/b: not found'
OTHERS = (
    "c2: Secret exec is the token of service account executor, and such Secrets do not follow: "
    "have target c2 ask for tokens, by the annotation vnode.dev/service-account-tokens, run the "
    "pod as that account, or create a Secret of that name in the target"
)
VARIABLE = (
    "c2: Secret exec is the token of service account executor, which would end in a variable or "
    "below a subPath: mount it as a volume, or create a Secret of that name in target c2"
)
NOT_VALID = (
    "c2: Secret exec holds no valid token of service account executor: see that the account "
    "exists, and delete the Secret and create it again, for the token controller to fill it in"
)


@pytest.mark.parametrize(
    ("expected", "begins"),
    [
        ([NO_MINTER], ["give the agent the right to make tokens"]),
        ([NOT_GRANTED], ["have an administrator of the target run the command"]),
        ([NOT_GRANTED, NO_ACCOUNT], ["have an administrator of the target", ACCOUNT]),
        ([OTHERS], ["have the target ask for tokens of the source"]),
        ([VARIABLE], ["mount the Secret as a volume"]),
        ([NOT_VALID], ["see that the service account exists"]),
        ([NO_ACCOUNT], [ACCOUNT]),
        ([f"{UNKNOWN}: annotation, run vnode migrate"], ["vnode migrate signs"]),
        (["no node has nvidia.com/gpu.product=H100"], ["compare its constraints with the labels"]),
        (['ResourceClaim "shared" not found: create it in namespace a'], ["create it here"]),
        (['ResourceClaim "shared" is used in target c3'], ["wait until no pod uses the claim"]),
        (["0/3 nodes are available: 3 cannot allocate all claims."], ["add devices in the tar"]),
        (['DeviceClass "gpu" not found: create it in the target'], ["create the class in the"]),
        (["exceeded quota: q, requested: pods=1"], ["raise the ResourceQuota"]),
        (["failed quota: q: must specify limits.cpu for: a"], ["set them in the pod, or make"]),
        (
            ["LimitRange l: maximum cpu usage per Container is 1, but limit is 2"],
            ["change the pod's requests and limits"],
        ),
        ([NO_MINTER, NO_ACCOUNT], ["give the agent the right to make tokens", ACCOUNT]),
        ([f"{NO_ACCOUNT}, {NO_MINTER}"], ["give the agent the right to make tokens", ACCOUNT]),
    ],
)
def test_each_reason_has_its_own_cure(expected, begins):
    *cures, again = refusal_cures.unschedulable({f"c{n}": text for n, text in enumerate(expected)})
    assert again == AGAIN
    assert len(cures) == len(begins)
    assert all(cure.startswith(words) for cure, words in zip(cures, begins, strict=True))
