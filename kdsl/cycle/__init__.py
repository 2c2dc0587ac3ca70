"""One scheduling cycle over a snapshot: from a queued pod to a `Decision`."""
