"""The objects of the server: resources, their schema, the store, and error answers."""
