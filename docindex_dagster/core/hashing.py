"""The hash function used throughout the project: 128-bit BLAKE2b as 32 hexadecimal characters."""

import hashlib


def digest(data: bytes | memoryview) -> str:
    """Hash bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_parts(*parts: str) -> str:
    """Hash several strings so that a different split of the same characters gives a different hash."""
    joined = "".join([f"{len(part)}:{part}" for part in parts])
    return digest(joined.encode("utf-8", "surrogateescape"))
