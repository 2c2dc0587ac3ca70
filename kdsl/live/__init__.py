"""Schedules a real cluster: reads objects from the API server; writes bindings, conditions and events to it.

Data flows one way. Watches put changes into the inbox. The scheduling thread passes them to the cache and the
queue, decides, and puts writes into the outbox. Requests run on the thread of the event loop, and their
results go into the inbox as well.
"""
