"""Whole rules: programs over columns of nodes, memos, and the plugins they become."""
