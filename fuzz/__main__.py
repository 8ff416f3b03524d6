"""`python -m fuzz`: see ``fuzz.running``. Processes that are started afresh find what they run there, and not here."""

import sys

from fuzz.running import main

if __name__ == "__main__":
    sys.exit(main())
