"""Plans of device claims, and their consequences in memory."""
