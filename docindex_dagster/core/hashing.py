"""The one hash of the project: 128 bits of BLAKE2b, written as 32 hexadecimal characters."""

import hashlib


def digest(data: bytes | memoryview) -> str:
    """Hash bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_parts(*parts: str) -> str:
    """Hash several strings such that no other split of the same characters gives the same hash."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return digest(joined.encode("utf-8", "surrogateescape"))
