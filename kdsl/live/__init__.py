"""Schedules a real cluster: the API server's objects come in, bindings, conditions and events go out.

Data flows one way. Watches put changes into the inbox; the scheduling thread takes them to the cache and the
queue, decides, and hands writes to the outbox; requests run on the thread of the event loop, and what they
came to goes into the inbox as well.
"""
