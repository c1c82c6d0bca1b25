"""The kubelet API of virtual nodes: logs, exec, port-forward and usage of a target's pods."""
