"""What somebody does on purpose who may write into one folder: each attack is tried, and has to be seen."""
