"""Small-domain randomization: balance, rearrange, merge (mathematics 4)."""

from __future__ import annotations

from deniable.mechanisms.small_domain.mechanism import SmallDomain

__all__ = ["SmallDomain"]
