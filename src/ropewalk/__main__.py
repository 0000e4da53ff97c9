"""`python -m ropewalk`."""

from ropewalk.cli.main import main

if __name__ == "__main__":
    main()
