"""The collection server: it only ever sees answers that were changed at random where they were given."""
