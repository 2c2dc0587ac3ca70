"""Cards of nodes, who has which, and what pods say of it."""
