"""Kubeconfig files: the cluster and the user. `cluster_access` uses them.

Files are merged as kubectl merges them: of two entries of one name the first counts. Paths in a file are
relative to that file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.documents import read_documents
from kdsl.cluster.read.problems import Problems
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.small_files import read_small

MAX_FILES: Final = 50


class KubeconfigCluster(Struct, frozen=True, rename="kebab"):
    """The address of an API server, and the authority to trust there."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class KubeconfigUser(Struct, frozen=True, rename="kebab"):
    """The credentials of a user."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: dict[str, Any] | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, Any] | None = None

    @property
    def impersonates(self) -> bool:
        """Return whether requests are to be sent in the name of another user."""
        return bool(self.as_ or self.as_uid or self.as_groups or self.as_user_extra)


class _Context(Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str = ""
    cluster: KubeconfigCluster = KubeconfigCluster()


class _NamedUser(Struct, frozen=True):
    name: str = ""
    user: KubeconfigUser = KubeconfigUser()


class _NamedContext(Struct, frozen=True):
    name: str = ""
    context: _Context = _Context()


class _File(Struct, frozen=True, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selected context: its cluster, its user, and the files that define them."""

    context: str
    cluster: KubeconfigCluster
    cluster_file: Path
    user: KubeconfigUser
    user_file: Path
    namespace: str = ""

    @property
    def where(self) -> str:
        """Return the place for diagnostics."""
        return f"{self.cluster_file}: context `{self.context}`"


T = TypeVar("T")


def choose(paths: Sequence[Path], context: str | None) -> Chosen:
    """Read kubeconfig files and return the cluster and user of a context, None for the current one.

    Raises InvalidInputError with the file and the context.
    """
    if len(paths) > MAX_FILES:
        title = f"there are {len(paths)} kubeconfig files: at most {MAX_FILES} are read"
        raise InvalidInputError([Diagnostic(AccessCode.KUBECONFIG, title, where="KUBECONFIG")])
    files = [(path, _read(path)) for path in paths]
    where = ", ".join(map(str, paths))
    name = context or next((file.current_context for _, file in files if file.current_context), "")
    if not name:
        title = "no context is chosen"
        help_ = ("name one with `--context`, or as `current-context`",)
        raise InvalidInputError([Diagnostic(AccessCode.KUBECONFIG, title, where=where, help=help_)])
    contexts = _first((path, each.name, each.context) for path, file in files for each in file.contexts)
    path, chosen = _find(contexts, name, "context", where)
    where = f"{path}: context `{name}`"
    clusters = _first((path, each.name, each.cluster) for path, file in files for each in file.clusters)
    users = _first((path, each.name, each.user) for path, file in files for each in file.users)
    cluster_file, cluster = _find(clusters, chosen.cluster, "cluster", where)
    user_file, user = _find(users, chosen.user, "user", where) if chosen.user else (path, KubeconfigUser())
    return Chosen(name, cluster, cluster_file, user, user_file, chosen.namespace)


def _read(path: Path) -> _File:
    help_ = "name another one with `--kubeconfig`"
    data = read_small(path, "the kubeconfig", AccessCode.KUBECONFIG, help_)
    found: list[Diagnostic] = []
    documents = list(read_documents(str(path), data, found))
    if not has_errors(found) and len(documents) > 1:
        found.append(Diagnostic(AccessCode.KUBECONFIG, "there is more than one document", where=str(path)))
    read: _File | None = None
    if documents and not has_errors(found):
        read = decode(documents[0].value, _File, Problems(found, str(path)))
    if has_errors(found):
        raise InvalidInputError(found)
    return read or _File()


def _first(entries: Iterator[tuple[Path, str, T]]) -> dict[str, tuple[Path, T]]:
    found: dict[str, tuple[Path, T]] = {}
    for path, name, entry in entries:
        found.setdefault(name, (path, entry))
    return found


def _find(known: Mapping[str, tuple[Path, T]], name: str, what: str, where: str) -> tuple[Path, T]:
    if name in known:
        return known[name]
    names = ", ".join(f"`{each}`" for each in list(known)[:20]) or "none"
    help_ = (*did_you_mean(name, known), f"there are: {names}")
    title = f"there is no {what} `{name}`" if name else f"the context names no {what}"
    raise InvalidInputError([Diagnostic(AccessCode.KUBECONFIG, title, where=where, help=help_)])
