"""Randomness: a secret key, random words that are a pure function of the key, a purpose and a position, and noise from
them.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from deniable.core.errors import (
    InternalError,
    OptionError,
    SecretError,
    TableError,
    option,
    shortened,
    warn_caller,
)
from deniable.core.values import LARGEST_WHOLE, Codes, Ints, Words

# -- Randomness: a secret key, and random words that are a pure function of the key, a purpose and a position ----------
#     word i = bytes 8i..8i+7 of AES-256-CTR under HKDF-SHA256(secret key, purpose)
#
# A row's draw is the word at the row's number (or a word made of its record id), so a release does not depend on the
# number of threads, the size of batches or the order in which they run. Whoever has the key can undo the release.


KEY_BYTES = 32
Source = Literal["operating system", "key", "key file", "seed", "series"]

_ZEROS = bytes(256 * 1024)  # CTR turns zeros into keystream; a quarter megabyte stays in the processor's cache
_BLOCK = 16


class SeedWarning(UserWarning):
    """A seed was used where a secret key belongs."""


@dataclass(frozen=True)
class Secret:
    """The key that every random number of a release comes from.

    Attributes:
        key: 32 bytes, never shown.
        source: where the key came from, for the manifest.
        seed: the seed, where there is one.
    """

    key: bytes = field(repr=False)
    source: Source = "key"
    seed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            size = f"{len(self.key)} bytes" if isinstance(self.key, bytes) else f"a {type(self.key).__name__}"
            raise SecretError(
                f"A key is {KEY_BYTES} bytes; got {size}. Fix: leave it out, or make one with secrets.token_bytes(32)."
            )

    @property
    def fresh(self) -> bool:
        """Whether the key is new and will be forgotten, so that nothing else can ever share its draws."""
        return self.source == "operating system"

    @classmethod
    def generate(cls) -> Secret:
        """A fresh key from the operating system."""
        return cls(os.urandom(KEY_BYTES), "operating system")

    @classmethod
    def from_key(cls, key: bytes) -> Secret:
        """A key that the caller keeps."""
        return cls(key, "key")

    @classmethod
    def from_seed(cls, seed: int) -> Secret:
        """A key that anyone can compute from a number: for experiments only."""
        if isinstance(seed, bool) or not isinstance(seed, int) or not -LARGEST_WHOLE <= seed < LARGEST_WHOLE:
            raise SecretError(
                f"seed = {shortened(seed)} is no whole number of 64 bits. Fix: {option('seed', 1)}, say, or a key of "
                "32 bytes."
            )
        warn_caller(
            f"seed = {seed}: anyone who knows or guesses the seed can undo this release. Use it for experiments, "
            "not for publication; leave seed out to publish.",
            SeedWarning,
        )
        return cls(_derive(str(seed).encode(), ("deniable", "seed")), "seed", seed)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Secret:
        """A key from a file of 64 hexadecimal digits or 32 raw bytes that only its owner can read."""
        try:
            with open(path, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                content = file.read(1024)
        except FileNotFoundError:
            raise SecretError(
                f"The key file {str(path)!r} cannot be read: there is none. Fix: check the name, or make one: openssl "
                "rand -hex 32, in a file of mode 600; at a terminal --new-key-file makes it."
            ) from None
        except OSError as problem:
            raise SecretError(
                f"The key file {str(path)!r} cannot be read: {problem.strerror}. Fix: name a file."
            ) from None
        if os.name == "posix" and mode & 0o077:
            raise SecretError(
                f"The key file {str(path)!r} has mode {mode:03o}: others can read or change it. "
                f"Fix: chmod 600 {str(path)!r}, and make a new key if others may have read it."
            )
        if len(content) == KEY_BYTES:
            return cls(content, "key file")
        with suppress(ValueError):
            key = bytes.fromhex(content.decode("ascii").strip())
            if len(key) == KEY_BYTES:
                return cls(key, "key file")
        raise SecretError(
            f"The key file {str(path)!r} holds no key: it must hold 64 hexadecimal digits or 32 bytes. "
            "Fix: make one with 'openssl rand -hex 32'."
        )


def _derive(key: bytes, purpose: tuple[str, ...]) -> bytes:
    """HKDF-SHA256 with each part of the purpose preceded by its length, so that ("ab", "c") is not ("a", "bc")."""
    parts = [part.encode() for part in purpose]
    info = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(key)


class Keystream:
    """An endless array of random 64-bit words for one purpose; any part of it can be computed at any time.

    >>> stream = Keystream(Secret.from_key(bytes(32)), "doctest")
    >>> bool((stream.words(0, 10)[3:7] == stream.words(3, 4)).all())
    True
    """

    def __init__(self, secret: Secret, *purpose: str) -> None:
        self.purpose = purpose
        self._secret = secret
        self._key = _derive(secret.key, (*purpose, "words"))
        self._contexts = threading.local()  # a cipher context has a position, so threads cannot share one

    def __reduce__(self) -> tuple[type[Keystream], tuple[Secret | str, ...]]:
        return Keystream, (self._secret, *self.purpose)

    def subkey(self, *purpose: str) -> Keystream:
        """The keystream for a narrower purpose: Keystream(s, "a").subkey("b") is Keystream(s, "a", "b")."""
        return Keystream(self._secret, *self.purpose, *purpose)

    def words(self, start: int, count: int, out: Words | None = None) -> Words:
        """Words start, start + 1, ... start + count - 1."""
        if out is None:
            out = np.empty(count, dtype=np.uint64)
        if start < 0 or out.shape != (count,) or out.dtype != np.uint64 or not out.flags.c_contiguous:
            raise InternalError("keystream words need a position of 0 or more and a contiguous uint64 array")
        if count == 0:
            return out
        context = self._at_block(start * 8 // _BLOCK)
        target = memoryview(out.data).cast("B")
        done = 0
        if start % 2:  # an odd word is the second half of its AES block
            target[:8] = context.update(_ZEROS[:_BLOCK])[8:]
            done = 8
        while done < len(target):
            size = min(len(_ZEROS), len(target) - done)
            context.update_into(memoryview(_ZEROS)[:size], target[done : done + size])
            done += size
        if sys.byteorder == "big":
            out.byteswap(inplace=True)
        return out

    def _at_block(self, block: int) -> CipherContext:
        counter = block.to_bytes(_BLOCK, "big")
        context: CipherContext | None = getattr(self._contexts, "context", None)
        if context is None:
            context = self._contexts.context = Cipher(algorithms.AES(self._key), modes.CTR(counter)).encryptor()
        else:
            context.reset_nonce(counter)
        return context

    def words_of(self, ids: pa.Array | pa.ChunkedArray) -> Words:
        """One word per record id, a pure function of the id: equal ids get equal words, wherever they stand.

        Whole numbers of any width are encrypted as one AES block; anything else goes through keyed BLAKE2b together
        with its type, so that 5 and "5" differ. The key is not the one of ``words``: a block of CTR would repeat.
        """
        ids = stored(ids)
        if ids.null_count:
            raise TableError(
                f"A record id is missing in some rows. Fix: fill them, or name another column in {option('row_id')}."
            )
        key = _derive(self._secret.key, (*self.purpose, "record ids"))
        if pa.types.is_integer(ids.type):
            numbers = ids.to_numpy(zero_copy_only=False)
            # Negative numbers wrap; the other half of the block tells them apart.
            return _encrypted(key, numbers.astype(np.uint64), numbers < 0)
        return _hashed(key, ids)

    def words_for(self, words: Words, codes: npt.NDArray[np.integer]) -> Words:
        """One word for each pair of a word (of a person) and a code (of a value), a pure function of both."""
        return _encrypted(_derive(self._secret.key, (*self.purpose, "persons and values")), words, codes)


def stored(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Record ids as one array of plain values, whatever holds them."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if isinstance(ids, pa.ExtensionArray):
        ids = ids.storage
    return ids.dictionary_decode() if pa.types.is_dictionary(ids.type) else ids


def _encrypted(key: bytes, first: Words, second: Codes) -> Words:
    """The first half of each AES block that two numbers make."""
    blocks = np.stack([first, second.astype(np.uint64)], axis=1).astype("<u8")
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    words = np.frombuffer(cipher.update(blocks.tobytes()), dtype="<u8")[::2]
    return np.ascontiguousarray(words, dtype=np.uint64)


def _hashed(key: bytes, ids: pa.Array) -> Words:
    kind = ids.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        label, texts = "text", ids.cast(pa.large_binary())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        label, texts = "binary", ids
    else:
        try:
            label, texts = str(kind), ids.cast(pa.string()).cast(pa.large_binary())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise TableError(
                f"A column of type {kind} cannot name rows. Fix: name a column of numbers or texts."
            ) from None
    prefix = label.encode()
    keyed = hashlib.blake2b(len(prefix).to_bytes(4, "big") + prefix, digest_size=8, key=key)
    digests = []
    for text in texts.to_pylist():
        state = keyed.copy()
        state.update(text)
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def drawn_rows(keystream: Keystream, rows: int, count: int) -> Ints:
    """``count`` different numbers below ``rows``, every choice equally likely but for a share of rows / 2^64."""
    drawn: dict[int, None] = {}
    position = 0
    while len(drawn) < count:
        drawn[int(keystream.words(position, 1)[0]) % rows] = None
        position += 1
    return np.array(list(drawn), dtype=np.int64)


# -- Noise in counts: discrete Laplace, drawn in whole numbers from a keystream ----------------------------------------


SMALLEST_EPSILON, LARGEST_EPSILON = 1e-4, 20.0


def discrete_laplace(keystream: Keystream, size: int, epsilon: float) -> Ints:
    """Discrete Laplace noise, P(k) = (1-a)/(1+a) a^|k| with a = e^-epsilon, as the difference of two geometric draws.

    A draw is the number of k >= 1 with u < a^k 2^64, u a 64-bit word: P(G >= k) is a^k up to 2^-64 for each k, and the
    noise within 90/epsilon 2^-64 of P in total variation (that much delta, beside epsilon).
    """
    thresholds = _geometric_thresholds(epsilon)
    words = keystream.words(0, 2 * size)
    draws = len(thresholds) - np.searchsorted(thresholds, words, side="right")
    noise: Ints = (draws[0::2] - draws[1::2]).astype(np.int64)
    return noise


def discrete_laplace_variance(epsilon: float) -> float:
    """The variance of discrete Laplace noise, 2 a / (1-a)^2 with a = e^-epsilon.

    >>> round(discrete_laplace_variance(1.0), 4)
    1.8413
    """
    _check_epsilon(epsilon)
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


@lru_cache(maxsize=8)
def _geometric_thresholds(epsilon: float) -> Words:
    """floor(a^k 2^64) for k = 1, 2, ... until it is 0, in rising order; whole numbers with 64 guard bits."""
    _check_epsilon(epsilon)
    with localcontext() as context:
        context.prec = 60
        ratio = int((-Decimal(epsilon)).exp() * 2**128)
    thresholds = []
    power = ratio
    while power >> 64:
        thresholds.append(power >> 64)
        power = power * ratio >> 128
    return np.array(thresholds[::-1], dtype=np.uint64)


def _check_epsilon(epsilon: float) -> None:
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise OptionError(
            f"epsilon = {epsilon} is not allowed for noise: choose {SMALLEST_EPSILON} to {LARGEST_EPSILON:g}."
        )
