"""All rules that decide an entry by its path alone, in order of evaluation.

A reason is written `rule: detail`. The rules here are `always-skipped`, `secret`, `binary` (by extension),
`not-recursive`, `excluded`, `ignored` and `not-included`; the others need the file itself. An include glob or a negated
line of a `.docindexignore` that names the entry overrides `always-skipped` and `binary`: `build/**`, `!*.svg`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.git_folders import common_folder
from docindex_dagster.sources import git, ignore, noise
from docindex_dagster.sources.ignore import RuleSet
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import join, path_to_name, read_beneath
from docindex_dagster.sources.secrets import secret_reason

_DOCINDEXIGNORE = b".docindexignore"
_MAX_IGNORE_FILE = 1 << 20  # bytes
_MAX_DETAIL = 100  # characters of a pattern shown in a reason

# Rule sets with the path lengths of their folders, innermost folder first.
Chain: TypeAlias = tuple[tuple[int, RuleSet], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules that apply to the entries of one folder."""

    path: bytes  # empty for the root, otherwise with a trailing slash
    chains: tuple[Chain, ...]  # one for each kind of ignore file
    named: Chain  # entries that the user names; these override built-in rules
    is_included: bool  # by an include glob for this folder or a parent
    has_rules: bool  # whether user rules apply to its files


@dataclass(frozen=True, slots=True)
class Pruned:
    """A folder that is not entered."""

    path: bytes  # ends in a slash
    reason: str


@dataclass(frozen=True, slots=True)
class PathRules:
    """The path rules of one source. Each ignore file is read once, on the first query about its folder."""

    root: bytes
    ignore_files: tuple[bytes, ...]  # their names; a decision by the first kind overrides the second
    include: RuleSet | None
    exclude: RuleSet | None
    is_recursive: bool
    skips_secrets: bool  # whether files with the name of a secret are skipped
    above: Chain  # rules of the last kind of ignore file, from folders above the root
    has_tracked: Callable[[bytes], bool]  # whether git tracks files in a folder, whose path ends in a slash
    _scopes: dict[bytes, Scope | Pruned] = field(default_factory=dict)

    def scope(self, path: bytes) -> Scope | Pruned:
        """Return the scope of the folder `path`, or the outermost pruned folder that is or contains it."""
        known = self._scopes.get(path)
        if known is not None:
            return known
        scope = self._scopes.get(b"") or self._root_scope()
        end = path.find(b"/") + 1
        while end and isinstance(scope, Scope):
            scope = self._scopes.get(path[:end]) or self._enter(scope, path[:end])
            self._scopes[path[:end]] = scope
            end = path.find(b"/", end) + 1
        self._scopes[path] = scope
        return scope

    def scope_around(self, path: bytes) -> Scope | Pruned:
        """Return the scope of the folder that contains the file `path`, as `scope` does."""
        return self.scope(path[: path.rfind(b"/") + 1])

    def file_reason(self, scope: Scope, name: bytes) -> str | None:
        """Return why the file `name` in the folder of `scope` is skipped, or None."""
        path = scope.path + name
        if self.skips_secrets and (secret := secret_reason(scope.path, name)):
            return secret
        reason = noise.file_reason(name)
        if reason is not None and not self._is_named(scope, path, name, is_folder=False):
            return reason
        if not scope.has_rules:
            return None
        reason = self._user_rule_reason(scope, path, name, is_folder=False)
        if reason is None and not self._is_included(scope, path, name, is_folder=False):
            return "not-included: no include glob matches"
        return reason

    def is_wanted(self, path: bytes) -> bool:
        """Return whether no rule skips the file `path`."""
        scope = self.scope_around(path)
        return not isinstance(scope, Pruned) and self.file_reason(scope, path[len(scope.path) :]) is None

    def is_named(self, folder: bytes) -> bool:
        """Return whether an include glob or a `.docindexignore` names a folder, which overrides built-in rules."""
        path = folder[:-1]
        around = self.scope_around(path)
        return isinstance(around, Scope) and self._is_named(around, path, path[len(around.path) :], is_folder=True)

    def read_ignore_file(self, path: bytes) -> bytes | None:
        """Return the content of an ignore file; like git, return None for symlinks, folders and unreadable files."""
        try:
            return read_beneath(self.root, path, _MAX_IGNORE_FILE)
        except OSError:
            return None

    def _root_scope(self) -> Scope:
        named = ignore.rules_for_named_entries(self.include, negated=False) if self.include else None
        outer = Scope(
            path=b"",
            chains=((),) * (len(self.ignore_files) - 1) + (self.above,),
            named=((0, named),) if named else (),
            is_included=self.include is None,
            has_rules=False,
        )
        return self._open(b"", outer, is_included=outer.is_included)

    def _enter(self, parent: Scope, folder: bytes) -> Scope | Pruned:
        path = folder[:-1]
        name = path[len(parent.path) :]
        reason = noise.folder_reason(name)
        if reason and not noise.is_never_entered(name):
            is_source = noise.is_ambiguous(name) and self.has_tracked(folder)
            reason = None if is_source or self._is_named(parent, path, name, is_folder=True) else reason
        reason = reason or self._user_rule_reason(parent, path, name, is_folder=True)
        if reason is None and not self.is_recursive:
            reason = "not-recursive: recursive is false"
        if reason is not None:
            return Pruned(folder, reason)
        return self._open(folder, parent, is_included=self._is_included(parent, path, name, is_folder=True))

    def _open(self, folder: bytes, outer: Scope, *, is_included: bool) -> Scope:
        chains, named = [], outer.named
        for name, inherited in zip(self.ignore_files, outer.chains, strict=True):
            rules = self._read(folder + name)
            chains.append(((len(folder), rules), *inherited) if rules else inherited)
            if rules and name == _DOCINDEXIGNORE and (names := ignore.rules_for_named_entries(rules, negated=True)):
                named = ((len(folder), names), *named)
        return Scope(folder, tuple(chains), named, is_included, bool(any(chains) or self.include or self.exclude))

    def _read(self, path: bytes) -> RuleSet | None:
        if not os.path.lexists(join(self.root, path)):  # the common case; reading safely is slower
            return None
        data = self.read_ignore_file(path)
        return ignore.parse(data, path_to_name(path)) if data else None

    def _user_rule_reason(self, scope: Scope, path: bytes, name: bytes, *, is_folder: bool) -> str | None:
        rule = self.exclude.decide(path, name, is_folder=is_folder) if self.exclude else None
        if rule is not None and not rule.is_negated:
            return f"excluded: {_shown(rule.text)}"
        for chain in scope.chains:
            for depth, rules in chain:
                rule = rules.decide(path[depth:], name, is_folder=is_folder)
                if rule is not None:
                    return None if rule.is_negated else f"ignored: {rules.origin}:{rule.line} {_shown(rule.text)}"
        return None

    def _is_named(self, scope: Scope, path: bytes, name: bytes, *, is_folder: bool) -> bool:
        """Return whether an include glob or a `.docindexignore` names an entry."""
        return any(rules.decide(path[depth:], name, is_folder=is_folder) for depth, rules in scope.named)

    def _is_included(self, scope: Scope, path: bytes, name: bytes, *, is_folder: bool) -> bool:
        rule = self.include.decide(path, name, is_folder=is_folder) if self.include else None
        return scope.is_included if rule is None else not rule.is_negated


def path_rules(source: Source, has_tracked: Callable[[bytes], bool] = lambda _folder: False) -> PathRules:
    """Return the path rules of a source. Git itself applies the `.gitignore` files of its work trees.

    Args:
        source: The source to index.
        has_tracked: Whether git tracks files in a folder, whose path ends in a slash. Such a folder is entered even if
            it has a name such as `build`.

    Raises:
        SourceError: as `Source.folder`.
    """
    root = os.fsencode(source.folder())
    return PathRules(
        root=root,
        ignore_files=(_DOCINDEXIGNORE,) if source.kind == "git" else (_DOCINDEXIGNORE, b".gitignore"),
        include=ignore.from_globs(source.include, "include") if source.include else None,
        exclude=ignore.from_globs(source.exclude, "exclude") if source.exclude else None,
        is_recursive=source.recursive,
        skips_secrets=source.secrets == "skip",
        above=() if source.kind == "git" else _inherited_rules(root),
        has_tracked=has_tracked,
    )


def _inherited_rules(root: bytes) -> Chain:
    """Return the ignore rules that a library inherits from the repository around it; none if it ignores the library.

    A repository that belongs to another user is not consulted, as in git.
    """
    top = root
    while not os.path.lexists(join(top, b".git")):
        if top == (top := os.path.dirname(top)):  # noqa: PTH120 bytes
            return ()
    try:
        if os.lstat(join(top, b".git")).st_uid != os.lstat(root).st_uid:
            return ()
        common = os.fsencode(common_folder(Path(os.fsdecode(top))))
        if not common.startswith(join(os.path.realpath(top), b"")):
            git.safe_options(top)  # raises if `.git` belongs to another folder
        excluded = ignore.parse(read_beneath(common, b"info/exclude", _MAX_IGNORE_FILE), ".git/info/exclude")
    except (OSError, ValueError, RuntimeError, SourceError):
        # `.git` is missing, invalid, cyclic, or belongs to another folder.
        excluded = ignore.parse(b"", "")
    path = os.path.relpath(root, top) + b"/" if root != top else b""
    around = PathRules(
        root=top,
        ignore_files=(b".gitignore",),
        include=None,
        exclude=None,
        is_recursive=True,
        skips_secrets=False,
        above=((0, excluded),),
        has_tracked=lambda _folder: True,
    )
    scope = around.scope(path)
    if isinstance(scope, Pruned):
        return ()
    return tuple(
        (0, replace(rules, below=path[depth:], origin=os.path.relpath(rules.origin, path_to_name(path) or ".")))
        for depth, rules in scope.chains[0]
        if rules.rules and (depth < len(path) or rules is excluded)
    )


def _shown(text: bytes) -> str:
    return path_to_name(text)[:_MAX_DETAIL]
