"""`http.request` and what every node type that calls a server over HTTP is made of.

request.py    the node type: its parameters become a call
call.py       one call: its hops, its time, what can break on the way
payloads.py   what a call sends: JSON, text, forms, files
answers.py    what a server said, and what that counts as
time_limit.py how long a call may take
headers.py    which headers an author may set
statuses.py   which statuses an author expects
pages.py      one call after the other until there are no more pages
authentication.py, digest.py, oauth2.py, aws.py   how a credential proves who asks
"""
