"""Writes the witness vectors of this folder, with encoders that are not ours.

RLP by `rlp` 5.0.0 (pip install rlp==5.0.0), SSZ by `eth-remerkleable` 0.1.31
(pip install eth-remerkleable==0.1.31), JSON by Python's `json`.
"""

import json
from pathlib import Path

import rlp
from remerkleable.byte_arrays import ByteList
from remerkleable.complex import Container, List

LIMIT = 1 << 20


class ExecutionWitness(Container):
    """The container of execution-apis #885."""

    state: List[ByteList[LIMIT], LIMIT]
    codes: List[ByteList[LIMIT], LIMIT]
    headers: List[ByteList[LIMIT], LIMIT]


def number(value):
    """A number as RLP has it: big-endian, no leading zeros."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def header(height, parent_hash):
    """A header in RLP, with the fields of Prague."""
    return rlp.encode([
        parent_hash, bytes([1]) * 32, bytes([2]) * 20, bytes([3]) * 32, bytes([4]) * 32,
        bytes([5]) * 32, bytes(256), b"", number(height), number(36_000_000), number(21_000),
        number(1_750_000_000 + 12 * height), b"vector", bytes([6]) * 32, bytes(8), number(7),
        bytes([8]) * 32, b"", b"", bytes([9]) * 32, bytes([10]) * 32,
    ])


def blob(length, seed):
    """Bytes without a pattern that a length could hide in."""
    return bytes((seed + 31 * index) % 256 for index in range(length))


def write(name, state, codes, headers):
    """Writes one vector: the three lists, and the three encodings of them."""
    text = lambda items: ["0x" + item.hex() for item in items]
    lists = {"state": text(state), "codes": text(codes), "headers": text(headers)}
    # A header is an RLP list inside the blob, not a byte string.
    encoded = rlp.encode([[rlp.decode(item) for item in headers], codes, state, []])
    ssz = ExecutionWitness(state=state, codes=codes, headers=headers).encode_bytes()
    document = {
        **lists,
        "rlp": "0x" + encoded.hex(),
        "ssz": "0x" + ssz.hex(),
        "json": json.dumps(lists, separators=(",", ":")),
    }
    Path(__file__).with_name(f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


parent = header(257, bytes([0xAA]) * 32)
write("empty", [], [], [])
write("small", [blob(32, 7), blob(83, 1)], [b"\x00", b"\x60\x01\x60\x00\x55"], [parent])
write(
    "boundaries",
    [blob(length, 3) for length in (32, 55, 56, 57, 255, 256, 532)],
    [b"\x00", b"\x7f", b"\x80", b"\xff", blob(2, 4), blob(55, 5), blob(56, 6)],
    [header(127, bytes([0xBB]) * 32), header(128, bytes([0xCC]) * 32), parent],
)
