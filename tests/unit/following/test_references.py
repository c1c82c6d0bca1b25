from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import kinds
from vnode.api.service_tokens import ROOT_CA
from vnode.following import references
from vnode.following.references import Ref
from vnode.pods.source import proxy_state

NAMES = st.sampled_from(["a", "b", "c", ROOT_CA])

ENTRIES = st.one_of(
    st.builds(lambda n: {"configMapRef": {"name": n}}, NAMES),
    st.builds(lambda n: {"secretRef": {"name": n, "optional": True}}, NAMES),
)
VARIABLES = st.one_of(
    st.just({"name": "X", "value": "plain"}),
    st.builds(lambda n: {"name": "X", "valueFrom": {"configMapKeyRef": {"name": n}}}, NAMES),
    st.builds(lambda n: {"name": "X", "valueFrom": {"secretKeyRef": {"name": n}}}, NAMES),
    st.just({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}),
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.just("c")},
        optional={"envFrom": st.lists(ENTRIES), "env": st.lists(VARIABLES)},
    )
)
VOLUMES = st.lists(
    st.one_of(
        st.builds(lambda n: {"name": "v", "configMap": {"name": n}}, NAMES),
        st.builds(lambda n: {"name": "v", "secret": {"secretName": n}}, NAMES),
        st.builds(
            lambda n: {"name": "v", "projected": {"sources": [{"secret": {"name": n}}]}}, NAMES
        ),
        st.just({"name": "v", "emptyDir": {}}),
    )
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.just({"name": "p", "namespace": "ns", "uid": "u"}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "nodeName": st.just("admiralty-x"),
                "containers": CONTAINERS,
                "initContainers": CONTAINERS,
                "ephemeralContainers": CONTAINERS,
                "volumes": VOLUMES,
                "imagePullSecrets": st.lists(st.builds(lambda n: {"name": n}, NAMES)),
            },
        ),
    }
)


def pod(**spec):
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}


def found(**spec):
    return [(ref.kind.kind, ref.name) for ref in references.of(pod(**spec))]


def test_every_kind_of_reference_is_found():
    env = [
        {"name": "A", "value": "x"},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "env-map", "key": "k"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "env-secret", "key": "k"}}},
    ]
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": ROOT_CA}},
        {"configMap": {"name": "projected-map", "optional": True}},
        {"secret": {"name": "projected-secret"}},
    ]
    assert found(
        imagePullSecrets=[{"name": "pull"}, {}],
        containers=[{"env": env}],
        initContainers=[{"envFrom": [{"configMapRef": {"name": "from-map"}}]}],
        ephemeralContainers=[{"envFrom": [{"secretRef": {"name": "from-secret"}}]}],
        volumes=[
            {"name": "1", "configMap": {"name": "volume-map"}},
            {"name": "2", "secret": {"secretName": "volume-secret", "optional": True}},
            {"name": "3", "projected": {"sources": sources}},
            {"name": "4", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
            {"name": "5", "cephfs": {"secretRef": {"name": "ceph"}}},
            {"name": "6", "azureFile": {"secretName": "azure"}},
            {"name": "7", "emptyDir": {}},
            {"name": "8", "persistentVolumeClaim": {"claimName": "claim"}},
        ],
    ) == [
        *(("ConfigMap", f"{name}-map") for name in ("env", "from", "projected", "volume")),
        ("PersistentVolumeClaim", "claim"),
        *(
            ("Secret", name)
            for name in (
                "azure",
                "ceph",
                "csi",
                "env-secret",
                "from-secret",
                "projected-secret",
                "pull",
                "volume-secret",
            )
        ),
    ]


def test_a_pod_that_refers_to_nothing_has_none():
    assert found(containers=[{"name": "c", "env": None, "envFrom": None}], volumes=None) == []


def test_references_are_in_the_namespace_of_the_pod():
    refs = references.of(pod(imagePullSecrets=[{"name": "pull"}]))
    assert refs == (Ref(kinds.SECRETS, "ns", "pull"),)


@given(PODS)
def test_a_trimmed_pod_still_knows_what_it_refers_to(given_pod):
    trimmed = references.keeping(proxy_state.trim)(given_pod)
    assert references.of(trimmed) == references.of(given_pod)


@given(PODS)
def test_trimming_changes_nothing_else(given_pod):
    trimmed = dict(references.keeping(proxy_state.trim)(given_pod))
    trimmed.pop(references.FIELD, None)
    assert trimmed == proxy_state.trim(given_pod)


def test_pods_that_are_alike_share_one_tuple():
    trim = references.keeping(lambda pod: {"metadata": pod["metadata"]})
    one, two = (trim(pod(imagePullSecrets=[{"name": "pull"}])) for _ in range(2))
    assert one[references.FIELD] is two[references.FIELD]
