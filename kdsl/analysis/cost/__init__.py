"""What rules may cost, as formulas over the sizes of what they read: known before anything runs."""
