"""The Skein of a worker: a process that begins and ends with it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from .arguments import Arguments

#: prctl's PR_SET_PDEATHSIG: the process gets this signal when its parent dies.
_PR_SET_PDEATHSIG = 1
#: Seconds that Skein may take to end its answers, and to end.
_END_SECONDS = 40

_ADDRESS = re.compile(r" at (http://\S+)/v1")
_EVENTS = re.compile(r"events of the KV cache at ([^\s,]+)")


class SkeinProcess:
    """`skein serve` on loopback, at a port of its own and with a key of its own.

    It listens, and prints its addresses on stdout:

        skein 0.1.0 serves NAME at http://127.0.0.1:41234/v1
          events of the KV cache at tcp://127.0.0.1:41235
          ... and the last line of its greeting names the first address again
    """

    def __init__(self, arguments: Arguments, on_end: Callable[[int], None]) -> None:
        self.url = ""
        self.events = ""
        self.api_key = secrets.token_urlsafe(32)
        self._is_ending = False
        self._on_end = on_end
        self._told = threading.Event()
        command = [
            *arguments.command,
            "serve",
            "--model",
            arguments.model,
            "--served-model-name",
            arguments.served_model_name,
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--kv-events-endpoint",
            "tcp://127.0.0.1:*",
            *arguments.serve_options,
        ]
        # The key comes by the environment: a list of processes would show it on the command line.
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            env={**os.environ, "SKEIN_API_KEY": self.api_key},
            text=True,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        threading.Thread(target=self._follow, daemon=True, name="skein").start()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def started(self, timeout: float) -> None:
        """Waits until it listens. Raises RuntimeError where it ends before, or takes too long."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._told.wait, timeout)
        if self.url and self.events:
            return
        code = self._process.poll()
        await self.end()
        raise RuntimeError(
            f"skein serve has not listened within {timeout:g} s"
            if code is None
            else f"skein serve ended with {code} before it listened; its words are above"
        )

    async def end(self) -> None:
        """Lets answers under way end, and ends the process."""
        self._is_ending = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._wait)

    def _wait(self) -> None:
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _follow(self) -> None:
        """Reads what it prints, and passes it on."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            sys.stderr.write(line)
            if not self.url and (found := _ADDRESS.search(line)):
                self.url = found[1]
            if not self.events and (found := _EVENTS.search(line)):
                self.events = found[1]
            if self.url and self.events:
                self._told.set()
        code = self._process.wait()
        self._told.set()
        if not self._is_ending:
            self._on_end(code)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
