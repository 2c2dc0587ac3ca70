"""The columnar snapshot that a cycle decides on, and the cache that events keep up to date."""
