"""The configuration of a scheduler: deployment, not policy, which is in rule files."""
