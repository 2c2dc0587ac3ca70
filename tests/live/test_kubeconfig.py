"""Kubeconfigs in forms that people and tools write, and values that are no addresses or have wrong types."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from kdsl.live.access.codes import AccessCode

from tests.live.scripted_server import CERTIFICATES
from tests.live.test_access import access, by, config, problem, write

PEM = (CERTIFICATES / "ca.crt").read_bytes()


def test_data_may_have_line_breaks_as_kubectl_takes_it(tmp_path: Path) -> None:
    for data in (base64.encodebytes(PEM), base64.b64encode(PEM) + b"\r\n"):
        cluster = {"server": "https://h", "certificate-authority-data": data.decode()}
        way = access(by(write(tmp_path, config({"token": "a"}, cluster))))
        assert way.tls is not None and way.tls.context().cert_store_stats()["x509"] == 1


def test_an_authority_may_have_comments_in_any_script(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes("# Főtanúsítvány, 認証局\n".encode() + PEM)
    cluster = {"server": "https://h", "certificate-authority": "ca.crt"}
    way = access(by(write(tmp_path, config({"token": "a"}, cluster))))
    assert way.tls is not None and way.tls.context().cert_store_stats()["x509"] == 1


@pytest.mark.parametrize(
    "server", ["https://h/a b", "https://h/ä", "https://中.example", "https://h\r\nX-Y: z", "https://h:0"]
)
def test_what_cannot_be_sent_is_no_address(tmp_path: Path, server: str) -> None:
    code, title, where, help_ = problem(by(write(tmp_path, config({"token": "a"}, {"server": server}))))
    assert code == AccessCode.KUBECONFIG and title.endswith("is no address of a server")
    assert where == f"{tmp_path}/config: context `one`" and "https://HOST:PORT" in help_


@pytest.mark.parametrize(
    ("user", "cluster", "where"),
    [
        ({}, {"insecure-skip-tls-verify": "true"}, "clusters[0].cluster.insecure-skip-tls-verify"),
        ({"client-key": 5}, {}, "users[0].user.client-key"),
    ],
)
def test_a_wrong_type_of_a_name_with_hyphens(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], where: str
) -> None:
    path = write(tmp_path, config(user, {"server": "https://h", **cluster}))
    code, title, place, _ = problem(by(path))
    assert code == "K1107" and title.startswith("expected ") and place == f"{path}: {where}"


@pytest.mark.parametrize(
    "more", [{"as": "x"}, {"as-uid": "1"}, {"as-groups": ["g"]}, {"as-user-extra": {"k": ["v"]}}]
)
def test_no_kind_of_impersonation_is_ignored(tmp_path: Path, more: dict[str, Any]) -> None:
    code, title, _, _ = problem(by(write(tmp_path, config({"token": "a", **more}))))
    assert (code, title) == (AccessCode.KUBECONFIG, "impersonation (`as`) is not supported")
