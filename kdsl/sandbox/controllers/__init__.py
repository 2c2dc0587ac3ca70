"""The controllers of the sandbox: workloads, volumes, kubelets and garbage collection."""
