"""The column back end: expressions over all nodes at once, in numpy, with the answers of the scalar one."""
