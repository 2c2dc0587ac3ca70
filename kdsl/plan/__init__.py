"""Whole rules: programs over columns of nodes, memos, rewritten rules, and the plugins they become."""
