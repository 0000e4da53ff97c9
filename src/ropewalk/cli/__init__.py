"""The command line: thin. `commands/` has one file per noun; what is drawn is made in `views/`, what is done elsewhere.

`main.py` knows every command by name and loads none before it is called, so that `ropewalk --help` answers at once.
"""
