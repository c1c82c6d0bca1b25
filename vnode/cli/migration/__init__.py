"""The steps of `vnode migrate` that are about one cluster, on the way from Admiralty and back."""
