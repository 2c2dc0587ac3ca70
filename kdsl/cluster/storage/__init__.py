"""Claims, volumes and CSI limits of pods on nodes, and the changes of binding a claim."""
