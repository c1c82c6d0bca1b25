"""Reads what others say of clusters, as scores, and publishes what vnode knows of them."""
