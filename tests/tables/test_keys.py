"""Secrets stay secret, keystreams are AES-256-CTR by position, and noise has the distribution it says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

import deniable as dn
from deniable.core.errors import InternalError, OptionError, SecretError, TableError
from deniable.tables.keys import (
    Keystream,
    Secret,
    SeedWarning,
    _geometric_thresholds,
    discrete_laplace,
    discrete_laplace_variance,
    drawn_rows,
)

KEY = bytes(range(32))
GENERATE = Secret.generate  # while a test runs, keys are drawn from its name
FALSE_ALARM = 1e-6


def stream(*purpose: str) -> Keystream:
    return Keystream(Secret.from_key(KEY), *(purpose or ("test",)))


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_a_secret_never_shows_its_key():
    secret = Secret.from_key(KEY)
    for text in (repr(secret), str(secret), f"{secret}"):
        assert KEY.hex() not in text
        assert repr(KEY) not in text
        assert "key=" not in text


def test_generated_secrets_differ_and_say_where_they_come_from():
    first, second = GENERATE(), GENERATE()
    assert first.key != second.key
    assert (first.source, first.seed) == ("operating system", None)
    assert Secret.from_key(KEY).source == "key"


@pytest.mark.parametrize("key", [b"", bytes(16), bytes(31), bytes(33), "0" * 32, None, bytearray(32)])
def test_a_key_is_exactly_32_bytes(key):
    with pytest.raises(SecretError, match="32 bytes"):
        Secret.from_key(key)


def test_a_seed_warns_loudly_and_is_reproducible():
    with pytest.warns(SeedWarning, match="not for publication"):
        first = Secret.from_seed(7)
    with pytest.warns(SeedWarning):
        assert Secret.from_seed(7).key == first.key
    with pytest.warns(SeedWarning):
        assert Secret.from_seed(8).key != first.key
    assert (first.source, first.seed) == ("seed", 7)
    for wrong in (1.5, "7", True):
        with pytest.raises(SecretError, match="whole number"):
            Secret.from_seed(wrong)


def test_the_warning_about_a_seed_points_to_the_line_that_gave_it():
    table = pa.table({"disease": ["flu", "cold", "hiv"] * 100})
    with pytest.warns(SeedWarning) as direct:
        Secret.from_seed(7)
    with pytest.warns(SeedWarning) as deep:
        dn.publish(table, sensitive="disease", privacy=dn.Privacy(rho2="3/4"), seed=7, mechanism="uniform")
    assert [warning.filename for warning in (*direct, *deep)] == [__file__] * 2


def test_a_key_file_of_32_raw_bytes_is_read(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    assert Secret.read(str(path)).key == KEY


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_key_file_that_others_can_touch_is_refused(tmp_path, mode):
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(mode)
    with pytest.raises(SecretError, match="chmod 600"):
        Secret.read(path)


@pytest.mark.parametrize("content", [b"", KEY[:31], KEY + b"\n", KEY.hex().encode()[:-2], b"g" * 64, bytes(5000)])
def test_a_key_file_without_a_key_is_refused(tmp_path, content):
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SecretError, match="64 hexadecimal digits"):
        Secret.read(path)


def test_a_missing_key_file_is_named(tmp_path):
    with pytest.raises(SecretError, match=r"'.*absent' cannot be read"):
        Secret.read(tmp_path / "absent")
    with pytest.raises(SecretError, match="cannot be read"):
        Secret.read(tmp_path)


# -- keystreams --------------------------------------------------------------------------------------------------------


def test_words_are_aes_256_ctr_as_nist_specifies_it():
    """SP 800-38A F.5.5, CTR-AES256.Encrypt: key, initial counter, plaintext and ciphertext of the standard."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    keystream = stream()
    keystream._key = key
    words = keystream.words(2 * counter, 8)
    assert bytes(a ^ b for a, b in zip(words.astype("<u8").tobytes(), plain, strict=True)) == cipher


@pytest.mark.parametrize("start", [0, 1, 2, 7, 32_767, 2**33 + 1, 2**40])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 32_768, 70_001])
def test_words_are_a_pure_function_of_their_position(start, count):
    keystream = stream()
    encryptor = Cipher(algorithms.AES(keystream._key), modes.CTR((start // 2).to_bytes(16, "big"))).encryptor()
    expected = np.frombuffer(encryptor.update(bytes(16 * (count // 2 + 1))), "<u8")[start % 2 :][:count]
    assert np.array_equal(keystream.words(start, count), expected)
    out = np.zeros(count, np.uint64)
    assert keystream.words(start, count, out) is out
    assert np.array_equal(out, expected)


def test_words_refuse_what_they_cannot_fill():
    for start, count, out in [(-1, 2, None), (0, 2, np.zeros(3, np.uint64)), (0, 2, np.zeros(4, np.uint64)[::2])]:
        with pytest.raises(InternalError):
            stream().words(start, count, out)


def test_threads_share_a_keystream():
    keystream = stream()
    whole = keystream.words(0, 200_000)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda first: keystream.words(first, 1000), range(0, 200_000, 1000)))
    assert np.array_equal(np.concatenate(parts), whole)


def test_purposes_keys_and_subkeys_give_unrelated_words():
    streams = [
        stream("ab", "c"),
        stream("a", "bc"),
        stream("abc"),
        stream("ab", "c", ""),
        stream("ab"),
        Keystream(Secret.from_key(bytes(32)), "ab", "c"),
    ]
    assert len({s.words(0, 1)[0] for s in streams}) == len(streams)
    assert np.array_equal(stream("ab").subkey("c").words(5, 3), stream("ab", "c").words(5, 3))


def test_words_of_ids_depend_on_the_id_alone():
    keystream = stream()
    ids = pa.array([5, -5, 0, 2**62, 5])
    words = keystream.words_of(ids)
    assert words[0] == words[4]
    assert len(set(words.tolist())) == 4
    assert np.array_equal(keystream.words_of(pa.array([5, 0], pa.uint8())), words[[0, 2]])
    assert np.array_equal(keystream.words_of(pa.chunked_array([ids[:2], ids[2:]])), words)
    assert np.array_equal(keystream.words_of(ids.take(pa.array([3, 1]))), words[[3, 1]])
    wrapped = keystream.words_of(pa.array([2**64 - 5], pa.uint64()))
    assert wrapped[0] != words[1]


def test_words_of_texts_and_other_types_differ_from_those_of_numbers():
    keystream = stream()
    kinds = [
        pa.array([5]),
        pa.array(["5"]),
        pa.array([b"5"]),
        pa.array([5], pa.date32()),
        pa.array([5], pa.timestamp("s")),
        pa.array([5.0]),
    ]
    assert len({int(keystream.words_of(ids)[0]) for ids in kinds}) == len(kinds)
    texts = pa.array(["a", "b", "a"])
    words = keystream.words_of(texts)
    assert words[0] == words[2] != words[1]
    for same in (texts.cast(pa.large_string()), texts.dictionary_encode(), texts.cast(pa.string_view())):
        assert np.array_equal(keystream.words_of(same), words)
    assert not np.array_equal(stream("other").words_of(texts), words)


def test_words_of_ids_never_repeat_the_words_of_rows():
    keystream = stream()
    rows = set(keystream.words(0, 20_000).tolist())
    assert not rows & set(keystream.words_of(pa.array(range(10_000))).tolist())


def test_ids_that_cannot_name_rows_are_refused():
    with pytest.raises(TableError, match="missing"):
        stream().words_of(pa.array([1, None]))
    with pytest.raises(TableError, match="cannot name rows"):
        stream().words_of(pa.array([[1], [2]]))
    assert len(stream().words_of(pa.array([], pa.string()))) == 0


def test_bits_of_words_are_balanced():
    bits = np.unpackbits(stream().words(0, 200_000).view(np.uint8)).reshape(-1, 64).sum(0)
    z = np.abs(bits.astype(float) - 100_000) / np.sqrt(50_000)
    assert z.max() < stats.norm.isf(FALSE_ALARM / 128)


# -- noise -------------------------------------------------------------------------------------------------------------


def rejects(noise: np.ndarray, epsilon: float) -> bool:
    """A chi-square test of noise against P(k) = (1-a)/(1+a) a^|k|."""
    a = np.exp(-epsilon)
    edge = int(np.ceil(np.log(len(noise) / 50) / epsilon / 1.5))
    k = np.arange(-edge, edge + 1)
    expected = len(noise) * (1 - a) / (1 + a) * a ** np.abs(k)
    observed = np.array([(noise == i).sum() for i in k])
    tails = [(noise < -edge).sum(), (noise > edge).sum()]
    tail = len(noise) * a ** (edge + 1) / (1 + a)
    observed, expected = np.append(observed, tails), np.append(expected, [tail, tail])
    return bool(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(k) + 1) < FALSE_ALARM)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_discrete_laplace_noise_has_its_distribution_and_no_other(epsilon):
    noise = discrete_laplace(stream("noise"), 400_000, epsilon)
    assert not rejects(noise, epsilon)
    assert rejects(noise, epsilon * 1.05)
    assert rejects(noise, epsilon * 0.95)
    assert rejects(noise + (stream("shift").words(0, len(noise)) % 20 == 0), epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_discrete_laplace_variance_is_that_of_the_noise(epsilon):
    noise = discrete_laplace(stream("noise"), 400_000, epsilon).astype(float)
    error = np.sqrt(np.var(noise**2) / len(noise))
    difference = abs((noise**2).mean() - discrete_laplace_variance(epsilon))
    assert difference < stats.norm.isf(FALSE_ALARM / 2) * error < 0.05 * discrete_laplace_variance(epsilon)


def test_thresholds_of_the_noise_are_exact_to_the_last_bit():
    thresholds = _geometric_thresholds(0.5)[::-1]
    for k in (1, 2, 10, 80):  # Decimal's 28 digits are more than 64 bits
        assert abs(int(thresholds[k - 1]) - int((-Decimal(k) / 2).exp() * 2**64)) <= 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-9, 1e9, float("nan")])
def test_noise_refuses_a_useless_epsilon(epsilon):
    with pytest.raises(OptionError, match="epsilon"):
        discrete_laplace(stream(), 1, epsilon)


# -- rows --------------------------------------------------------------------------------------------------------------


class Words:
    """A keystream of known words."""

    def __init__(self, *words: int) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def words(self, start: int, count: int) -> np.ndarray:
        return self._words[start : start + count]


def test_rows_are_drawn_word_by_word_and_never_twice():
    assert drawn_rows(Words(12, 2, 35, 5, 2**32 + 7), 10, 3).tolist() == [2, 5, 3]
    assert drawn_rows(Words(), 10, 0).tolist() == []
