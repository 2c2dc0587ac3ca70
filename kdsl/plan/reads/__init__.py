"""The facts that rules read, and the signatures of pods that follow from them."""
