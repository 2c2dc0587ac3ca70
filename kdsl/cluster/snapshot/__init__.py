"""The columnar snapshot that a cycle reads, and the cache that events keep up to date."""
