"""Commands without pandas: where it is installed, Arrow imports it for the first list that it is given.

That takes as long as all else that a short command does, and no command has a frame of pandas to give to Arrow.
"""

from __future__ import annotations

import sys
from typing import Any


class _NoPandas:
    """A finder that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def leave_pandas_out() -> None:
    """Let Arrow look for pandas in vain: it does so once. Whoever needs pandas later imports it, Arrow included."""
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)
