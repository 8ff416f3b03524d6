"""Baselines: mechanisms that everything is compared with (SPEC 9)."""
