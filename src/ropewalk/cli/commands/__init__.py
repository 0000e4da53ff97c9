"""One file per command or noun, loaded when it is called (`main.py`); `*_bulk.py` is what a noun does to many."""
