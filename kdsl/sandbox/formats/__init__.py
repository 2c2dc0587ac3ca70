"""The forms of requests and answers: bodies, patches, selectors, discovery, OpenAPI, printed rows."""
