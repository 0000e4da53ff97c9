"""Who may enter, and how: sockets, authentication, authorization, limits, and the bodies of requests."""
