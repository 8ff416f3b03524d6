"""One id in many spellings: 5, 5.0, '5', '005', 'P05' and 'p5 ' may name one person, to whom a series must not do as if
they were new (mathematics 13.14)."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pyarrow as pa

from deniable.core.arrays import Words
from deniable.engines.randomness import Keystream, stored

BLANKS = re.compile(r"\s+")
LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")  # of every number in a text, but not behind a point: 1.05 is not 1.5
WHOLE = re.compile(r"(?<=\d)\.0+$")
NUMBER = re.compile(r"[0-9]{1,20}")


def plain(text: str) -> str:
    """What an id has in common with its other spellings: no capitals, blanks, leading zeros or forms of letters.

    >>> plain(" P-007.0"), plain("ｐ-7"), plain("1.10"), plain("0")
    ('p-7', 'p-7', '1.10', '0')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return WHOLE.sub("", LEADING_ZEROS.sub("", BLANKS.sub("", folded)))


def words_of_spellings(keys: Keystream, ids: pa.Array | pa.ChunkedArray) -> Words:
    """One word per id, the same for all spellings of it, of whatever type."""
    if pa.types.is_integer(ids.type):
        return keys.words_of(ids)
    texts = [plain(text) for text in _texts(ids)]
    words = keys.words_of(pa.array(texts, pa.string()))
    numbers = {place: int(text) for place, text in enumerate(texts) if NUMBER.fullmatch(text) and int(text) < 2**64}
    if numbers:  # as a column of numbers has them
        words[list(numbers)] = keys.words_of(pa.array(numbers.values(), pa.uint64()))
    return words


def _texts(ids: pa.Array | pa.ChunkedArray) -> list[str]:
    """Ids as texts; a whole number has no point, however it is stored."""
    ids = stored(ids)
    if pa.types.is_floating(ids.type):
        numbers = np.asarray(ids.to_numpy(zero_copy_only=False), dtype=np.float64).tolist()
        return [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
    if pa.types.is_binary(ids.type) or pa.types.is_large_binary(ids.type) or pa.types.is_fixed_size_binary(ids.type):
        return [value.decode("utf-8", "backslashreplace") for value in ids.to_pylist()]
    return list(ids.cast(pa.string()).to_pylist())
