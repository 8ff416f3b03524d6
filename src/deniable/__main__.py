"""`python -m deniable` is the command `deniable`."""

from __future__ import annotations

from deniable.cli.entry import main

if __name__ == "__main__":
    main()
