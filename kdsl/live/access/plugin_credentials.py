"""Credentials from a program or an identity provider: exec plugins, OIDC.

kubernetes_asyncio runs them and keeps their expiry. It is imported only if a kubeconfig needs it: the import
takes 0.9 s and 80 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.credentials import bearer
from kdsl.live.access.kubeconfig import Chosen
from kdsl.live.access.small_files import note_failure
from kdsl.live.access.tls import ClientCertificate
from kdsl.live.http.messages import NoAnswerError

TIME: Final = 60.0
"""The longest run of a plugin, in seconds."""
EARLY: Final = timedelta(minutes=2)
"""The remaining validity at which a token is replaced."""
_AGAIN: Final = 10.0
"""The shortest time between two runs, in seconds, even if a result expires at once or is refused."""


class _Received:
    """The fields that the library fills in."""

    def __init__(self) -> None:
        self.api_key: dict[str, str] = {}
        self.cert_file: str | None = None
        self.key_file: str | None = None


class PluginCredentials:
    """A token or certificate that is requested when missing, expired or refused.

    `clock` returns monotonic seconds, `now` the time of day.
    """

    def __init__(self, chosen: Chosen, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        self._chosen = chosen
        self._clock = clock
        self._now = now
        self._header: str | None = None
        self._expiry: datetime | None = None
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()
        self.certificate: ClientCertificate | None = None
        """The certificate of the last run."""
        self.error = ""
        """The error of the last run."""

    async def header(self) -> str:
        """Return the header; raise NoAnswerError if the plugin gives none."""
        if not self._is_over and self._header is not None:
            return self._header
        async with self._lock:
            if self._is_over and self._may_ask:
                try:
                    await self.ask()
                except InvalidInputError as error:
                    self.error = note_failure(error, self.error, "there are no new credentials")
        if self._header is None:
            raise NoAnswerError(self.error, may_be_done=False)
        return self._header

    def refuse(self, header: str) -> bool:
        """Forget a token that the server refused; return whether another one may be available."""
        if header != self._header:
            return True
        if not self._may_ask:
            return False
        self._header = None
        return True

    async def ask(self) -> None:
        """Run the plugin; raise InvalidInputError if that fails."""
        loader_of = _library(self._chosen)
        received = _Received()
        self._asked_at = self._clock()
        try:
            loader = loader_of(_only_user(self._chosen), config_base_path=str(self._chosen.user_file.parent))
            async with asyncio.timeout(TIME):
                await loader.load_and_set(received)
        except TimeoutError:
            raise self._failed(f"it took longer than {TIME:.0f} s") from None
        except Exception as error:  # noqa: BLE001 - the library lets all exceptions of its parts pass
            raise self._failed(str(error) or type(error).__name__) from None
        token = received.api_key.get("BearerToken", "")
        if token:
            self._header = bearer(token.removeprefix("Bearer "), self._chosen.where)
        elif received.cert_file and received.key_file:
            self._header = ""
            self.certificate = ClientCertificate(Path(received.cert_file), Path(received.key_file))
        else:
            raise self._failed("it gave neither a token nor a certificate")
        self.error = ""
        self._expiry = getattr(loader, "exec_plugin_expiry", None)

    @property
    def _may_ask(self) -> bool:
        return self._clock() - self._asked_at >= _AGAIN

    @property
    def _is_over(self) -> bool:
        return self._header is None or (self._expiry is not None and self._now() > self._expiry - EARLY)

    def _failed(self, reason: str) -> InvalidInputError:
        command = (self._chosen.user.exec or {}).get("command", "the identity provider")
        title = f"`{command}` gave no credentials: {reason}"[:1000]
        help_ = (f"try it with: kubectl --context {self._chosen.context} get nodes",)
        where = f"{self._chosen.user_file}: context `{self._chosen.context}`"
        return InvalidInputError([Diagnostic(AccessCode.PLUGIN, title, where=where, help=help_)])


def _library(chosen: Chosen) -> Callable[..., Any]:
    try:
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # the import takes 0.9 s
    except ImportError:
        title = "exec plugins and identity providers need the package kubernetes_asyncio"
        help_ = ("install it with: pip install 'kdsl[live]'",)
        problem = Diagnostic(AccessCode.PLUGIN, title, where=chosen.where, help=help_)
        raise InvalidInputError([problem]) from None
    loader: Callable[..., Any] = KubeConfigLoader
    return loader


def _only_user(chosen: Chosen) -> dict[str, Any]:
    """Return a kubeconfig with the fields that the library needs; kdsl handles the server and its files."""
    user = chosen.user
    given: dict[str, Any] = {"auth-provider": user.auth_provider}
    if user.exec is not None:
        command = str(user.exec.get("command", ""))
        # As in kubectl: a path is relative to the file, a bare name is looked up in PATH.
        command = str(chosen.user_file.parent / command) if "/" in command else command
        given = {"exec": {**user.exec, "command": command}}
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://localhost"}}],
        "users": [{"name": "u", "user": given}],
    }
