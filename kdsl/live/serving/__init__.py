"""The endpoints of a running scheduler, and requests to them."""
