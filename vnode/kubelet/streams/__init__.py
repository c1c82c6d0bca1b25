"""Routes that become streams to the target: `exec`, `attach` and `portForward`."""
