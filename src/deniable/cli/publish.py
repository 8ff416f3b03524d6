"""`deniable publish`: from a table to a release."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli import console, options
from deniable.cli.options import (
    Contact,
    Dictionary,
    EngineName,
    Master,
    Publisher,
    about_of,
    one_source_of_randomness,
)
from deniable.core.errors import OptionError, RequirementError, counted, did_you_mean
from deniable.core.plan import Choice
from deniable.core.privacy import Privacy
from deniable.core.transforms import BinsLike, require_fixed
from deniable.mechanisms import Mechanism
from deniable.mechanisms.registry import AUTO
from deniable.owner.decision import FIRST, MUST_NOT, Decision, with_changes
from deniable.owner.project import Project
from deniable.publishing.advice import Advice
from deniable.publishing.recoding import Recoding
from deniable.release.folder import write_file


def publish(
    *,
    files: options.Files,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write the release to.")],
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column to perturb. Several are perturbed together, as one column of tuples; with decoys and "
            "retention each by itself. Left out where the mechanism names its columns: retention:age=0.5@17..90.",
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A project file (deniable.toml), which deniable risk TABLE --project FILE proposes: roles and "
            "recodings of columns, requirement, decisions. Options beside it change it, and it is written back.",
        ),
    ] = None,
    rho2: options.Rho2 = None,
    rho1: options.Rho1 = None,
    epsilon: options.Epsilon = None,
    adversary: options.Adversary = "frequency",
    requirements: options.Requirements = None,
    tolerance: options.Tolerance = None,
    exempt: options.Exempt = None,
    small_sums: options.SmallTerms = None,
    large_sums: options.LargeTerms = None,
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How: auto (synthetic where it is predicted to answer best, else what perturbs row by row), "
            f"{options.NAMES}. Options follow the name: decoys:c=5, or retention:age=0.5@17..90,job=0.6.",
        ),
    ] = AUTO,
    epsilon_limit: options.EpsilonLimit = "3",
    pool: Annotated[
        str | None,
        typer.Option(
            metavar="POOL",
            help=f"With auto or designed: choose for these questions. {options.ONE_POOL_HELP}",
        ),
    ] = None,
    bins: options.BinEdges = None,
    recode: options.RecodeSteps = None,
    rare: options.RareRows = None,
    suppress: options.SuppressRows = None,
    domain: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            metavar="COLUMN=FILE",
            help="All values that a sensitive column may hold, whether or not the table shows them, one a line. Needed "
            "with --adversary any-prior and --small-sums, where the list of values is evidence itself.",
        ),
    ] = None,
    drop: options.Drop = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The format of the data: parquet or csv.")
    ] = "parquet",
    missing: options.Missing = "value",
    row_id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that names the row; it is not published. Under one key a row's draw then does not depend on "
            "the order of the rows.",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that names the person of a row, where people have several rows; it is not published. Rows "
            "of a person with the same value are published alike, and are one look at that person.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that names a household, or another group whose members' values follow from each other; it "
            "is not published. With synthetic, whose promise then covers the whole group.",
        ),
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Publish the table again and again: this secret file keeps the key, the plan and who was published, "
            "so that whoever has not changed is published as before. Needs --person or --row-id; with synthetic it "
            "keeps a budget, and needs --publications.",
        ),
    ] = None,
    publications: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Of a new series of synthetic: how many publications share the budget. A table that has not changed "
            "is published as it was, for nothing.",
        ),
    ] = None,
    changes: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Of a new series: how often a person's value may change (2)."),
    ] = None,
    new_people: Annotated[
        bool,
        typer.Option(
            "--new-people",
            help="Of a series: every id that is new names someone whom the series has not published, however like "
            "another id it is, and however few of the table are known.",
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Publish although the ledger beside the key file, or the memory of your publications, says that this "
            "is a second look.",
        ),
    ] = False,
    no_shuffle: Annotated[
        bool, typer.Option("--no-shuffle", help="Keep the order of the rows, which may give values away.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the secret key from this file, to make the same release again. Whoever has it can "
            "undo the release.",
        ),
    ] = None,
    new_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Make a key and keep it in this new file (mode 0600), outside the release."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Sign the release with the Ed25519 private key in this file (ssh-keygen -t ed25519, or PEM).",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="For experiments only: anyone who guesses the seed can undo the release."),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="A name for the release; other people under one key need another one.")
    ] = "release",
    publisher: Publisher = None,
    contact: Contact = None,
    dictionary: Dictionary = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=REASON",
            help="A part of the decision is meant to be so, and why: --accept 'rows alone=All are in the register'. "
            "Kept in the project file, or beside the release.",
        ),
    ] = None,
    despite: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Publish what must not be published, and why. The reason is kept in the project file, or beside the "
            "release, and never in it.",
        ),
    ] = None,
    marginals: Annotated[
        bool | None,
        typer.Option(
            "--marginals/--no-marginals",
            help="Publish a noisy histogram, which makes answers more accurate. By default where the attacker knows "
            "frequencies anyway; against any prior it is paid for by a tenth of what is required.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a release that is already there.")] = False,
    engine: EngineName = "local",
    master: Master = None,
    quiet: console.Quiet = False,
    as_json: console.AsJson = False,
) -> None:
    """Publish a table with sensitive values that are learned or perturbed, so that each stays deniable.

    Without a key file the key is made by the operating system, kept in memory and forgotten. Nothing is written
    unless the whole release is. Exit code 0: it may be given away. 3: written, and something is to be decided first.
    1: it must not be published, and nothing is written (but with --despite).

    Example: deniable publish patients.csv --sensitive disease --rho2 1/6 --drop name --out release/
    """
    import deniable as dn
    from deniable.publishing.request import scan_table
    from deniable.tables import engine_on

    runs_on = engine_on(engine, master)
    one_source_of_randomness(key_file, new_key_file, seed)
    table, binned = options.one_or_many(files), options.bins_of(bins)
    planned = None
    if project is not None:
        roles = {"drop": drop, "person": [person], "group": [group], "row_id": [row_id]}
        planned = Project.read(project).fitting(runs_on.open(table).names)
        planned = planned.changed(
            sensitive=sensitive or (),
            roles={name: role for role, names in roles.items() for name in names or () if name is not None},
            recodes={column: how for column, _, how in (text.partition("=") for text in recode or ())},
            requirement={"rho1": rho1, "rho2": rho2, "epsilon": epsilon, "adversary": adversary, "exempt": exempt},
            mechanism=mechanism,
            missing=missing,
            rare=rare or (),
        )
        stated = planned.options()
        sensitive, drop, recode, rare, exempt = (
            stated[name] for name in ("sensitive", "drop", "recode", "rare", "exempt")
        )
        rho1, rho2, epsilon, adversary = (stated[name] for name in ("rho1", "rho2", "epsilon", "adversary"))
        person, group, row_id = (stated[name] for name in ("person", "group", "row_id"))
        mechanism, missing = planned.mechanism, planned.missing
    named = list(sensitive or [])
    if not named and not mechanism.startswith("retention:"):
        raise OptionError("No column is named. Fix: --sensitive COLUMN, the column that must stay deniable.")
    recoding = options.recoding_of(recode, rare, suppress)
    if tolerance is not None:
        require_fixed(binned, "--tolerance")
    required = options.Required(rho2, rho1, adversary, requirements, tolerance, exempt, small_sums, large_sums, epsilon)
    privacy = required.privacy(
        table,
        named,
        binned,
        lambda: scan_table(table, named, missing=missing, bins=binned, recoding=recoding, engine=runs_on),
        runs_on,
    )
    if privacy is None and mechanism == AUTO:
        raise RequirementError(
            "Nothing is required of the release. Fix: --rho2 1/3: how sure an attacker may become; or --epsilon 1."
        )
    chosen: Any = mechanism
    why = ""
    if pool is not None:
        if runs_on.name != "local":
            raise OptionError(f"--pool asks the table on this machine, and --engine {engine} keeps it elsewhere.")
        require_fixed(binned, "--pool")
        unseen = [*(drop or []), *(name for name in (row_id, person) if name is not None)]
        limit = options.epsilon_limit_of(epsilon_limit)
        chosen, why = _chosen_for(pool, mechanism, privacy, limit, table, named, unseen, binned, recoding, missing)
    judge = Judge(out, planned, accept or (), despite, seed is not None)
    with console.progress_bar(shown=not quiet and not as_json) as progress:
        release = dn.publish(
            table,
            sensitive=named or None,
            privacy=privacy,
            mechanism=chosen,
            epsilon_limit=options.epsilon_limit_of(epsilon_limit),
            drop=drop or (),
            out=out,
            key_file=key_file,
            new_key_file=new_key_file,
            seed=seed,
            row_id=row_id,
            person=person,
            group=group,
            series=series,
            publications=publications,
            changes=changes,
            new_people=new_people,
            again=again,
            shuffle=not no_shuffle,
            missing=missing,
            bins=binned,
            recode=recoding.columns,
            rare=recoding.rare,
            suppress=recoding.suppress,
            domain=options.domains_of(domain),
            overwrite=overwrite,
            format=format_,
            name=name,
            about=about_of(publisher, contact, dictionary),
            marginals=marginals,
            progress=progress,
            sign=sign,
            engine=runs_on,
            judge=judge,
        )
    judge.record(project)
    choice = replace(release.choice, chosen=why) if release.choice is not None and why else release.choice
    report(out, judge.notes(), choice, judge.decision, quiet=quiet, as_json=as_json)
    recall = None if judge.advice is None else judge.advice.recall
    if recall is not None and not recall.memory.looks and not quiet:
        console.say(f"From now on your publications are remembered in {recall.memory.path}, for you alone.")
    raise typer.Exit(judge.decision.exit_code)


@dataclass
class Judge:
    """The decision on a publication, taken before anything is written, and what its owner decided.

    Attributes:
        out: the folder of the release.
        project: of the table, where there is one.
        accepted: parts that are meant to be so, ``PART=REASON``.
        why: why it is published although it must not be.
        is_experiment: whether its draws come from a seed, which says by itself that nobody is to get it.
        taken: the decision as it was before the owner decided anything.
        decision: the same afterwards.
    """

    out: Path
    project: Project | None
    accepted: Sequence[str]
    why: str | None
    is_experiment: bool
    taken: Decision = field(default_factory=lambda: Decision(()))
    decision: Decision = field(default_factory=lambda: Decision(()))
    advice: Advice | None = None

    def notes(self) -> Sequence[str]:
        """What is odd, and calls for no decision."""
        return () if self.advice is None else self.advice.notes

    def __call__(self, advice: Advice) -> None:
        """Refuse what must not be published."""
        self.advice, words = advice, ["deniable", *sys.argv[1:]]
        words += [] if "--overwrite" in words else ["--overwrite"]  # what is decided on has been written by then
        self.taken = replace(advice.decision, command=lambda changes: with_changes(words, changes))
        decision = self.taken if self.project is None else self.taken.with_decisions(self.project.decisions)
        parts = [point.part for point in decision.points]
        for text in self.accepted:
            part, _, reason = text.partition("=")
            if part not in parts or not reason.strip():
                raise OptionError(
                    f"--accept {text!r} is no part of this decision with a reason.{did_you_mean(part, parts)} "
                    f"Fix: PART=REASON, with one of: {', '.join(dict.fromkeys(parts))}."
                )
            decision = decision.accepting(part, reason.strip())
        if self.why is not None:
            decision = decision.despite(self.why)
        elif self.is_experiment and all(one.part == "seed" for one in decision.open if one.grade == "never"):
            decision = decision.despite("--seed: an experiment.")
        self.decision = decision
        if decision.verdict == MUST_NOT:
            for line in decision.lines():
                console.show(line)
            reasons = [point.in_words() for point in decision.decisions] if console.wants_json(words) else []
            message = " ".join([decision.headline, *reasons, NOT_WRITTEN])
            raise console.BadNewsError("MustNotBePublished", message, decision.exit_code)

    def record(self, place: Path | None) -> None:
        """Keep what was decided: in the project file, or beside the release where somebody decided something."""
        manifest = hashlib.sha256((self.out / "manifest.json").read_bytes()).hexdigest()
        if place is not None and self.project is not None:
            project = self.project
            for text in self.accepted:
                part, _, reason = text.partition("=")
                for point in self.taken.points:
                    if point.part == part and point.grade == "decide":
                        project = project.accepting(part, point.columns, reason, figure=point.figure)
            project.recorded(self.taken.verdict, release=manifest, despite=self.why or "").write(place)
        elif self.accepted or self.why:
            record = {"release": manifest, "despite": self.why or "", "accepted": list(self.accepted)}
            text = json.dumps({**record, "decision": self.decision.to_dict()}, indent=2, ensure_ascii=False)
            beside = self.out.with_name(f"{self.out.name}-decision.json")
            write_file(beside, text + "\n", private=True)
            console.say(f"What you decided is in {beside}. It is for you alone.")


NOT_WRITTEN = "Nothing was written. Fix: what is named above, or --despite 'the reason' to publish it all the same."


def report(
    out: Path,
    notes: Sequence[str],
    choice: Choice | None = None,
    decision: Decision | None = None,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Say what was published, what it promises, and what is to be decided."""
    for note in notes:
        console.warn(note)
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    parts = {name: manifest[name] for name in ("rows", "mechanism", "guarantee", "randomness")}
    if as_json:
        described = {} if choice is None else {"choice": choice.to_dict()}
        decided = {} if decision is None else {"decision": decision.to_dict()}
        console.emit({"release": str(out), **parts, **described, **decided, "warnings": list(notes)})
        return
    console.show(f"Published {manifest['rows']:,} rows in {out}")
    if choice is not None and choice.chosen:
        console.show(f"Mechanism: {choice.chosen}.")
    console.show(manifest["guarantee"]["sentence"])
    for line in (*manifest["guarantee"]["also"], *([choice.in_words] if choice and choice.in_words else [])):
        console.show(line)
    for line in () if decision is None else decision.lines():
        console.show(line)
    if not quiet:
        lines, following = manifest["guarantee"]["not_protected"], f"Next: deniable verify {shlex.quote(str(out))}"
        if decision is not None and decision.verdict == FIRST:  # it will be published again, and said then
            console.say(f"Not protected: {counted(len(lines), 'thing')}, in README.md of the release. {following}")
            return
        console.say("Not protected:")
        for line in in_few(lines):
            console.say(f"  - {line}")
        console.say(following)


SAID = 4  # lines about what is not protected, the last of which counts the others


def in_few(lines: Sequence[str]) -> list[str]:
    """As many lines as one reads; the others are in the release."""
    if len(lines) <= SAID:
        return list(lines)
    return [*lines[: SAID - 1], f"{len(lines) - SAID + 1} more, in README.md of the release."]


def _chosen_for(
    pool: str,
    mechanism: str,
    privacy: Privacy | None,
    limit: Fraction | None,
    table: str | list[str],
    sensitive: list[str],
    drop: list[str],
    binned: dict[str, BinsLike],
    recoding: Recoding,
    missing: str,
) -> tuple[Mechanism, str]:
    """The mechanism for an owner's own questions, designed for them or the planner's choice, and why it was chosen."""
    from deniable.owner.risk import MADE_FOR, asked_table, one_pool
    from deniable.planning.outlook import limit_for
    from deniable.planning.planner import compare, within_limit

    if mechanism not in (AUTO, *MADE_FOR) or privacy is None or len(sensitive) > 1:
        raise OptionError(
            f"--pool {pool} needs one sensitive column, a requirement (--rho2), and a mechanism that can be made for "
            f"questions. Fix: --mechanism {', or --mechanism '.join((*MADE_FOR, AUTO))}."
        )
    questions = one_pool(
        asked_table(table, sensitive[0], drop=drop, bins=binned, missing=missing, recoding=recoding), pool
    )
    if mechanism in MADE_FOR:
        return MADE_FOR[mechanism](questions.profile), ""
    comparison = within_limit(
        compare(
            questions.table.histogram,
            privacy,
            pool=questions,
            limit=limit_for(privacy, limit),
            columns=len(questions.table.columns),
        ),
        limit_for(privacy, limit),
    )
    return comparison.recommended.mechanism, comparison.in_one_line()
