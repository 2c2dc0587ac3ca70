"""Checked rules to hook implementations: the scalar back end and the memo it derives from read-sets."""
