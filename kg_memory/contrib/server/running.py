"""Running the server: it stops on a signal, and loses nothing."""

from __future__ import annotations

from types import FrameType

import uvicorn

from kg_memory.contrib.server.service import Service


class StoppingServer(uvicorn.Server):
    """A server that ends the streams of events when it is told to stop, as they would never end by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._service.stopping = True
        super().handle_exit(sig, frame)
