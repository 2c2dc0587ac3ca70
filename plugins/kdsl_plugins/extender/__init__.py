"""The plugin that calls kube-scheduler's extenders over HTTP."""
