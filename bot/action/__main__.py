"""What the images run: one mode of the Action, by its inputs.

`gate`, `report`, `stop` and `sweep` are jobs on a hosted runner; `minify` is the job with the GPU, where no token is wanted.
`auto` is all of them in one job, for a repository that trusts those who may ask.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from bot.action import settings as settings_room
from bot.action.minify import isolation
from bot.action.minify import minify as minifying
from bot.action.settings import Settings, SettingsError
from bot.models.result import EXIT_STATUS, Result


def main() -> int:
    """Exit status of the job: 0 where all went as it should, whatever the answer is."""
    try:
        settings = settings_room.read()
    except SettingsError as error:
        sys.stderr.write(f"torch-minify: {error}\n")
        return 2
    if settings.mode != "minify" and not settings.token.get_secret_value():
        sys.stderr.write("torch-minify: input github-token is empty: everything but the mode minify speaks with GitHub\n")
        return 2
    modes: dict[str, Callable[[Settings], int]] = {
        "auto": _auto,
        "gate": _gate,
        "minify": _minify,
        "report": _report,
        "stop": _stop,
        "sweep": _sweep,
    }
    return modes[settings.mode](settings)


def minify(request: Path, index: int, out: Path) -> int:
    """`torch-minify minify`; the exit status of `run`, 2 for unusable arguments."""
    try:
        settings = settings_room.read()
        asked = minifying.read(request, index)
    except (SettingsError, minifying.RequestError) as error:
        sys.stderr.write(f"torch-minify: {error}\n")
        return 2
    return minifying.minify(asked, minifying.place(settings), out, os.environ)


def _minify(settings: Settings) -> int:
    _drop_secrets()
    status = minify(settings.request_file, settings.index, settings.result)
    _say_status(settings, status)
    return 0 if status in minifying.GREEN else status


def _gate(settings: Settings) -> int:
    from bot.action.gate import gate

    return gate.main(_event(settings), settings.event_name, settings.request_file)


def _stop(settings: Settings) -> int:
    from bot.action.gate import gate

    return gate.main(_event(settings), settings.event_name, None)


def _report(settings: Settings) -> int:
    from bot.action.report import post

    return post.main([settings.results], settings.request_file, dry_run=False)


def _sweep(settings: Settings) -> int:
    from bot.action.report import sweep

    return sweep.main(settings)


def _auto(settings: Settings) -> int:
    from bot.action import auto

    isolation.make_undumpable()
    return auto.main(settings)


def _event(settings: Settings) -> Path:
    return settings.event_path or Path(os.devnull)


def _drop_secrets() -> None:
    """Start again without what a program must not find in our process's environment, should the runner have put it there."""
    clean = {name: value for name, value in os.environ.items() if not isolation.is_secret_name(name)}
    if clean.keys() != os.environ.keys():
        os.execve(sys.executable, [sys.executable, "-I", "-m", "bot.action"], clean)


def _say_status(settings: Settings, status: int) -> None:
    """The output `status`: what the result says, which a program may have written, is one of five words or nothing."""
    if settings.output is None:
        return
    words = {number: word for word, number in EXIT_STATUS.items()}
    try:
        said = Result.model_validate_json((settings.result / "result.json").read_bytes()).status
    except (OSError, ValueError):
        said = words.get(status, "error")
    end = f"end-{secrets.token_hex(16)}"
    with settings.output.open("a", encoding="utf-8") as file:
        file.write(f"status<<{end}\n{said}\n{end}\n")


if __name__ == "__main__":
    raise SystemExit(main())
