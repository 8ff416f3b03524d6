"""`deniable-verify FOLDER [--json]`: does a release hold what it promises?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from deniable_verify import NoReleaseError, verify

EPILOG = "exit code 0: it holds; 1: it does not; 2: there is nothing to check; 3: it holds as far as could be checked"


def main(words: Sequence[str] | None = None) -> int:
    """Check a release and print every check."""
    parser = argparse.ArgumentParser("deniable-verify", description=__doc__, epilog=EPILOG)
    parser.add_argument("folder", help="the folder of a release")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON: true, false, or null")
    parser.add_argument("--signed-by", metavar="SHA256:..", help="fail unless the key of this fingerprint signed it")
    given = parser.parse_args(words)
    try:
        certificate = verify(given.folder, signed_by=given.signed_by)
    except NoReleaseError as problem:
        print(f"deniable-verify: {problem}. Fix: name the folder of a release.", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps({"release": given.folder, **certificate.to_dict()}, indent=1, ensure_ascii=False))
    else:
        print(certificate)
    return certificate.exit_code


if __name__ == "__main__":
    sys.exit(main())
