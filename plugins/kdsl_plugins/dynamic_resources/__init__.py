"""The plugin that allocates the devices of claims: dynamic resource allocation (DRA)."""
