"""The pure parts of a real node: its images, its registry, its files; and cgroups in a folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from hack.fleetlib.addresses import AddressPlan
from hack.fleetlib.commands import ClusterSite
from hack.fleetlib.errors import FleetError
from hack.fleetlib.realnode import (
    cgroups,
    configs,
    images,
    node,
    packages,
    registry,
    services,
    sites,
)

PLAN = AddressPlan("netns", 9)
_ADDRESSES = tuple(PLAN.real_node(1, number) for number in (0, 1))
CLUSTER = ClusterSite(
    name="c2",
    folder=Path("/fleet/c2"),
    address=_ADDRESSES[0],
    etcd="127.0.0.1",
    pod_range="10.243.0.0/16",
    agents=_ADDRESSES[:1],
    service=_ADDRESSES[0],
    nodes=_ADDRESSES,
)
FIRST, SECOND = (sites.site(CLUSTER, PLAN, 1, number) for number in (0, 1))
BUILT = images.build(b"the program", ["sh", "busybox", "cat"])


def test_an_image_names_its_blobs_by_their_sums():
    manifest = json.loads(BUILT.manifests["busybox"].content)
    layer = BUILT.blobs[manifest["layers"][0]["digest"]]
    configuration = json.loads(BUILT.blobs[manifest["config"]["digest"]].content)

    assert manifest["layers"][0]["size"] == len(layer.content)
    unpacked = gzip.decompress(layer.content)
    sums = ["sha256:" + hashlib.sha256(unpacked).hexdigest()]
    assert configuration["rootfs"]["diff_ids"] == sums


def test_every_applet_is_a_link_to_the_one_program():
    manifest = json.loads(BUILT.manifests["busybox"].content)
    layer = BUILT.blobs[manifest["layers"][0]["digest"]].content
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        links = {one.name: one.linkname for one in archive if one.issym()}
        program = archive.extractfile("bin/busybox")
        assert program is not None
        assert program.read() == b"the program"

    assert links == {"bin/sh": "busybox", "bin/cat": "busybox"}


@pytest.mark.parametrize("name", ["library/busybox", "busybox", "some/where/busybox"])
def test_a_registry_has_busybox_under_any_name_and_tag(name: str):
    asked = f"/v2/{name}/manifests/1.2?ns=docker.io"
    assert registry.find(BUILT, asked) is BUILT.manifests["busybox"]


def test_a_registry_has_blobs_and_manifests_by_digest():
    for digest, blob in BUILT.blobs.items():
        assert registry.find(BUILT, f"/v2/library/busybox/blobs/{digest}") is blob

    digest = BUILT.manifests["pause"].digest
    found = registry.find(BUILT, f"/v2/pause/manifests/{digest}")
    assert found is BUILT.manifests["pause"]


@pytest.mark.parametrize(
    "path", ["/v2/library/nginx/manifests/latest", "/v2/busybox/blobs/sha256:0", "/", "/v2/x"]
)
def test_a_registry_has_nothing_else(path: str):
    assert registry.find(BUILT, path) is None


def test_images_of_a_layout_are_had_by_the_names_in_its_index(tmp_path: Path):
    blobs = tmp_path / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for blob in BUILT.blobs.values():
        (blobs / blob.digest.removeprefix("sha256:")).write_bytes(blob.content)
    named = {"org.opencontainers.image.ref.name": "vnode"}
    manifest = BUILT.manifests["busybox"]
    index = {"manifests": [{**manifest.descriptor, "annotations": named}]}
    (tmp_path / "index.json").write_text(json.dumps(index))

    both = BUILT | images.from_layout(tmp_path)

    assert registry.find(both, "/v2/library/vnode/manifests/0.1.0?ns=docker.io") == manifest
    assert registry.find(both, "/v2/busybox/manifests/1") == manifest
    assert both.blobs == BUILT.blobs


def test_pods_ask_the_clusters_dns_only_where_there_is_one():
    for one in (FIRST, SECOND):
        [address] = configs.kubelet(one, names=True)["clusterDNS"]
        assert f"bind {address}\n" in services.files(FIRST)["Corefile"]
        assert configs.kubelet(one)["clusterDNS"] != [address]


def test_a_cluster_has_one_dns_and_a_kube_proxy_on_each_node():
    programs = {name: Path(name) for name in services.PROGRAMS}
    assert list(services.commands(FIRST, programs)) == ["kube-proxy", "coredns"]
    assert list(services.commands(SECOND, programs)) == ["kube-proxy"]


def test_kube_proxy_leaves_the_ports_of_six_virtual_nodes():
    made = json.loads(services.files(FIRST)["kube-proxy.yaml"])
    for address in (made["healthzBindAddress"], made["metricsBindAddress"]):
        assert int(address.rpartition(":")[2]) not in range(10250, 10256)


def test_a_folder_without_an_index_is_no_layout(tmp_path: Path):
    with pytest.raises(FleetError, match="no OCI layout"):
        node.NodeOptions(images=tmp_path).check()


def test_a_kubelet_keeps_off_the_ports_of_virtual_nodes():
    made = configs.kubelet(FIRST)

    assert made["address"] == CLUSTER.address
    assert made["port"] < 7000
    assert made["cgroupRoot"] == "/vn09-1"


def test_pods_get_addresses_in_the_clusters_range_that_kwok_does_not_reach():
    assert (FIRST.pod_range, SECOND.pod_range) == ("10.243.200.0/24", "10.243.201.0/24")


def test_a_second_node_shares_nothing_that_the_machine_has_once():
    kubelets = [configs.kubelet(one) for one in (FIRST, SECOND)]
    for field in ("address", "cgroupRoot", "tlsCertFile", "resolvConf"):
        assert len({made[field] for made in kubelets}) == 2, field
    assert [one.name for one in (FIRST, SECOND)] == ["c2-real", "c2-real-2"]
    assert FIRST.netns is None
    assert SECOND.netns != PLAN.netns(1)
    assert SECOND.log("kubelet") == "/fleet/c2/kubelet-2.log"


def test_a_process_of_a_cluster_is_one_of_its_real_nodes_or_none():
    assert [sites.number_of(one.process) for one in (FIRST, SECOND)] == [0, 1]
    assert sites.number_of("kubelet") is None


def test_cgroups_of_version_one_get_the_cpus_of_their_parent(tmp_path: Path):
    for controller in ("cpuset", "memory"):
        (tmp_path / controller).mkdir()
        (tmp_path / controller / "cgroup.procs").touch()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-3\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0\n")

    cgroups.create("node", tmp_path)

    assert (tmp_path / "memory" / "node").is_dir()
    assert (tmp_path / "cpuset" / "node" / "cpuset.cpus").read_text() == "0-3\n"
    assert (tmp_path / "cpuset" / "node" / "cgroup.clone_children").read_text() == "1"


def test_cgroups_are_removed_with_all_below_them(tmp_path: Path):
    (tmp_path / "memory" / "node" / "pods" / "one").mkdir(parents=True)
    (tmp_path / "memory" / "other").mkdir()
    (tmp_path / "memory" / "cgroup.procs").touch()

    cgroups.remove("node", tmp_path)
    cgroups.remove("node", tmp_path)

    assert [path.name for path in (tmp_path / "memory").iterdir() if path.is_dir()] == ["other"]


def test_nodes_of_all_fleets_have_cgroups_of_their_own():
    names = {
        sites.site(CLUSTER, AddressPlan("netns", slot), index, number).cgroup
        for slot in (1, 2)
        for index in (0, 1)
        for number in (0, 1)
    }
    assert len(names) == 8


def test_what_is_lacking_is_named_together_with_the_cure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(FleetError, match=r"runc.*hack/realnode-packages"):
        packages.check()


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(FleetError, match="root"):
        packages.check()
