"""Plans of device claims, and what follows from them in memory."""
