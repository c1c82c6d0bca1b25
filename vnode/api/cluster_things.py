"""The table of what objects say of things of their own cluster: whether it travels, and why.

Addresses, pools, classes, certificates and names of a cloud or a cluster are of no use elsewhere,
or are fought over: two clusters that ask for one address or one DNS name both lose. This is the one
table about it, for what follows pods and for the pods themselves; docs/following.md shows it.
`cluster_bound` answers by it.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class TravelFate(enum.Enum):
    """What becomes of a thing on the way to a target."""

    TRAVELS = "travels"
    MAPPED = "is mapped"
    STAYS = "stays"


class ClusterThing(NamedTuple):
    """A row of the table. `annotations` are whole keys, or prefixes that end in `/`, `-` or `.`.

    Without what says `is_reach`, how a load balancer is reached and by whom, there must be none. An
    `is_address` two clusters would fight over. `may_travel`, if a Target says so.
    """

    of: str
    what: str
    fate: TravelFate
    why: str
    annotations: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    is_reach: bool = False
    is_address: bool = False
    may_travel: bool = False


LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's notes about the original, a second copy of all its data."""
EXTERNAL_DNS: Final = "external-dns.alpha.kubernetes.io/"
DNS_CONTROLLER: Final = EXTERNAL_DNS + "controller"
"""external-dns leaves alone what names another controller than itself."""
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"

ANNOTATIONS: Final = (
    ClusterThing(
        "all",
        "notes about the original: kubectl's, leader election's",
        TravelFate.STAYS,
        "they are about the object in the source",
        (LAST_APPLIED, "control-plane.alpha.kubernetes.io/leader"),
    ),
    ClusterThing(
        "all",
        "marks by which Argo CD, Helm and Rancher know their own",
        TravelFate.STAYS,
        "they delete objects of theirs that they do not know",
        ("argocd.argoproj.io/tracking-id", "meta.helm.sh/", "objectset.rio.cattle.io/"),
    ),
    ClusterThing(
        "all",
        "orders to cert-manager: issuers, challenges",
        TravelFate.STAYS,
        "the Secret that it makes in the source follows; another one would write to the same copy",
        ("cert-manager.io/", "acme.cert-manager.io/", "kubernetes.io/tls-acme"),
    ),
    ClusterThing(
        "all",
        "what controllers of the source note about volumes and load balancers",
        TravelFate.STAYS,
        "it is about the source's",
        (
            "volume.beta.kubernetes.io/",
            "volume.kubernetes.io/",
            "pv.kubernetes.io/",
            "cloud.google.com/neg-status",
            "field.cattle.io/publicEndpoints",
            "kube-vip.io/vipHost",
            "metallb.io/ip-allocated-from-pool",
            "metallb.universe.tf/ip-allocated-from-pool",
            "ingress.kubernetes.io/backends",
            "ingress.kubernetes.io/forwarding-rule",
            "ingress.kubernetes.io/https-forwarding-rule",
            "ingress.kubernetes.io/https-target-proxy",
            "ingress.kubernetes.io/ssl-cert",
            "ingress.kubernetes.io/static-ip",
            "ingress.kubernetes.io/target-proxy",
            "ingress.kubernetes.io/url-map",
        ),
    ),
    ClusterThing(
        "Service, Ingress",
        "orders to external-dns: host names, targets. Copies say that external-dns is to leave "
        "them alone, as it also reads the hosts of Ingresses",
        TravelFate.STAYS,
        "two clusters would fight for one DNS name",
        (EXTERNAL_DNS, "external-dns.kubernetes.io/", "dns.alpha.kubernetes.io/"),
        is_address=True,
        may_travel=True,
    ),
    ClusterThing(
        "Service, Ingress",
        "addresses of load balancers, and their names: MetalLB, Cilium, kube-vip, Calico, "
        "Tailscale, AWS, Azure, Google, OpenStack, Hetzner",
        TravelFate.STAYS,
        "two clusters would fight for one address",
        (
            "metallb.io/loadBalancerIPs",
            "metallb.universe.tf/loadBalancerIPs",
            "lbipam.cilium.io/ips",
            "io.cilium/lb-ipam-ips",
            "kube-vip.io/loadbalancerIPs",
            "projectcalico.org/loadBalancerIPs",
            "tailscale.com/hostname",
            "service.beta.kubernetes.io/aws-load-balancer-eip-allocations",
            "service.beta.kubernetes.io/aws-load-balancer-ipv6-addresses",
            "service.beta.kubernetes.io/aws-load-balancer-private-ipv4-addresses",
            "service.beta.kubernetes.io/aws-load-balancer-name",
            "service.beta.kubernetes.io/azure-dns-label-name",
            "service.beta.kubernetes.io/azure-load-balancer-ipv4",
            "service.beta.kubernetes.io/azure-load-balancer-ipv6",
            "service.beta.kubernetes.io/azure-pip-",
            "networking.gke.io/load-balancer-ip-addresses",
            "kubernetes.io/ingress.global-static-ip-name",
            "kubernetes.io/ingress.regional-static-ip-name",
            "loadbalancer.openstack.org/load-balancer-id",
            "load-balancer.hetzner.cloud/hostname",
            "load-balancer.hetzner.cloud/name",
        ),
        is_reach=True,
        is_address=True,
        may_travel=True,
    ),
    ClusterThing(
        "Service, Ingress",
        "other settings of load balancers: pools, subnets, security groups, certificates by ARN, "
        "WAF, IAP, resource groups; all of the prefixes of MetalLB, Cilium LB IPAM, kube-vip, "
        "PureLB, OpenELB, K3s, Tailscale, AWS, Azure, Google, Alibaba, DigitalOcean, Hetzner, "
        "Huawei, IBM, Linode, OCI, OpenStack, OVH, Scaleway, Tencent, Vultr, Avi, F5, Citrix",
        TravelFate.STAYS,
        "they name things of the source's cloud or network",
        (
            "metallb.io/",
            "metallb.universe.tf/",
            "lbipam.cilium.io/",
            "io.cilium/lb-ipam-",
            "kube-vip.io/",
            "purelb.io/",
            "lb.kubesphere.io/",
            "eip.openelb.kubesphere.io/",
            "protocol.openelb.kubesphere.io/",
            "svccontroller.k3s.cattle.io/",
            "tailscale.com/",
            "service.beta.kubernetes.io/",
            "service.k8s.aws/",
            "elbv2.k8s.aws/",
            "ingress.k8s.aws/",
            "alb.ingress.kubernetes.io/",
            "appgw.ingress.kubernetes.io/",
            "networking.gke.io/",
            "cloud.google.com/",
            "beta.cloud.google.com/",
            "ingress.gcp.kubernetes.io/",
            "kubernetes.digitalocean.com/",
            "load-balancer.hetzner.cloud/",
            "kubernetes.io/elb.",
            "service.kubernetes.io/ibm-",
            "service.kubernetes.io/qcloud-",
            "service.cloud.tencent.com/",
            "oci.oraclecloud.com/",
            "oci-network-load-balancer.oraclecloud.com/",
            "loadbalancer.openstack.org/",
            "loadbalancer.ovhcloud.com/",
            "k8s.scaleway.com/",
            "ako.vmware.com/",
            "aviinfrasetting.ako.vmware.com/",
            "cis.f5.com/",
            "virtual-server.f5.com/",
            "ingress.citrix.com/",
        ),
        is_reach=True,
        may_travel=True,
    ),
    ClusterThing(
        "Service, Ingress",
        "network endpoint groups of Google (`cloud.google.com/neg`), which GKE sets by itself",
        TravelFate.STAYS,
        "they are the source's",
        ("cloud.google.com/neg", "cloud.google.com/app-protocols"),
        may_travel=True,
    ),
    ClusterThing(
        "Service",
        "what keeps a load balancer from being public: source ranges, and `internal` of AWS, "
        "Azure, Google, OpenStack, OCI, Alibaba, IBM",
        TravelFate.TRAVELS,
        "it names nothing of the source's, and without it more could reach the pods",
        (
            "service.beta.kubernetes.io/load-balancer-source-ranges",
            "service.beta.kubernetes.io/aws-load-balancer-internal",
            "service.beta.kubernetes.io/aws-load-balancer-scheme",
            "service.beta.kubernetes.io/azure-load-balancer-internal",
            "service.beta.kubernetes.io/azure-allowed-ip-ranges",
            "service.beta.kubernetes.io/azure-allowed-service-tags",
            "service.beta.kubernetes.io/openstack-internal-load-balancer",
            "service.beta.kubernetes.io/oci-load-balancer-internal",
            "oci-network-load-balancer.oraclecloud.com/internal",
            "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type",
            "service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type",
            "networking.gke.io/load-balancer-type",
            "cloud.google.com/load-balancer-type",
        ),
    ),
    ClusterThing(
        "Ingress",
        "settings of controllers within the cluster: nginx, Traefik, HAProxy, Contour, k8gb",
        TravelFate.TRAVELS,
        "they say how requests are routed. Secrets that only they name do not follow",
    ),
    ClusterThing(
        "Service, Ingress",
        "marks of Cilium's cluster mesh",
        TravelFate.TRAVELS,
        "it merges Services of one name",
    ),
)

FIELDS: Final = (
    ClusterThing(
        "Service",
        "`loadBalancerIP`",
        TravelFate.STAYS,
        "two clusters would fight for one address",
        fields=("loadBalancerIP",),
        is_reach=True,
        is_address=True,
        may_travel=True,
    ),
    ClusterThing(
        "Service",
        "`externalIPs`",
        TravelFate.STAYS,
        "nodes of both clusters would take the address over",
        fields=("externalIPs",),
        is_address=True,
        may_travel=True,
    ),
    ClusterThing(
        "Service",
        "`clusterIP`, `clusterIPs`, `ipFamilies`, `healthCheckNodePort`",
        TravelFate.STAYS,
        "the target chooses them; a headless Service stays headless",
        fields=("clusterIP", "clusterIPs", "ipFamilies", "healthCheckNodePort"),
    ),
    ClusterThing(
        "Service",
        "`type: LoadBalancer`",
        TravelFate.TRAVELS,
        "unless something stays that says how the load balancer is reached: see below",
    ),
    ClusterThing(
        "Service",
        "`loadBalancerClass`",
        TravelFate.MAPPED,
        "by `vnode.dev/load-balancer-classes` of the Target; keeps its name otherwise",
        fields=("loadBalancerClass",),
    ),
    ClusterThing(
        "Service",
        "`loadBalancerSourceRanges`, `externalTrafficPolicy`, `internalTrafficPolicy`, "
        "`sessionAffinity`, `ipFamilyPolicy`, `trafficDistribution`, ports",
        TravelFate.TRAVELS,
        "they name nothing of the source's; node ports where they are free",
    ),
    ClusterThing(
        "Service",
        "`type: ExternalName`",
        TravelFate.STAYS,
        "the Service has no pods, and does not follow",
    ),
    ClusterThing(
        "Ingress",
        "`ingressClassName`, annotation `kubernetes.io/ingress.class`",
        TravelFate.MAPPED,
        "by `vnode.dev/ingress-classes` of the Target; keeps its name otherwise",
        fields=("ingressClassName",),
    ),
    ClusterThing(
        "Ingress",
        "hosts, paths, `tls.secretName`",
        TravelFate.TRAVELS,
        "requests are routed by them; the Secret follows",
    ),
    ClusterThing(
        "claim, ephemeral volume of a pod",
        "`storageClassName`",
        TravelFate.MAPPED,
        "by `vnode.dev/storage-classes` of the Target; keeps its name otherwise",
        fields=("storageClassName",),
    ),
    ClusterThing(
        "claim, ephemeral volume of a pod",
        "`volumeName`, `selector`, `volumeAttributesClassName`",
        TravelFate.STAYS,
        "they name volumes of the source, and classes of its storage",
        fields=("volumeName", "selector", "volumeAttributesClassName"),
    ),
    ClusterThing(
        "claim",
        "`dataSource`, `dataSourceRef`",
        TravelFate.STAYS,
        "only the claim follows, not the data",
    ),
    ClusterThing(
        "ephemeral volume of a pod",
        "`dataSource`, `dataSourceRef`",
        TravelFate.TRAVELS,
        "without them the pod would start with an empty volume; the target must have the snapshot",
    ),
    ClusterThing(
        "pod",
        "`priorityClassName`",
        TravelFate.MAPPED,
        "by `vnode.dev/priority-classes` of the Target, else to the nearest class of the target",
    ),
    ClusterThing(
        "pod",
        "`nodeName`, `schedulerName`, scheduling gates",
        TravelFate.STAYS,
        "they were for the virtual node",
    ),
    ClusterThing(
        "pod",
        "`serviceAccountName`, `imagePullSecrets`, ConfigMaps, Secrets, claims",
        TravelFate.TRAVELS,
        "what they name follows, or is that of the target: see the sections below",
    ),
    ClusterThing(
        "pod",
        "`runtimeClassName`, names of CSI drivers and SecretProviderClasses, node selectors and "
        "affinity for the target's nodes",
        TravelFate.TRAVELS,
        "the target must have them; an override policy changes them for one target",
    ),
    ClusterThing(
        "pod",
        "`resourceClaims`",
        TravelFate.TRAVELS,
        "ResourceClaims and templates follow; their DeviceClasses are those of the target",
    ),
    ClusterThing(
        "pod",
        "status `resourceClaimStatuses`, `extendedResourceClaimStatus`",
        TravelFate.STAYS,
        "they name claims of the cluster that made them",
    ),
    ClusterThing(
        "ResourceClaim",
        "status: what is allocated and reserved",
        TravelFate.STAYS,
        "devices are those of one cluster; the claim in the source gets none",
    ),
    ClusterThing(
        "pod",
        "`hostname`, `subdomain`, `hostAliases`, `dnsConfig`",
        TravelFate.TRAVELS,
        "containers rely on them",
    ),
    ClusterThing(
        "NetworkPolicy",
        "`ipBlock`s",
        TravelFate.TRAVELS,
        "they are as wide or as narrow in the target",
    ),
    ClusterThing(
        "NetworkPolicy",
        "`podSelector`, `namespaceSelector`",
        TravelFate.MAPPED,
        "to the labels of delegates: see below",
    ),
    ClusterThing(
        "Gateway API routes, EndpointSlices, everything else",
        "the object",
        TravelFate.STAYS,
        "it does not follow",
    ),
)

TABLE: Final = (*FIELDS, *ANNOTATIONS)
