"""From an exception's message to the part of it that names the bug: the same after renaming, reshaping, moving.

Numbers, addresses, paths, generated names and argument dumps change from candidate to candidate while the bug stays,
so they go. What says which bug it is (operator, class, wording, C++ diagnostic) stays.
"""

from __future__ import annotations

import re

MAX_MESSAGE = 500  # characters of a normalised message
_MAX_READ = 64_000  # characters of a message that are looked at, C++ diagnostics apart
_MAX_LINE = 4_000

_QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}

# Classes whose message is "Inner: message of the inner exception".
_WRAPPERS = frozenset(
    {
        "BackendCompilerFailed",
        "InductorError",
        "InternalTorchDynamoError",
        "LoweringException",
        "SubgraphLoweringException",
        "SubprocException",
        "TorchRuntimeError",
    }
)
_CPP_ERRORS = frozenset({"CppCompileError", "CUDACompileError"})
_TRITON_ERRORS = frozenset({"CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"})

_BACKEND = re.compile(r"\s*backend=.{0,200}? raised:\n")
_INNER = re.compile(r"\s*(?:torch\.[\w.]+\.)?([A-Za-z_][\w.]*)(?::[ \n]?|(?=\n|$))")
_GOT = re.compile(r"\bgot (?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\((.*)\)[ \t]*$", re.MULTILINE)

# gcc: "file:line:col: error: text"; clang the same; ld: "undefined reference to ..."
_CPP_DIAGNOSTIC = re.compile(r"^[^\n:]{1,4000}(?::\d+)*: (?:fatal |internal compiler )?error: ?([^\n]*)", re.MULTILINE)
_LINKER = re.compile(r"^[^\n]*?(undefined reference to [^\n]*|cannot find -l[^\n]*|(?:multiple|duplicate) definition[^\n]*)", re.MULTILINE)
_LINKER_FAILED = re.compile(r"ld returned|linker command failed")
_CPP_OUTPUT = re.compile(r"^Output:\n\s*([^\n]+)", re.MULTILINE)
_INLINE_TAIL = re.compile(r" ?(?:For more information, run with|Set TORCH).*$", re.MULTILINE)
_CPP_HINT = re.compile(r"[;:,] did you mean .*$")

# From such a line on, a message only repeats the program or gives advice.
_TAIL = re.compile(
    r"^[ \t]{0,40}(?:from user code:|Set TORCHDYNAMO_VERBOSE|Set TORCH_LOGS|You can suppress this exception|While executing "
    r"|Original traceback:|Use tlparse|Developer debug context:|For more details about|Found from|User Stack|Caused by:"
    r"|consider using data-dependent"
    r"|For C\+\+ stack trace|For more information|For extended logs|If you suspect|The error above occurred when|Exception raised from"
    r"|C\+\+ CapturedTraceback|Potential framework code culprit|The following call raised|CUDA kernel errors might be"
    r"|For debugging consider|Compile with `TORCH_USE_CUDA_DSA`|args\[\d+\]:|kwargs:|Hint:|\(Size-like symbols|To fix the error"
    r"|Suggested fixes|Traceback \(most recent call last\)|=+ TorchDynamo Stack Trace|\[compiler-out\])",
    re.MULTILINE,
)
_EXPLANATION = re.compile(r"^[ \t]{0,40}Explanation: *([^\n]+)", re.MULTILINE)
_TARGET = re.compile(r"^[ \t]{0,40}target: *([^\n]{1,300})", re.MULTILINE)

_DUMPED = re.compile(
    r"\b(FakeTensor|FunctionalTensor|TensorBox|StorageBox|ComputedBuffer|InputBuffer|ConstantBuffer|ReinterpretView|FixedLayout|FlexibleLayout"
    r"|View|Pointwise|Reduction|Parameter|Proxy|TensorVariable|SymInt|OrderedSet|tensor|TensorMetadata|MetaTensor)\("
)
_URL = re.compile(r"https?://\S+")
_PATH = re.compile(r"(?<![\w./])(?:[A-Za-z]:)?(?:(?:/[\w.+@~-]+){2,}/?|(?:[\w.+@~-]+/)+[\w.+@~-]+\.(?:py|cpp|cu|h|so|pt2)\b)")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_KERNEL = re.compile(r"\b(cpp|triton|graph)_(?:\w+_)?fused\w*")
_KEY = re.compile(r"\b(?=[a-z]*\d)[a-z0-9_]{24,}\b")
_UNHINTED = re.compile(r" ?\((?:unhinted|hint|Size-like symbols):[^()]*(?:\([^()]*\)[^()]*)*\)\.?")
_GENERATED = re.compile(
    r"\b((?:buf|tmp|arg|op|primals|tangents|getitem|fwd|bwd|in_out_ptr|in_ptr|out_ptr|ptr|zuf|ps|ks|idx|index|xindex|yindex|rindex|acc|tmp_acc"
    r"|graph|subgraph|L|GraphModule|[a-z]))\d+(?=_|\b)"
)
_SUFFIX = re.compile(r"(?<=[A-Za-z])_\d+(?:_\d+)*(?=\b|_)")
_SHAPE = re.compile(r"\b\d+(?:x\d+)+\b")
_NUMBER = re.compile(r"(?<![A-Za-z_\d])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[uUlL]{0,3}(?![A-Za-z_\d])")
# A size of 0 or 1 is a constant for every program; any other that becomes one is the program's doing.
_SPECIAL = re.compile(r"\bconstant \([01]\)")
_LIST = re.compile(r"((?<!\w)\(|\[)\s*(?:[suz]?N|[suz]N\*N)(?:\s*,\s*(?:[suz]?N))*\s*,?\s*([\])])")
_BLANKS = re.compile(r"\s+")


_IMPORTED = re.compile(r"\s*Failed to import [^\n]*\n\s*(\w+): ([^\n]*)")
_PLACE = re.compile(r" \([\w<>. ]+, line \d+\)\s*$")


def _collapse(text: str) -> str:
    """`Name(...)` in place of each dump of a tensor, a node or a buffer."""
    out: list[str] = []
    at = 0
    while True:
        found = _DUMPED.search(text, at)
        if found is None:
            out.append(text[at:])
            return "".join(out)
        out.append(text[at : found.end()])
        depth, i = 1, found.end()
        while i < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[i], 0)
            i += 1
        out.append("...)")
        at = i


def normalise(text: str) -> str:
    """One line in which nothing depends on sizes, counters, places or generated names."""
    text = _collapse(text[:_MAX_LINE]).translate(_QUOTES)
    text = _PATH.sub("<path>", _URL.sub("<url>", text))
    text = _ADDRESS.sub("N", text)
    text = _UNHINTED.sub("", text)
    text = _KERNEL.sub(r"\1_kernel", text)
    text = _KEY.sub("<key>", text)
    text = _SPECIAL.sub("constant (zero or one)", text)
    text = _SHAPE.sub("N", text)
    text = _SUFFIX.sub("", text)
    text = _GENERATED.sub(r"\1N", text)
    text = _NUMBER.sub("N", text)
    text = _LIST.sub(r"\1N\2", text)
    return _BLANKS.sub(" ", text).strip()


def _peel_once(name: str, message: str) -> tuple[str, str] | None:
    imported = _IMPORTED.match(message)
    if imported is not None:  # generated code that Python itself refuses: the reason stands on the next line
        return imported[1], _PLACE.sub("", imported[2])
    if name not in _WRAPPERS:
        return None
    if name == "TorchRuntimeError":
        got = _GOT.search(message[: _MAX_READ // 2])
        if got is None:
            return None
        return got[1], got[2].strip("'\"").replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
    backend = _BACKEND.match(message)
    rest = message[backend.end() :] if backend else message
    inner = _INNER.match(rest)
    if inner is None or not inner[1].rpartition(".")[2][:1].isupper():
        return None
    return inner[1].rpartition(".")[2], rest[inner.end() :]


def peel(name: str, message: str) -> tuple[tuple[str, ...], str]:
    """The classes named in a message that quotes other exceptions, outermost first, and the innermost one's own message."""
    names = [name] if name else []
    for _ in range(8):
        inner = _peel_once(name, message)
        if inner is None:
            break
        name, message = inner
        names.append(name)
    return tuple(names), message


def _cpp(message: str) -> str:
    diagnostics = (found for found in _CPP_DIAGNOSTIC.finditer(message) if not _LINKER_FAILED.match(found[1]))
    found = next(diagnostics, None) or _LINKER.search(message) or _CPP_OUTPUT.search(message)
    return _CPP_HINT.sub("", found[1].translate(_QUOTES)) if found else "C++ compile error"


def essence(name: str, message: str) -> str:
    """The normalised message of an exception of class `name`: at most `MAX_MESSAGE` characters, up to three lines.

    The first line that says anything; for a graph break its explanation too; for a failed lowering the operator.
    """
    if name in _CPP_ERRORS:
        return normalise(_cpp(message))[:MAX_MESSAGE]
    message = message[:_MAX_READ]
    tail = _TAIL.search(message)
    said = _INLINE_TAIL.sub("", _collapse(message[: tail.start()] if tail else message))
    target = _TARGET.search(message)
    lines = [line for line in said.split("\n") if line.strip() and not _TARGET.match(line) and not _EXPLANATION.match(line)]
    if name in _TRITON_ERRORS:
        lines = lines[-1:]  # the kernel's source is quoted first
    parts = [normalise(line) for line in lines[:1]]
    if len(lines) > 1 and lines[0].rstrip().endswith((":", ")!")):
        parts.append(normalise(lines[1]))  # "Something failed:" alone names no bug
    explanation = _EXPLANATION.search(said)
    if explanation:
        parts.append(normalise(explanation[1]))
    if target:
        parts.append("target: " + _BLANKS.sub(" ", _ADDRESS.sub("N", target[1])).strip())  # conv1d is not conv2d: its digits stay
    return "\n".join(part for part in parts if part)[:MAX_MESSAGE]
