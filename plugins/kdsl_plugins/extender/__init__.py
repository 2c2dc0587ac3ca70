"""The plugin that asks kube-scheduler's extenders over HTTP."""
