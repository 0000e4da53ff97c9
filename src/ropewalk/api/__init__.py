"""The HTTP API: everything that a client can ask.

`nouns` has the routes and handlers, one file per noun; `doors` says who may enter and how; `streaming` has the answers
that take their time; `shapes` says what bodies, answers and refusals look like. `routes` says how a route is made, and
that none is open by accident. Handlers only translate: `service` does what is asked.
"""
