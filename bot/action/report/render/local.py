"""The commands that reproduce a result on anyone's machine."""

from __future__ import annotations

import shlex

from bot.action.report.render.markdown import fence, fence_within
from bot.action.report.render.text import clean
from bot.models.failure import Stage
from bot.models.report import Section
from bot.models.request import Request
from bot.models.result import Result

# The source to install from: it is on no package index.
INSTALL = "pip install git+https://github.com/torch-minify/torch-minify"
WARNING = "**Loading it runs code of whoever wrote the program**: treat it like running the script."
_WIDTH = 100
# A command longer than this is only shown in part: the request's file has it.
_LONGEST = 4_000


def loading(result: Result) -> str:
    """The three lines that load the exported program of `result` and run it the way it fails."""
    return "\n".join(["import torch", 'program = torch.export.load("exported_program.pt2")', _calling(result)])


def unpacking(program: str, result: Result) -> str:
    """A script that contains the exported `program` of `result` itself (zlib, then base64), loads it and runs it the way it fails."""
    rows = [program[start : start + _WIDTH] for start in range(0, len(program), _WIDTH)]
    load = "program = torch.export.load(io.BytesIO(zlib.decompress(base64.b64decode(packed))))"
    return "\n".join(["import base64, io, zlib", "import torch", 'packed = """', *rows, '"""', load, _calling(result)])


def _calling(result: Result) -> str:
    call = "(*program.example_inputs[0], **program.example_inputs[1])"
    if result.stage is Stage.AOT_INDUCTOR:
        return "torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program))" + call
    return f"torch.compile(program.module()){call}"


def command(request: Request) -> str:
    """`torch-minify run` with the options of `request`, with every value quoted for a shell."""
    options = request.options
    words = ["torch-minify", "run"]
    if request.command is not None:
        words += ["--command", " ".join(clean(request.command).split("\n"))]
    else:
        words.append("fail.py")
    given = {
        "--stage": options.stage and options.stage.value,
        "--accuracy": options.accuracy,
        "--device": options.device,
        "--budget": options.budget and f"{options.budget:g}s",
    }
    return shlex.join([*words, *(word for name, value in given.items() if value is not None for word in (name, str(value)))])


def _torch(wanted: str, result: Result | None) -> str:
    """How to get the version `wanted` of torch: pip finds only plain releases by itself."""
    night = wanted == "nightly" or ".dev" in wanted
    if not night and "+" not in wanted:
        return shlex.join(["pip", "install", f"torch=={wanted}"])
    ran = clean(result.versions.get("torch", wanted)) if result else wanted
    return f"# with torch {ran}{', a build of the night' if night else ''}, from PyTorch's own index"


def _python(request: Request) -> str:
    """The interpreter that the launcher of `request` finds, as an option."""
    look = shlex.join([*map(clean, request.launcher), "python", "-c", "import sys; print(sys.executable)"])
    return f' --python "$({look})"' if request.launcher else ""


def steps(section: Section) -> str:
    """The shell commands that repeat `section`, in a fence."""
    request, rows = section.request, [INSTALL]
    if request.options.python_version is not None:
        rows.append(f"# with Python {clean(request.options.python_version)}")
    if request.options.torch_version is not None:
        rows.append(_torch(clean(request.options.torch_version), section.result))
    if request.script is None and request.commit is not None:
        # GitHub serves the head of a pull request from the repository, even if it is from a fork
        rows += [shlex.join(["git", *words, clean(request.commit)]) for words in (["fetch", "origin"], ["checkout"])]
    # they may contain secrets, so the report does not know them
    rows.append("# what the workflow's inputs setup and env say, where it has them")
    if request.script is not None:
        rows.append("# the code in fail.py, then:")
    if request.directory:
        rows.append(shlex.join(["cd", clean(request.directory)]))
    rows.append(command(request) + _python(request))
    if section.repro is not None and section.result is not None and section.result.signature is not None:
        rows.append("# whether the repro fails in the same way:")
        rows.append("torch-minify verify repro.py --result result.json")
    text = "\n".join(" ".join(row.split("\n")) for row in rows)
    return fence_within(text, _LONGEST, "bash") or fence("# the command is too long to be shown here", "bash")
