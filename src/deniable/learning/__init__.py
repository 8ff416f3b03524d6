"""Learned releases (mathematics 14): noisy tables of public columns by value, a model of them, and rows dealt from it."""
