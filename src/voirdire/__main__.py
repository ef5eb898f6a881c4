"""``python -m voirdire`` is the command line."""

import sys

from voirdire.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
