"""Analyses of checked rules: the facts they depend on, the events that cure a rejection, the changes between
versions.
"""
