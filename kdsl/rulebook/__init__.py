"""Rule files to checked rules, with a cache of results between runs."""
