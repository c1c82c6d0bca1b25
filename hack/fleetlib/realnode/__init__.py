"""A real node for a cluster of a fleet: kubelet, containerd and runc in a process tree of its own.

Begin with `node`. `init` is PID 1 of the tree: it makes the node's own view of the machine
(`mounts`, `cgroups`, `firewall`), serves the images (`images`, `registry`), and keeps containerd
and kubelet running with the files of `configs`. When PID 1 ends, the kernel ends everything below.
"""
