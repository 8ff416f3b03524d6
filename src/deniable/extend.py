"""The names that other packages may build on, beside the public ones: a mechanism, an engine, a file format, a learner.

A package outside registers what it adds by entry points (docs/how-to/extend.md); the houses ``spark``, ``files`` and
``learn`` of this package are written against these names alone, which the architecture test holds.
"""

from __future__ import annotations

from deniable.core.channels import Channel, Replace
from deniable.core.errors import (
    ColumnError,
    DeniableError,
    ExtraMissingError,
    InternalError,
    OptionError,
    OutputError,
    QuestionError,
    RequirementError,
    TableError,
    did_you_mean,
    extra_missing,
    listing,
    option,
    shortened,
)
from deniable.core.histogram import Histogram
from deniable.core.manifest import DataFile, Manifest
from deniable.core.part import Part
from deniable.core.plan import Cell, Plan, PlannedPart
from deniable.core.privacy import Privacy
from deniable.core.promise import Amplification, Guarantee
from deniable.core.tally import Block, CodedRows, CodeMask, Counter, Derived, Moments
from deniable.core.transforms import Bins, BinsLike, Steps, as_bins
from deniable.core.values import Bools, Floats, Ints, Labels, Words, texts_of
from deniable.estimation.fitting.sources import Source, sources_of
from deniable.mechanisms.base import Mechanism, Need
from deniable.release.folder import write_file
from deniable.release.release import Release
from deniable.tables.base import (
    BATCH_ROWS,
    ROW_GROUP,
    Domain,
    Job,
    PartJob,
    Progress,
    RangeScan,
    Scan,
    no_progress,
    repeated,
)
from deniable.tables.content import (
    PIECE_ROWS,
    Sketch,
    Sketcher,
    content,
    content_schema,
    digest_of_piece,
    digest_of_pieces,
)
from deniable.tables.counting import CodeCounter, local_counter
from deniable.tables.dataset import LocalEngine
from deniable.tables.encoding import DomainScanner, decoded, is_text, plain_type, require_columns, without_rows
from deniable.tables.formats import FileFormat, to_table
from deniable.tables.inspection import OrderWatch, identifier_warnings, require_short
from deniable.tables.keys import Keystream
from deniable.tables.ranges import RangeScanner
from deniable.tables.shuffling import SORT_KEY, order_of, rechunked, shuffled_in_memory
from deniable.tables.storage import StoredRows, digest_of, digest_of_parts, part_name
from deniable.tables.transforms import (
    Plans,
    Resolved,
    binned,
    binned_schema,
    rare_note,
    recoded,
    recoded_schema,
    require_numbers,
    resolved,
)
from deniable.tables.worker import Piece, Worker, added, published_schema

__all__ = [
    "BATCH_ROWS",
    "PIECE_ROWS",
    "ROW_GROUP",
    "SORT_KEY",
    "Amplification",
    "Bins",
    "BinsLike",
    "Block",
    "Bools",
    "Cell",
    "Channel",
    "CodeCounter",
    "CodeMask",
    "CodedRows",
    "ColumnError",
    "Counter",
    "DataFile",
    "DeniableError",
    "Derived",
    "Domain",
    "DomainScanner",
    "ExtraMissingError",
    "FileFormat",
    "Floats",
    "Guarantee",
    "Histogram",
    "InternalError",
    "Ints",
    "Job",
    "Keystream",
    "Labels",
    "LocalEngine",
    "Manifest",
    "Mechanism",
    "Moments",
    "Need",
    "OptionError",
    "OrderWatch",
    "OutputError",
    "Part",
    "PartJob",
    "Piece",
    "Plan",
    "PlannedPart",
    "Plans",
    "Privacy",
    "Progress",
    "QuestionError",
    "RangeScan",
    "RangeScanner",
    "Release",
    "Replace",
    "RequirementError",
    "Resolved",
    "Scan",
    "Sketch",
    "Sketcher",
    "Source",
    "Steps",
    "StoredRows",
    "TableError",
    "Words",
    "Worker",
    "added",
    "as_bins",
    "binned",
    "binned_schema",
    "content",
    "content_schema",
    "decoded",
    "did_you_mean",
    "digest_of",
    "digest_of_parts",
    "digest_of_piece",
    "digest_of_pieces",
    "extra_missing",
    "identifier_warnings",
    "is_text",
    "listing",
    "local_counter",
    "no_progress",
    "option",
    "order_of",
    "part_name",
    "plain_type",
    "published_schema",
    "rare_note",
    "rechunked",
    "recoded",
    "recoded_schema",
    "repeated",
    "require_columns",
    "require_numbers",
    "require_short",
    "resolved",
    "shortened",
    "shuffled_in_memory",
    "sources_of",
    "texts_of",
    "to_table",
    "without_rows",
    "write_file",
]
