"""Counts over the pods of a cluster by topology domain, updated as pods and nodes come and go.

`Tally` holds one number per row of a snapshot and their sums per domain. The column of a label gives the
domain of each row. `TermIndex` holds the affinity terms of placed pods, `TermTally` their counts for one
question, and `Arrivals` is the log of changes that all of them follow. They belong to the live snapshot and
are kept in its `TallyStore`. For an overlay, counts are corrected for its changed rows.
"""
