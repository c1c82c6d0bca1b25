"""Tokens of targets that users ask for by AuthTokenRequests."""
