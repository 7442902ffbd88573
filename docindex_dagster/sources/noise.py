"""Names that are rarely worth indexing: build output and binaries.

These rules apply to every source unless an include glob or a `.docindexignore` names the entry, or the name is
ambiguous and git tracks files in the folder. File names are compared case-insensitively, folder names case-sensitively.
"""

from functools import lru_cache

_VERSION_CONTROL = frozenset({b".git", b".hg", b".svn"})
_NEVER = _VERSION_CONTROL | {b".docindex"}  # an index inside its own source would change with each run
# Build output is not committed, so tracked files in such a folder are sources.
_AMBIGUOUS = frozenset(b"build coverage dist env out target venv".split())
_FOLDERS = (
    _NEVER
    | _AMBIGUOUS
    | frozenset(
        b"node_modules __pycache__ .venv .env .next .nuxt .pytest_cache .mypy_cache "
        b".ruff_cache .tox htmlcov site-packages "
        b".nox .hypothesis .gradle .terraform .eggs bower_components .ipynb_checkpoints".split()
    )
)
_BY_NAME = {
    name.encode(): f"{rule}: {name}"
    for rule, names in (
        ("always-skipped", "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml go.sum go.work.sum"),
        ("always-skipped", ".ds_store thumbs.db desktop.ini"),
    )
    for name in names.split()
}
_BY_ENDING = {
    ending.encode(): f"{rule}: *{ending}"
    for rule, endings in (
        ("always-skipped", ".lock .log .map .svg .pyc .pyo .class .o .obj .tsbuildinfo .swp .orig .rej"),
        ("binary", ".png .jpg .jpeg .gif .bmp .ico .icns .webp .avif .heic .tif .tiff .psd"),
        ("binary", ".mp3 .mp4 .m4a .m4v .mov .avi .mkv .webm .wav .flac .ogg .ogv .opus"),
        ("binary", ".woff .woff2 .ttf .otf .eot"),
        ("binary", ".doc .docx .xls .xlsx .ppt .pptx .odt .ods .odp .epub .mobi"),
        ("binary", ".zip .gz .tgz .bz2 .xz .zst .7z .rar .tar .jar .war .ear .whl .egg .gem .nupkg .deb .rpm .dmg"),
        ("binary", ".iso .apk .so .dylib .dll .exe .a .lib .pyd .wasm .pdb .mo"),
        ("binary", ".db .sqlite .sqlite3 .parquet .arrow .feather .npy .npz .pkl .pickle .h5 .hdf5"),
        ("binary", ".onnx .pt .pth .safetensors .gguf"),
    )
    for ending in endings.split()
}
_LONG_ENDINGS = (b".min.js", b".min.mjs", b".min.css", b".bundle.js", b".chunk.js", b"~")


def is_version_control(name: bytes) -> bool:
    """Return whether an entry is internal data of a version control system, which does not even get a row."""
    return name in _VERSION_CONTROL


def is_never_entered(name: bytes) -> bool:
    """Return whether no setting makes discovery enter a folder with this name."""
    return name in _NEVER


def is_ambiguous(name: bytes) -> bool:
    """Return whether a folder with this name may contain sources as well as tool output."""
    return name in _AMBIGUOUS


def folder_reason(name: bytes) -> str | None:
    """Return why a folder with this name is skipped, or None."""
    return f"always-skipped: {name.decode()}/" if name in _FOLDERS else None


@lru_cache(maxsize=1 << 16)  # names repeat across folders and across sensor ticks
def file_reason(name: bytes) -> str | None:
    """Return why a file with this name is skipped, or None."""
    lower = name.lower()
    dot = lower.rfind(b".")
    reason = _BY_NAME.get(lower) or (_BY_ENDING.get(lower[dot:]) if dot >= 0 else None)
    if reason is None and lower.endswith(_LONG_ENDINGS):
        return "always-skipped: *" + next(filter(lower.endswith, _LONG_ENDINGS)).decode()
    return reason
