"""Counting over the pods of a cluster by topology domain, kept up to date as pods and nodes come and go.

A `Tally` holds one number per row of a snapshot and their sums per domain; the column of a label says which
domain each row is in; `TermIndex` holds the affinity terms of the pods that run, `TermTally` what they are
worth to a question; `Arrivals` tells all of them what has come to nodes. All of them belong to the live
snapshot and are found in its `TallyStore`; what they say of an overlay is corrected for its changed rows.
"""
