"""The way to a cluster: kubeconfigs, service accounts, tokens and certificates that are rotated."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kdsl.base.errors import InvalidInputError
from kdsl.live.access.cluster_access import Access, AccessOptions, find_access
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.connection import Connection
from kdsl.live.access.credentials import TokenFile
from kdsl.live.access.tls import Tls, Trust
from kdsl.live.http.messages import HttpRequest, NoAnswerError

from tests.live.scripted_server import CERTIFICATES, Asked, always, answer, server_context, serving
from tests.live.virtual import now, run

CA = str(CERTIFICATES / "ca.crt")


class Watch:
    """Time that goes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.day = datetime(2026, 11, 23, tzinfo=UTC)

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return self.day + timedelta(seconds=self.seconds)


def config(user: Mapping[str, Any], cluster: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "x"}}],
        "clusters": [
            {
                "name": "c",
                "cluster": cluster or {"server": "https://h:6443/base/", "certificate-authority": CA},
            }
        ],
        "users": [{"name": "u", "user": dict(user)}],
    }


def write(folder: Path, content: Mapping[str, Any], name: str = "config") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def access(options: AccessOptions, watch: Watch | None = None) -> Access:
    watch = watch or Watch()
    return asyncio.run(find_access(options, watch, watch.now))


def by(path: Path, context: str | None = None, **environment: str) -> AccessOptions:
    return AccessOptions(path, context, environment=environment)


def header(way: Access) -> str:
    return asyncio.run(way.credentials.header())


def problem(options: AccessOptions) -> tuple[str, str, str, str]:
    with pytest.raises(InvalidInputError) as caught:
        access(options)
    [found] = caught.value.diagnostics
    return found.code, found.title, found.where, " ".join(found.help)


def test_a_token(tmp_path: Path) -> None:
    way = access(by(write(tmp_path, config({"token": "abc\n"}))))
    assert header(way) == "Bearer abc"
    assert (str(way.place), way.prefix) == ("h:6443", "/base")
    assert way.where == f"{tmp_path}/config: context `one`"


def test_a_name_and_password(tmp_path: Path) -> None:
    way = access(by(write(tmp_path, config({"username": "ä", "password": "p:q"}))))
    assert header(way) == "Basic " + base64.b64encode("ä:p:q".encode()).decode()


def test_nobody_in_particular(tmp_path: Path) -> None:
    way = access(by(write(tmp_path, config({}, {"server": "http://127.0.0.1:8001"}))))
    assert header(way) == "" and way.tls is None


def test_a_context_that_is_named(tmp_path: Path) -> None:
    content = config({"token": "a"})
    content["contexts"].append({"name": "two", "context": {"cluster": "c", "user": "v"}})
    content["users"].append({"name": "v", "user": {"token": "b"}})
    assert header(access(by(write(tmp_path, content), "two"))) == "Bearer b"


def test_a_list_of_files_is_merged_as_kubectl_does(tmp_path: Path) -> None:
    first = {**config({"token": "first"}), "clusters": None, "current-context": ""}
    second = {**config({"token": "second"}), "current-context": "one"}
    paths = [write(tmp_path, first, "a"), tmp_path / "missing", write(tmp_path, second, "b")]
    way = access(AccessOptions(environment={"KUBECONFIG": os.pathsep.join(map(str, paths))}))
    assert header(way) == "Bearer first"
    assert way.where == f"{tmp_path}/b: context `one`"


def test_the_file_at_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube", config({"token": "home"}))
    assert header(access(AccessOptions(environment={"HOME": str(tmp_path)}))) == "Bearer home"


def test_from_inside(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("inner")
    shutil.copy(CA, tmp_path / "ca.crt")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": "/nowhere"}
    way = access(AccessOptions(environment=environment, service_account=tmp_path))
    assert str(way.place) == "[fd00::1]:443" and header(way) == "Bearer inner" and way.tls is not None


@pytest.mark.parametrize(
    ("change", "code", "title", "help_"),
    [
        ({"current-context": ""}, AccessCode.KUBECONFIG, "no context is chosen", "--context"),
        ({"current-context": "ont"}, AccessCode.KUBECONFIG, "there is no context `ont`", "did you mean `one`?"),
        ({"clusters": []}, AccessCode.KUBECONFIG, "there is no cluster `c`", "there are: none"),
        ({"users": []}, AccessCode.KUBECONFIG, "there is no user `u`", "there are: none"),
        ({"users": [{"name": "u", "user": {"token": "a b"}}]}, AccessCode.CREDENTIALS, "the token holds", ""),
        ({"users": [{"name": "u", "user": {"token": "a\r\nX: y"}}]}, AccessCode.CREDENTIALS, "the token holds", ""),
        ({"users": [{"name": "u", "user": {"as": "root"}}]}, AccessCode.KUBECONFIG, "impersonation", ""),
        ({"users": [{"name": "u", "user": {"tokenFile": "gone"}}]}, AccessCode.CREDENTIALS, "the token cannot be read", ""),
        ({"users": [{"name": "u", "user": {"client-key": "k"}}]}, AccessCode.CREDENTIALS, "a client certificate needs", ""),
        ({"users": [{"name": "u", "user": {"token": 7}}]}, "K1107", "expected a string", "quotes"),
        ({"clusters": [{"name": "c", "cluster": {"server": "h:6443"}}]}, AccessCode.KUBECONFIG, "`h:6443` is no address", "https://"),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "https://h", "proxy-url": "http://p"}}]},
            AccessCode.KUBECONFIG, "`proxy-url` is not supported", "",
        ),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": "!"}}]},
            AccessCode.CREDENTIALS, "`certificate-authority-data` is not base64", "certificate-authority",
        ),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority": "/dev/zero"}}]},
            AccessCode.CREDENTIALS, "the certificate authority cannot be read: it is no regular file", "",
        ),
        (
            {"users": [{"name": "u", "user": {"exec": {"apiVersion": "x", "command": "y", "provideClusterInfo": True}}}]},
            AccessCode.PLUGIN, "`provideClusterInfo` is not supported", "",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_names_the_file_and_the_cure(
    tmp_path: Path, change: dict[str, Any], code: str, title: str, help_: str
) -> None:
    path = write(tmp_path, {**config({"token": "a"}), **change})
    got = problem(by(path))
    assert got[0] == code and got[1].startswith(title) and help_ in got[3]
    assert got[2].startswith((str(tmp_path), "/dev/zero"))


def test_files_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (2**20 + 1))
    (tmp_path / "broken").write_text("a: [")
    assert "nothing was written" in problem(by(tmp_path / "pipe"))[1]
    assert "too large" in problem(by(tmp_path / "large"))[1]
    assert problem(by(tmp_path / "gone"))[:2] == (
        AccessCode.KUBECONFIG,
        "the kubeconfig cannot be read: no such file or directory",
    )
    assert problem(by(tmp_path / "broken"))[0] == "K1102"


def test_no_way_at_all() -> None:
    code, title, _, help_ = problem(AccessOptions(environment={"HOME": "/nowhere"}))
    assert (code, title) == (AccessCode.NO_CLUSTER, "there is no cluster to connect to")
    assert "kdsl sandbox" in help_
    assert problem(AccessOptions(in_cluster=True, environment={}))[0] == AccessCode.NO_CLUSTER
    assert problem(AccessOptions(Path("x"), in_cluster=True))[0] == AccessCode.NO_CLUSTER


def test_a_token_file_is_read_each_minute_and_when_it_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch, path = Watch(), tmp_path / "token"
    path.write_text("one")
    token = TokenFile(path, watch)

    def value() -> str:
        return asyncio.run(token.header())

    path.write_text("two")
    watch.seconds = 59
    assert value() == "Bearer one"
    watch.seconds = 60
    assert value() == "Bearer two"
    path.write_text("three")
    assert token.refuse("Bearer two") and value() == "Bearer three"
    assert token.refuse("Bearer two"), "somebody else has read it already"
    assert not token.refuse("Bearer three"), "not more often than once a second"
    path.unlink()
    watch.seconds = 120
    assert value() == "Bearer three" and "cannot be read" in token.error
    watch.seconds = 180
    assert value() == "Bearer three"
    reason = f"{path}: the token cannot be read: no such file or directory"
    assert caplog.messages == [f"the last token stays in use: {reason}"], "once is enough"
    path.write_text("four")
    watch.seconds = 240
    assert value() == "Bearer four" and token.error == ""


PLUGIN = """#!{python}
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
path = {folder!r} + "/runs"
runs = int(open(path).read()) if os.path.exists(path) else 0
open(path, "w").write(str(runs + 1))
status = {{"token": f"t{{runs}}-{{sys.argv[1]}}-{{os.environ['WHO']}}"}}
if os.environ.get("EXPIRES"): status["expirationTimestamp"] = os.environ["EXPIRES"]
if os.environ.get("FAILS"): sys.exit("you have to log in")
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def plugin(folder: Path, **environment: str) -> Path:
    script = folder / "plugin"
    script.write_text(PLUGIN.format(python=sys.executable, folder=str(folder)))
    script.chmod(0o755)
    env = [{"name": name, "value": value} for name, value in {"WHO": "me", **environment}.items()]
    run_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./plugin",
        "args": ["arg"],
        "env": env,
    }
    return write(folder, config({"exec": run_}))


def test_an_exec_plugin_is_run_when_its_token_is_over_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes_asyncio")
    watch = Watch()

    async def scenario() -> None:
        path = plugin(tmp_path, EXPIRES="2026-11-23T01:00:00Z")
        way = await find_access(by(path), watch, watch.now)
        assert await way.credentials.header() == "Bearer t0-arg-me"
        watch.seconds = 3000
        assert await way.credentials.header() == "Bearer t0-arg-me"
        assert way.credentials.refuse("Bearer t0-arg-me")
        assert await way.credentials.header() == "Bearer t1-arg-me"
        assert not way.credentials.refuse("Bearer t1-arg-me"), "it was asked just now"
        watch.seconds = 3590
        both = await asyncio.gather(way.credentials.header(), way.credentials.header())
        assert both == ["Bearer t2-arg-me"] * 2, "one run for all who wait"

    asyncio.run(scenario())


def test_an_exec_plugin_that_fails(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes_asyncio")
    code, title, where, help_ = problem(by(plugin(tmp_path, FAILS="1")))
    assert (
        code == AccessCode.PLUGIN
        and "`./plugin` gave no credentials" in title
        and "you have to log in" in title
    )
    assert where == f"{tmp_path}/config: context `one`" and "kubectl --context one" in help_


def test_a_certificate_is_shown_and_read_again_when_its_file_changes(tmp_path: Path) -> None:
    for name in ("client.crt", "client.key"):
        shutil.copy(CERTIFICATES / name, tmp_path / name)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}

    async def scenario() -> None:
        shown: list[object] = []

        async def note(asked: Asked, writer: asyncio.StreamWriter) -> None:
            shown.append(writer.get_extra_info("peercert")["subject"])
            writer.write(answer(200))

        async with serving(note, server_context(asks=True)) as server:
            cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": CA}
            watch = Watch()
            way = await find_access(by(write(tmp_path, config(user, cluster))), watch, watch.now)
            connection = Connection(way)
            client = connection.client()
            assert (await client.send(HttpRequest("GET", "/x"))).status == 200
            await client.send(HttpRequest("GET", "/x"))
            assert server.connections == 1
            for name in ("crt", "key"):
                shutil.copy(CERTIFICATES / f"server.{name}", tmp_path / f"client.{name}")
            watch.seconds += 11
            await client.send(HttpRequest("GET", "/x"))
            assert server.connections == 2, "the old connection is dropped"
            assert shown == [
                ((("commonName", f"kdsl-test-{name}"),),) for name in ("client", "client", "server")
            ]
            assert await connection.probe()
            assert "kdsl/" in server.asked[0].headers["user-agent"]
            connection.close()

    asyncio.run(scenario())


def test_an_authority_that_is_no_root_is_trusted_as_kubectl_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(always(answer(200)), server_context()) as server:
            issued = str(
                CERTIFICATES / "server.crt"
            )  # signed by an authority that the kubeconfig does not hold
            cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": issued}
            watch = Watch()
            connection = Connection(
                await find_access(by(write(tmp_path, config({}, cluster))), watch, watch.now)
            )
            assert (await connection.client().send(HttpRequest("GET", "/x"))).status == 200
            connection.close()

    asyncio.run(scenario())


def test_a_rotation_that_is_not_complete_changes_nothing(tmp_path: Path) -> None:
    watch, ca = Watch(), tmp_path / "ca.crt"
    shutil.copy(CA, ca)
    tls = Tls(Trust(ca), lambda: None, watch)
    first = tls.context()
    ca.write_text("-----BEGIN")
    watch.seconds = 11
    assert tls.context() is first and "certificate authority cannot be used" in tls.error
    shutil.copy(CA, ca)
    watch.seconds = 22
    assert tls.context() is not first and tls.error == ""


def test_a_server_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(always(answer(200))) as server:
            port = server.port
        path = write(tmp_path, config({}, {"server": f"http://127.0.0.1:{port}"}))
        connection = await Connection.open(by(path))
        assert not await connection.probe()
        with pytest.raises(NoAnswerError):
            await connection.client().send(HttpRequest("POST", "/x"))

    asyncio.run(scenario())


def test_a_server_that_ends_the_handshake_is_no_answer_with_a_reason(tmp_path: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # the rest is unread: the system answers it with a reset
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
        connection = await Connection.open(by(write(tmp_path, config({}, cluster))))
        with pytest.raises(NoAnswerError) as caught:
            await connection.client().send(HttpRequest("POST", "/x"))
        assert not caught.value.reason.endswith(": ")
        server.close()

    asyncio.run(scenario())


def test_virtual_time_goes_only_while_all_wait() -> None:
    async def scenario() -> None:
        started = now()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        assert now() - started == 7200

    run(scenario())
    with pytest.raises(AssertionError, match="nothing will ever happen"):
        run(asyncio.Event().wait())
