"""The README inside a release: for the analyst who receives it, with deniable or without."""

from __future__ import annotations

from deniable.core.manifest import Manifest


def analyst_readme(manifest: Manifest) -> str:
    """What this is, how to query it, what it promises and what it does not."""
    sensitive = ", ".join(f"`{name}`" for name in manifest.sensitive_columns)
    first = next((name for name in manifest.sensitive_columns if manifest.column_domains[name]), None)
    if first is None:  # only ranges of numbers
        first, scope = manifest.parts[0].columns[0], manifest.parts[0].range or {}
        example = str(scope.get("low", 0))
    else:
        example = str(manifest.column_domains[first][0]).replace("'", "''")[:40].split("\n")[0]
    promises = "\n".join(f"- {line}" for line in (manifest.guarantee["sentence"], *manifest.guarantee["also"]))
    limits = "\n".join(f"- {line}" for line in manifest.guarantee["not_protected"])
    seed = (
        "\n**This release was made from a seed, for an experiment: whoever knows the seed can undo it.**\n"
        if manifest.randomness.source == "seed"
        else ""
    )
    by_cell = ", cell by cell (column `cell`), and add up" if manifest.cells_published else ""
    return f"""# A release with deniable values

{manifest.rows:,} rows. The values of {sensitive} were perturbed at random, row by row (mechanism
`{manifest.mechanism}`): any single one may be replaced, so no row says what a person's value was. Counts over many rows
can be reconstructed. All other columns are as they were.
{seed}
Do not count {sensitive} directly: replaced values distort every count. Ask like this instead:

    pip install deniable
    deniable query . "SELECT COUNT(*) AS n FROM release WHERE {first} = '{example}'"

or in Python:

    import deniable as dn
    release = dn.open_release(".")
    print(release.count(where={{{first!r}: {example!r}}}))

`deniable verify .` recomputes the guarantee. Without deniable: `manifest.json` holds every channel as whole numbers out
of 2^32. A value x is kept with probability p_x = keep/2^32, and otherwise replaced by y with probability
r_y = replace/2^32 (in a range of numbers: 1 / the number of its points), so P[y][x] = p_x [x = y] + (1 - p_x) r_y.
Solve P f = o for the true counts f, o being the counts you see among the rows of your question{by_cell}.

## What is promised

{promises}

## What is not protected

{limits}
"""
