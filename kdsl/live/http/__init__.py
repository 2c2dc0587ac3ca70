"""HTTP to the API server: requests, answers, connections, the pace and priorities of requests."""
