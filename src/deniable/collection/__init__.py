"""Private collection: respondents perturb their own answers, and nobody ever holds the originals."""
