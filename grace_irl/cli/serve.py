"""`grace-irl serve`: serve a model on this machine with vLLM."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Annotated

import typer
from rich.text import Text

from grace_irl.cli.console import say, waiting
from grace_irl.errors import InputError


def serve(
    model: Annotated[
        str | None,
        typer.Option("--model", help="A name on Hugging Face, or a folder. Example: Qwen/Qwen2.5-Coder-7B-Instruct"),
    ] = None,
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; the server asks for no key.")] = "127.0.0.1",
    max_model_len: Annotated[
        int | None, typer.Option(help="Context in tokens; by default what the machine has room for.")
    ] = None,
    quantization: Annotated[
        str, typer.Option(help="vLLM's name of a method; by default fp8 where 16 bits do not fit.")
    ] = "",
    vllm: Annotated[
        str, typer.Option("--vllm", help="vLLM's command, or the folder of its environment [env GRACE_IRL_VLLM].")
    ] = "",
    start_timeout: Annotated[float, typer.Option(help="Seconds until it must answer; a download counts.")] = 3600.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command and leave.")] = False,
    extra: Annotated[list[str] | None, typer.Argument(help="Further arguments of vllm serve, after --.")] = None,
) -> None:
    """Start a vLLM server with flags that suit `grace-irl fit`. Ctrl-C stops the server.

    Prints a fit command for the server when the server is ready. Example: grace-irl serve --model
    Qwen/Qwen2.5-Coder-7B-Instruct
    """
    from grace_irl.propose.client.local_server import LocalServer, check_port, find_vllm
    from grace_irl.propose.client.serve_command import serve_command, this_machine, weights

    if not model:
        raise InputError(
            "no --model; expected a name on Hugging Face or a folder: --model Qwen/Qwen2.5-Coder-7B-Instruct"
        )
    if not 0 < port < 65536:
        raise InputError(f"--port {port}; expected 1 to 65535")
    if max_model_len is not None and max_model_len < 1:
        raise InputError(f"--max-model-len {max_model_len}; expected 1 or more")
    try:
        program = find_vllm(vllm)
    except InputError:
        if not dry_run:
            raise
        program = "vllm"
    machine = this_machine()
    command = serve_command(
        model,
        machine,
        weights(model),
        vllm=program,
        host=host,
        port=port,
        max_model_len=max_model_len,
        quantization=quantization,
        extra=extra or (),
    )
    for note in (f"machine: {machine}", *command.notes):
        say(note, err=True)
    if dry_run:
        say(str(command))
        return
    check_port(host, port)
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    with LocalServer(command) as server:
        say(f"starting {command.model}; what vLLM says: {server.log}", err=True)
        console = waiting()
        with console.status("starting …") as status:
            shown = 0

            def on_wait(seconds: float, line: str) -> None:
                nonlocal shown
                if console.is_live:
                    status.update(Text(f"starting, {seconds:.0f} s: {line[:100]}"))
                elif seconds >= shown + 30:
                    shown = int(seconds)
                    say(f"starting, {seconds:.0f} s", err=True)

            server.wait_until_ready(start_timeout, on_wait)
        try:
            say(f"ready at {command.url}; Ctrl-C stops it. To use it:", err=True)
            say(command.fit)
            server.wait()
        except KeyboardInterrupt:  # the usual way to stop the server
            say("stopping", err=True)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
