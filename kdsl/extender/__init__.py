"""A server that kube-scheduler asks: its extenders (`extender/v1`) and the admission webhook of pods."""
