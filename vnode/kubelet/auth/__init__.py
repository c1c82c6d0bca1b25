"""Authentication and authorization of the kubelet API of virtual nodes."""
