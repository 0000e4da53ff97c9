"""The door: everything a client can ask over HTTP, one file per noun.

`routes` says how a route is made and that none is open by accident, `gate` who gets in, `intake` what may be sent,
`problems` how a refusal looks. Handlers only translate: what they ask for is done in `service`.
"""
