"""The desk: a page on the owner's own machine, from a table to a signed release."""
