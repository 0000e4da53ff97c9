"""Documents of other programs, made into ours; each file takes one kind, and says what it left out or changed."""
