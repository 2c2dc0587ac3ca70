"""Time and memory of taking in a cluster: python -m tests.bench.watching [--pods N]

A server in another process sends the pods as the objects that a watch begins with, over TLS; a thread takes
the changes, as the scheduling thread does, and keeps the pods. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import ssl
import threading
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from random import Random
from typing import Any

from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.watching.inbox import Inbox
from kdsl.live.watching.needs import Need, Needs
from kdsl.live.watching.resources import PODS
from kdsl.live.watching.watches import Watches

from tests.live.certificates import CERTIFICATES
from tests.live.following import SilentObserver

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def pod(number: int) -> dict[str, Any]:
    """Return a bound pod as a real cluster has them: 5.8 KB, two containers, managed fields."""
    app, text = f"app-{number % 500}", f"{number:06x}"
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": app,
        "uid": f"{number % 500:036x}",
        "controller": True,
    }
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "ca"}},
    ]
    fields = {f"f:field{each}": {".": {}, "f:name": {}, "f:value": {}} for each in range(30)}
    conditions = [
        {
            "type": kind,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": f"2026-11-23T03:{number % 60:02}:{number % 59:02}Z",
            "observedGeneration": 1,
        }
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"{app}-{text}",
            "generateName": f"{app}-",
            "namespace": f"ns-{number % 50}",
            "uid": f"{number:036x}",
            "resourceVersion": str(number + 1000),
            "generation": 1,
            "creationTimestamp": "2026-11-23T03:28:03Z",
            "labels": {"app": app, "pod-template-hash": f"{number % 500:x}abc", "tier": "web"},
            "annotations": {
                "checksum/config": "a" * 64,
                "prometheus.io/scrape": "true",
                "example.io/ip": text,
            },
            "ownerReferences": [owner],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "volumes": [{"name": f"kube-api-access-{text}", "projected": {"sources": sources}}],
            "containers": [container(app, name, number) for name in ("main", "proxy")],
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 5000}",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "startTime": "2026-11-23T03:28:03Z",
            "containerStatuses": [
                {
                    "name": name,
                    "imageID": "y" * 80,
                    "containerID": "c" * 70,
                    "allocatedResources": {"cpu": "100m", "memory": "128Mi"},
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                        "limits": {"memory": "256Mi"},
                    },
                }
                for name in ("main", "proxy")
            ],
        },
    }


def container(app: str, name: str, number: int) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example/{app}:{number % 7}",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"E{each}", "value": "v" * 20} for each in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    }


def serve(pipe: Pipe, pods: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        for number in range(pods):
            line = json.dumps({"type": "ADDED", "object": pod(number)}).encode() + b"\n"
            writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            if number % 20 == 0:
                await writer.drain()
        ends = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": str(pods + 1000)}
        line = json.dumps({"type": "BOOKMARK", "object": {"metadata": ends}}).encode() + b"\n"
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await asyncio.sleep(3600)

    async def run() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.crt", CERTIFICATES / "server.key")
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def resident() -> float:
    """Return the memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024


async def measure(port: int, pods: int) -> dict[str, float]:
    inbox, kept = Inbox(), []
    thread = threading.Thread(target=keep, args=(inbox, kept, pods), daemon=True)
    thread.start()
    ca = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(CERTIFICATES / "ca.crt")}
    contexts = [{"name": "c", "context": {"cluster": "c"}}]
    text = {"clusters": [{"name": "c", "cluster": ca}], "contexts": contexts, "current-context": "c"}
    path = Path(f"/tmp/kdsl-bench-{port}.json")
    path.write_text(json.dumps(text))
    connection = await Connection.open(AccessOptions(path))
    path.unlink()
    watches = Watches(connection.client(), connection.probe, inbox, Random(0), SilentObserver())
    watches.follow(Needs((Need(PODS, ("the benchmark",)),)))
    before, wall, cpu = resident(), time.perf_counter(), time.process_time()
    task = asyncio.create_task(watches.run())
    while not watches.is_ready:
        await asyncio.sleep(0.05)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    found = {
        "pods": len(kept),
        "seconds": round(wall, 2),
        "processor_us_per_pod": round(cpu / pods * 1e6, 1),
        "MiB": round(resident() - before),
        "KiB_per_pod": round((resident() - before) * 1024 / pods, 2),
    }
    task.cancel()
    await asyncio.wait((task,))
    connection.close()
    return found


def keep(inbox: Inbox, kept: list[object], pods: int) -> None:
    while True:
        kept += [change.object for change in inbox.take(1000)[1]]
        inbox.take(0, timeout=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    pods = parser.parse_args().pods
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs, pods), daemon=True)
    server.start()
    print(json.dumps(asyncio.run(measure(ours.recv(), pods))))
    server.terminate()


if __name__ == "__main__":
    main()
