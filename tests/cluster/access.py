"""A cluster behind TLS with certificates, and a user with no more rights than kg-memory needs."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.nodes import SLOTS, Node, free_ports, slot_of, until

KEYS = ("~kg*", "~telemetry{kg*")
USED = (
    "+graph.query +graph.ro_query +graph.list +graph.delete +module|list +cluster|slots +exists"
    " +set +get +pexpire +evalsha +script|load +del +scan"
).split()
COPIES = "+graph.copy +client|setname +client|list +watch +unwatch +multi +exec +rename".split()
FORGETTING = "+hsetnx +hlen +hexists +hmget +hset +hget +hdel +hgetall +hvals +xrevrange".split()
WAITING = "+wait +role".split()
WORKING = "+xadd +expire +xread +eval +client|no-touch".split()
SLEEPING = "+eval +type +restore +dump +object|idletime +client|no-touch +info +watch +unwatch +multi +exec".split()
ERASING = "+graph.config|get +graph.slowlog +slowlog|reset +info +config|get +bgrewriteaof +bgsave".split()


class Certificates:
    """An authority, a certificate of this machine's address, and one of a client."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._make("ca", "-addext", "basicConstraints=critical,CA:TRUE")
        for name, address in (("server", "IP:127.0.0.1"), ("elsewhere", "DNS:db.example.com"), ("client", "DNS:ann")):
            issuer = ("-CA", self.file("ca.crt"), "-CAkey", self.file("ca.key"))
            self._make(name, *issuer, "-addext", f"subjectAltName={address}")

    def file(self, name: str) -> str:
        return str(self._folder / name)

    def _make(self, name: str, *options: str) -> None:
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split()
        files = ("-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.crt"))
        subprocess.run([*new, *files, "-subj", f"/CN={name}", *options], check=True, capture_output=True)

    def query(self, *, client: bool = True) -> str:
        own = f"&ssl_certfile={self.file('client.crt')}&ssl_keyfile={self.file('client.key')}" if client else ""
        return f"?ssl_ca_certs={self.file('ca.crt')}{own}"

    @contextmanager
    def before(self, port: int, own: int, name: str = "server") -> Iterator[None]:
        """Accept TLS of clients with a certificate on the port *own*, and forward their data to *port*.

        The redis-server of the tests has no TLS of its own.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.file("ca.crt"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self.file(f"{name}.crt"), self.file(f"{name}.key"))
        with ExitStack() as opened, socket.create_server(("127.0.0.1", own)) as listening:

            def pump(source: socket.socket, target: socket.socket) -> None:
                with suppress(OSError):
                    while data := source.recv(65536):
                        target.sendall(data)
                for end in (source, target):
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

            def serve(plain: socket.socket) -> None:
                with suppress(OSError):
                    secure = opened.enter_context(context.wrap_socket(plain, server_side=True))
                    inner = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
                    threading.Thread(target=pump, args=(secure, inner), daemon=True).start()
                    pump(inner, secure)

            def accept() -> None:
                with suppress(OSError):
                    while True:
                        threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

            threading.Thread(target=accept, daemon=True).start()
            yield
            listening.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Secured:
    """Masters without replicas; *url* has the user, the password and the certificates."""

    nodes: list[Node]
    url: str

    def holds(self, node: Node, namespace: str) -> bool:
        place = self.nodes.index(node)
        return _first(place, self.nodes) <= slot_of(namespace) < _first(place + 1, self.nodes)

    def empty(self) -> None:
        for node in self.nodes:
            node.redis.flushall()


def _first(place: int, nodes: list[Node]) -> int:
    return place * SLOTS // len(nodes)


@contextmanager
def secured(folder: Path, masters: int = 2, rights: tuple[str, ...] = ("~*", "+@all")) -> Iterator[Secured]:
    """Run the cluster in *folder*; *rights* are the rights of the user."""
    folder.mkdir()
    ports = free_ports(masters)
    certificates = Certificates(folder)
    with ExitStack() as opened:
        nodes: list[Node] = []
        for port in ports:
            nodes.append(Node(folder / str(port), "--cluster-announce-port", str(port)))
            opened.callback(nodes[-1].close)
        for place, node in enumerate(nodes):
            if place:
                nodes[0].cluster("MEET", "127.0.0.1", node.port, node.bus)
            node.cluster("ADDSLOTSRANGE", _first(place, nodes), _first(place + 1, nodes) - 1)
            node.redis.execute_command("ACL", "SETUSER", "ann", "reset", "on", ">p@ss", *rights)
        until(lambda: all(node.cluster("INFO")["cluster_state"] == "ok" for node in nodes))
        for node, port in zip(nodes, ports, strict=True):
            opened.enter_context(certificates.before(node.port, port))
        yield Secured(nodes, f"falkors://ann:p%40ss@127.0.0.1:{ports[0]}{certificates.query()}")
