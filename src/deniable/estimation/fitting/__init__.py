"""Models of rows whose originals are not known: weighted estimating equations (mathematics 8)."""
