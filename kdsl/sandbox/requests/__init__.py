"""The handlers of requests, by verb and subresource."""
