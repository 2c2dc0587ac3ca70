"""Questions to checked rules: the facts they depend on, what cures a rejection, what changed."""
