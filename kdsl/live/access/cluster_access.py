"""Finds the way to a cluster, from a kubeconfig or from inside it. `connection` uses the result."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.credentials import FixedCredentials, TokenFile, basic, bearer
from kdsl.live.access.kubeconfig import Chosen, choose
from kdsl.live.access.plugin_credentials import PluginCredentials
from kdsl.live.access.tls import ClientCertificate, Pem, Tls, Trust
from kdsl.live.http.client import Credentials
from kdsl.live.http.pool import ServerAddress

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"
_LIST: Final = "KUBECONFIG"


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The places to look for a cluster: a `kubeconfig` and `context` of the user, otherwise the environment.

    With `in_cluster` only the service account is used; a kubeconfig is then an error.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    in_cluster: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    service_account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class Access:
    """The access to a server: its address, the path prefix of all requests, TLS, and credentials.

    `where` is the source of this access, for messages; `namespace` is that of the context, if it names one.
    """

    place: ServerAddress
    prefix: str
    tls: Tls | None
    credentials: Credentials
    where: str
    namespace: str = ""


async def find_access(
    options: AccessOptions, clock: Callable[[], float], now: Callable[[], datetime]
) -> Access:
    """Find how to reach a cluster: the named kubeconfig, KUBECONFIG, the service account, ~/.kube/config.

    `clock` returns monotonic seconds, `now` the time of day. Raises InvalidInputError.
    """
    environment = options.environment
    if options.in_cluster:
        if options.kubeconfig is not None or options.context is not None:
            raise _no_cluster("a kubeconfig and the service account exclude each other", "name one of them")
        return _inside(options, clock)
    if options.kubeconfig is not None:
        return await _outside([options.kubeconfig], options, clock, now)
    listed = [Path(each).expanduser() for each in environment.get(_LIST, "").split(os.pathsep) if each]
    if listed:
        # Files of a list that do not exist are skipped, as in kubectl.
        return await _outside([each for each in listed if each.exists()] or listed[:1], options, clock, now)
    if environment.get(_HOST) and options.context is None:
        return _inside(options, clock)
    home = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    if home.exists():
        return await _outside([home], options, clock, now)
    raise _no_cluster(
        "there is no cluster to connect to",
        "name a kubeconfig with `--kubeconfig` or KUBECONFIG, or try `kdsl sandbox`",
    )


def _inside(options: AccessOptions, clock: Callable[[], float]) -> Access:
    host, port = options.environment.get(_HOST, ""), options.environment.get(_PORT, "443")
    if not host:
        raise _no_cluster(f"{_HOST} is not set: this is no pod of a cluster", "name a kubeconfig")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise _no_cluster(f"{_PORT} is no port: `{port}`", "it is set by the kubelet")
    folder = options.service_account
    tls = Tls(Trust(folder / "ca.crt"), lambda: None, clock)
    help_ = "the token of a service account is mounted by the kubelet: see automountServiceAccountToken"
    token = TokenFile(folder / "token", clock, help_)
    return Access(ServerAddress(host, int(port)), "", tls, token, f"{folder}")


async def _outside(
    paths: list[Path], options: AccessOptions, clock: Callable[[], float], now: Callable[[], datetime]
) -> Access:
    chosen = choose(paths, options.context)
    place, prefix, is_secure = _server(chosen)
    _check(chosen)
    credentials = _credentials(chosen, clock, now)
    if isinstance(credentials, PluginCredentials):
        await credentials.ask()
        plugin = credentials

        def shown() -> ClientCertificate | None:
            return plugin.certificate or own
    else:

        def shown() -> ClientCertificate | None:
            return own

    own = _certificate(chosen)
    tls = Tls(_trust(chosen), shown, clock) if is_secure else None
    return Access(place, prefix, tls, credentials, chosen.where, chosen.namespace)


def _server(chosen: Chosen) -> tuple[ServerAddress, str, bool]:
    server = chosen.cluster.server
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    is_address = server.isascii() and server.isprintable() and " " not in server and port != 0
    if not (host and is_address) or parts.scheme not in ("http", "https") or parts.query or parts.username:
        help_ = "write it as https://HOST:PORT"
        raise _problem(chosen, AccessCode.KUBECONFIG, f"`{server}` is no address of a server", help_)
    is_secure = parts.scheme == "https"
    place = ServerAddress(host, port or (443 if is_secure else 80), chosen.cluster.tls_server_name)
    return place, parts.path.rstrip("/"), is_secure


def _check(chosen: Chosen) -> None:
    """Refuse settings that kdsl does not support: other routes to the server and impersonation."""
    if chosen.cluster.proxy_url:
        raise _problem(
            chosen, AccessCode.KUBECONFIG, "`proxy-url` is not supported", "reach the server directly"
        )
    if chosen.user.impersonates:
        help_ = "use credentials of that user"
        raise _problem(chosen, AccessCode.KUBECONFIG, "impersonation (`as`) is not supported", help_)
    if (chosen.user.exec or {}).get("provideClusterInfo"):
        title = "`provideClusterInfo` is not supported: the plugin would not get the cluster's data"
        raise _problem(chosen, AccessCode.PLUGIN, title, "use a plugin that does without")


def _trust(chosen: Chosen) -> Trust:
    cluster = chosen.cluster
    data, file = cluster.certificate_authority_data, cluster.certificate_authority
    if cluster.insecure_skip_tls_verify:
        if data or file:
            title = "a certificate authority and `insecure-skip-tls-verify` exclude each other"
            raise _problem(chosen, AccessCode.KUBECONFIG, title, "take one of them out")
        return Trust(is_blind=True)
    return Trust(_pem(chosen, data, file, "certificate-authority", chosen.cluster_file))


def _certificate(chosen: Chosen) -> ClientCertificate | None:
    user, file = chosen.user, chosen.user_file
    chain = _pem(chosen, user.client_certificate_data, user.client_certificate, "client-certificate", file)
    key = _pem(chosen, user.client_key_data, user.client_key, "client-key", file)
    if (chain is None) != (key is None):
        title = "a client certificate needs its key, and a key its certificate"
        raise _problem(chosen, AccessCode.CREDENTIALS, title, "give both, as files or as data")
    return None if chain is None or key is None else ClientCertificate(chain, key)


def _credentials(chosen: Chosen, clock: Callable[[], float], now: Callable[[], datetime]) -> Credentials:
    """Return the credentials; of several kinds, the one that kubectl uses."""
    user = chosen.user
    if user.token_file:
        return TokenFile(chosen.user_file.parent / user.token_file, clock)
    if user.token:
        return FixedCredentials(bearer(user.token, chosen.where))
    if user.username:
        return basic(user.username, user.password)
    if user.exec is not None or user.auth_provider is not None:
        return PluginCredentials(chosen, clock, now)
    return FixedCredentials()


def _pem(chosen: Chosen, data: str, file: str, name: str, source: Path) -> Pem | None:
    """Return a PEM given as data, which takes precedence, or as a file; None if neither is given."""
    if not data:
        return source.parent / file if file else None
    try:
        # Line breaks do not count, as in kubectl: block scalars of YAML and `base64` without `-w0` have them.
        return base64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        title = f"`{name}-data` is not base64"
        raise _problem(chosen, AccessCode.CREDENTIALS, title, f"name a file as `{name}`") from None


def _problem(chosen: Chosen, code: AccessCode, title: str, help_: str) -> InvalidInputError:
    return InvalidInputError([Diagnostic(code, title, where=chosen.where, help=(help_,))])


def _no_cluster(title: str, help_: str) -> InvalidInputError:
    return InvalidInputError([Diagnostic(AccessCode.NO_CLUSTER, title, help=(help_,))])
