"""Learned releases (mathematics 14): noisy tables of columns by value, a model of them, and rows dealt from it."""
