"""Reads the usage of a virtual node's pods in the target, and serves it as a kubelet does.

`reader` reads by `kubelets` or `metrics_api`; `points` makes cumulative counters of the readings;
`collector` assigns them to proxy pods; `exposition` and `summary` render reports; `serving` has the
routes.
"""
