"""Hostile inputs by the thousand: mutated manifests, damaged files, strange questions and options.

    python -m fuzz --minutes 10

Whatever is put in, deniable answers or refuses in words: no traceback, no hang, no more memory than the ceiling. A
program that uses the package, not a part of it.
"""
