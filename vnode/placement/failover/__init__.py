"""Replaces pods whose cluster is lost, as placement policies say.

The webhook has Kubernetes leave these pods where they are (`vnode.webhook.mutate`), so that their
evictions can be spread over time. `deciding` tells which pods are due, and `controller` evicts
them. `preserved_state` gives those that replace them what `vnode.planning.preserving` takes from
them.
"""
