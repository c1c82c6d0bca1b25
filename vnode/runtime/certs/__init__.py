"""Certificates: where they come from, when they are renewed, and who is handed them."""
