"""What the key of a source says: `library/NAME`, `git/NAME`, or `git/NAME@BRANCH` for a further branch or work tree."""


def base_key(key: str) -> str:
    """The key of the repository that a branch or work tree belongs to: `git/flask` of `git/flask@dev`."""
    return key.partition("@")[0] if key.startswith("git/") else key


def is_branch(key: str) -> bool:
    """Whether a source is a further branch or work tree of a repository."""
    return base_key(key) != key
