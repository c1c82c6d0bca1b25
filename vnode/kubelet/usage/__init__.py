"""What the pods of a virtual node use: read in the target, told as a kubelet tells it.

`reader` reads by way of `kubelets` or `metrics_api`; `points` makes cumulative counters of what was
read; `collector` names the proxy pods; `exposition` and `summary` write it down; `serving` has the
routes.
"""
