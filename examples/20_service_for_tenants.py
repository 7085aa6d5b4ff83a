"""Serve several tenants over HTTP, each with an API key for its own namespaces only.

In production, run ``kg-memory serve`` behind TLS; here the same application runs within the process. Needs the extra
``server``. Runs offline, without a model key: ``python examples/20_service_for_tenants.py``
"""

import asyncio

import httpx

from kg_memory import GraphMemory
from kg_memory.contrib.server.app import create_app
from kg_memory.contrib.server.keys import KeyRing
from kg_memory.contrib.server.service import Options


async def main() -> None:
    async with GraphMemory.open(model="offline") as memory:
        ring = KeyRing(memory.driver.store.database)
        keys = {tenant: await ring.acreate(tenant, namespaces=[f"{tenant}/*"]) for tenant in ("acme", "globex")}
        app = create_app(memory, Options(hosts=("*",), read=False))  # saved messages are read by `kg-memory worker`
        transport = httpx.ASGITransport(app=app)
        async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as web:
            for tenant, home in (("acme", "Oslo"), ("globex", "Bergen")):
                told = {"content": f"I live in {home}.", "speaker": "Ann"}
                bearer = {"Authorization": f"Bearer {keys[tenant][1]}"}
                await web.post(f"/v1/namespaces/{tenant}%2Fann/episodes", json=told, headers=bearer)

            bearer = {"Authorization": f"Bearer {keys['acme'][1]}"}
            for namespace in ("acme%2Fann", "globex%2Fann"):
                path, asked = f"/v1/namespaces/{namespace}/search", {"question": "Where does Ann live?"}
                answer = await web.post(path, json=asked, headers=bearer)
                said = answer.json()
                print(namespace, answer.status_code, said.get("detail") or said["episodes"][0]["content"])
        for key, _ in keys.values():
            await ring.arevoke(key.id)


asyncio.run(main())
