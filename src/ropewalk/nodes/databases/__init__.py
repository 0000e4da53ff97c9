"""Users' databases, which the nodes `sql.*` speak to by credential. Ropewalk's own store is none of these."""
