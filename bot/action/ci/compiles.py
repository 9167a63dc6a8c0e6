"""Whether a failing test compiles anything, by what the log shows of it."""

from __future__ import annotations

import re
from itertools import pairwise

from bot.action.ci.failing_test import Failure
from bot.action.ci.python_words import HEADER
from bot.failure.traceback import frame_place
from bot.models.failure import Signature

# Only a size that is traced is asked about here.
_SIZES = ("torch/fx/experimental/symbolic_shapes.py", "torch/fx/experimental/sym_node.py")
# Inductor's own directory; PyTorch's tests of Inductor are called so, too.
_CACHE = "(?<!test_)torchinductor_"
# What the compiler's own messages end with.
ADVICE = (
    r"\nfrom user code:\n|TORCHDYNAMO_EXTENDED_DEBUG_|(?:Set )?TORCHDYNAMO_VERBOSE=1 for"
    r'|Set TORCH_LOGS="\+dynamo" (?:and TORCHDYNAMO_VERBOSE|for more )'
    r"|torch\._dynamo\.config\.suppress_errors = True|For C\+\+ stack trace, run with TORC"
    # the node of a graph of operators that was running
    r"|While executing %\w{1,100} : (?:\[[^\]\n]{1,40}\] ?= )?call_function\[target=torch\.ops\."
)
# What Dynamo says below its message.
EXPLAINS = r"  (?:Explanation|Hint|Developer debug context): .{0,2000}?(?:\b[Dd]ynamo\b|\btorch\.compile|fullgraph|\bgraph break\b)"
# Classes that the compiler alone has, under names that nothing else has.
CLASSES = frozenset(
    {"BackendCompilerFailed", "CppCompileError", "CUDACompileError", "InductorError", "InternalTorchDynamoError", "LoweringException"}
    | {"TorchRuntimeError", "UncapturedHigherOrderOpError", "RecompileError", "FailOnRecompileLimitHit", "RecompileLimitExceeded"}
    | {"PTXASError", "SubprocException", "GuardOnDataDependentSymNode", "ConstraintViolationError", "PendingUnbackedSymbolNotFound"}
    | {"NoTritonConfigsError", "NoValidChoicesError", "CompileTimeAssertionFailure", "TorchExportError", "CppWrapperCodegenError"}
    | {"DynamicOutputShapeException", "DataDependentOutputException", "UnsupportedFakeTensorException", "UnsupportedOperatorException"}
    | {"FakeTensorDeviceMismatchError", "UnsupportedAliasMutationException", "UnsupportedMutationAliasingException"}
    | {"SubgraphLoweringException", "SpeculationLogDivergence", "ResumePrologueTracingError", "CondOpArgsMismatchError"}
)
# Raised by the compiler alone, also where its frames were cut out of the traceback.
COMPILERS = CLASSES | {"Unsupported", "TritonMissing", "CompilationError", "TorchDynamoException"}
# How tests say it that compare by themselves, where they say what they compare: signal to noise, a bound.
_NUMBER = r"(?:tensor\([^()]{0,200}\)|-?\d{1,9}\.\d{1,20}(?:e[+-]?\d{1,3})?)"
_BOUNDS = re.compile(
    rf"(?<![\w.]){_NUMBER} not (?:greater|less) than|\bassert {_NUMBER} [<>]=? "
    r"|\b(?:SQNR|PSNR|SNR|cosine similarity|[Mm]ax(?:imum)? diff\w{0,20})\b"
)
_COMPILED = re.compile(r"\b(?:compiled?|inductor|dynamo)\b", re.IGNORECASE)
# How pytest and unittest say that an error did not come.
_MISSING = re.compile(r"^(?:DID NOT RAISE (?P<pytest>.{1,300})|(?P<unittest>[\w.]{1,200}) not raised(?: by .{1,300})?)$")
_IN_COMPILER = re.compile(r"\btorch\.(?:_dynamo|_inductor|_functorch|_export|export|_subclasses|fx)\.|\btriton\.")
# The last part of a class's name, also in a tuple.
_CLASS = re.compile(r"(?:[\w.]{0,200}\.)?([A-Z]\w{0,100})")
# What reads a result that Inductor's CUDA graphs have overwritten is told so, wherever it stands; who quotes that may break the line.
OVERWRITTEN = "accessing tensor output of CUDAGraphs"
# What Inductor's code says of inputs that have other strides than those that it was made for.
STRIDES = r"expected size \S{1,20}==\S{1,20}, stride \S{1,20}==\S{1,20} at dim="
# What the compiler says in classes that anything may raise: of guards that do not hold for the values for which it has just made them, of
# what traces its functions, of sizes that it cannot know, of what it makes of mutations and operators, and of inputs that moved.
TRACERS = (
    r"(?:Guard (?:check )?failed (?:immediately after translation|on the same frame it was created)"
    r"|Please convert all Tensors to FakeTensors first\b|Detected that you are using FX to \S{1,40}(?: trace)? a dynamo-optimized function"
    r"|We found a fake tensor in the exported program|Could not (?:guard on|extract specialized integer from) data-dependent expression"
    r"|Constraints violated \(|Cannot call (?:numel|sizes|strides)\(\) on tensor with symbolic sizes"
    r"|torch\.compile with aot_autograd does not currently|Found a graph input that |auto_functionalized(?:_v2)? was not removed"
    r"|Found <class '[^'\n]{1,200}'> in output, which is not a known type"
    r"|out= ops aren't yet supported|static input data pointer changed|input name: \S{1,100}\. data pointer changed from "
    # of tensors that hold nothing
    r"|fake mode (?:\(.{1,200}\) )?from (?:fake )?tensor input \d"
    r"|Cannot access data pointer of Tensor \(e\.g\. FakeTensor|Attempting to use FunctionalTensor on its own"
    r"|SymIntArrayRef expected to contain only concrete integers|whole graph export entails exactly one"
    # of backwards, of operators without what traces them, of what is tried out, of a function that was left out
    r"|This backward function was compiled with non-empty donated|During the backward, we encountered a tensor subclass where we guessed"
    r"|aot_autograd\(\) does not yet handle|There was no (?:fake|abstract) impl registered for|Failed to run autotuning code block"
    r"|torch\.compile with fullgraph=True(?:$|\s+found no compiled frames)"
    r"|Node \S{1,100} was invalid, but is output|Detected recompile when torch\.compile stance is "
    # of nodes that run on tensors that hold nothing, of operators there, of what Dynamo and export do not take
    r"|Failed running call_(?:function|method|module) \S|Dynamo failed to run FX node with fake tensors"
    r"|Operator does not support running with fake tensors|Unhandled FakeTensor Device Propagation for |Mixing fake modes NYI"
    r"|torch\.\* op returned non-Tensor|Dynamic control flow is not supported at the moment"
    r"|Tried to use data-dependent value in the subsequent computation|Mutating module attribute \w{1,100} during export"
    r"|Found following user inputs located at \[|It looks like one of the (?:in|out)puts with type "
    r"|Encountered duplicate inputs that are mutated in the graph|Tried to emit a second graph during export"
    r"|Failed to produce (?:a graph|guards) during tracing|Output aliasing is currently not supported in compiled "
    r"|At compilation time, (?:this )?graph |Unsupported input type [^\n]{1,200}\. Export only supports "
    r"|It appears that you're trying to get value out of a tracing tensor"
    # of graphs of CUDA that it records
    r"|TODO: graph recording observed an input tensor|These (?:live )?storage data ptrs are "
    r"|cudaMallocAsync does not yet support checkPoolLiveAllocations"
    # of inputs of what was compiled before, of a server that compiles
    r"|Expected tensors only, but got: <class '|vLLM failed to compile the model\b"
    # of Triton's assembler, before it had a class
    r"|Internal Triton PTX codegen error\b"
    # of sizes, whose names the code has that is made
    r"|name '[su]\d{1,3}' is not defined|s\d{1,3} \(could be from \[)"
)
# The place of a check in C++ may stand before its message.
CHECKED = r"(?:[\w./-]{1,200}\.(?:cpp|cu|h):\d{1,7}: )?"
# What C++ that Inductor made, or that runs it, says of a call: what went wrong in it was printed.
CALL_FAILED = "API call failed at "
# The things with which it traces, as a message shows them: they are nowhere else. A model that was compiled is met by eager code, too,
# and so are the names of errors.
TRACED = (
    r"(?:<(?:class ')?torch\.(?:_dynamo(?!\.(?:eval_frame|exc)\.)|_inductor(?!\.exc\.)|_subclasses|_functorch\._aot_autograd"
    r"|fx\.experimental)\.[\w.]{1,100}(?:'>| object at )"
    r"|'(?:FakeTensor|FunctionalTensor|Sym(?:Int|Float|Bool))' object "
    r"|\b(?:(?:Fake|Functional)Tensor(?:Mode)?|FakeScriptObject)\b(?! object)"
    r"|\b(?:AOTAutograd|AOT Autograd|aot_export_\w{1,40}|TorchDynamo|TorchInductor)\b"
    # Dynamo's variables, Inductor's kernels and buffers
    r"|\b(?:Builtin|ConstDict|Constant|GetAttr|(?:Unspecialized)?NNModule|PythonModule|SkipFunction|SymNode|Tensor|TorchInGraphFunction"
    r"|UserDefined(?:Class|Object)|UserFunction|UserMethod)Variable(?:\(|' object)"
    # the C++ that runs and loads what AOTInductor made, a library that Inductor named by its hash, and a call in C++ that it named so
    r"|\btorch/csrc/inductor/[\w/]{1,100}\.(?:cpp|h)(?:, line |:)\d|\bFailure loading \.so: |\bc[a-z2-7]{51}\.(?:\w{1,20}\.)?so\b"
    rf"|\b{CALL_FAILED}\S{{1,300}}[\\/]c[a-z2-7]{{51}}\.(?:\w{{1,20}}\.)?(?:cpp|h), line \d"
    r"|\btriton_(?:poi|red|per)_fused_|\b(?:TensorBox|StorageBox|ComputedBuffer|InputBuffer|FixedLayout|FlexibleLayout)\()"
)
# Where a library hands graphs to the compiler: the file of its backend for Dynamo, those of its passes, and functions that compile.
HANDS_OVER = (
    r"""/compilation/(?:(?:backends?|compiler\w{0,40}|(?:\w{1,40}/){0,3}\w{0,60}(?:fusion|pass)\w{0,60})\.py", line \d{1,7}, in """
    r"""|\w{1,60}\.py", line \d{1,7}, in \w{0,60}compile)"""
)
_MENTIONS = re.compile(rf"torch/_(?:dynamo|inductor|functorch|export)/|{_CACHE}|torch\.compile\(|aoti_compile|torch\.export|{ADVICE}")
# What Inductor wrote, in its own directory, in vLLM's or in that of one test, where its name is the hash of it.
_MADE = re.compile(rf"{_CACHE}|/inductor_cache/|/[a-z0-9]{{2}}/c[a-z2-7]{{20,60}}\.py$")
# The compiler's own files: the rest of functorch runs in eager.
_FILES = re.compile(
    # Dynamo and Inductor were packages of their own
    r"torch/(?:_(?:dynamo|inductor|export)|export)/|(?:-packages|/torchdynamo)/torch(?:dynamo|inductor)/|torch/_functorch/(?:_aot_autograd/|(?:aot_autograd|partitioners|compilers)\.py)"
    f"|{_MADE.pattern}"
)
# What Dynamo made of a function stands on the line of its head, or of its decorator: no code of its own is there.
_HEAD = re.compile(
    r"""_dynamo[\\/]eval_frame\.py", line \d{1,9}, in \w{1,200}\n(?: {4,}[^\n]{0,2000}\n){0,9}"""
    rf"""  {frame_place()}, in (?P<name>\w{{1,200}})\n {{4}}(?:@|(?:async )?def (?P=name)\()[^\n]{{0,2000}}\n(?! {{2}})"""
)
# So many frames lie between its code and what it calls, beside those of torch and Triton, which call an operator or launch a kernel.
_NEAR = 6
_BETWEEN = re.compile(r"(?:^|/)(?:torch|triton)/")
# Where a kernel is launched: the frame above shows whose it is.
_LAUNCHED = re.compile(r"(?:^|/)triton/runtime/(?:jit|autotuner)\.py$")
# The first line of a kernel that Triton could not compile; the compiler's have its name, and so have their helpers.
_NOT_MADE = re.compile(r"CompilationError: at \d{1,9}:\d{1,9}:\s{0,9}def (?!_?triton_)\w")
_PLACE = " {0,40}" + frame_place(r'(?P<path>[^"\n]{1,1000})')
_FRAME = re.compile(f"^{_PLACE}", re.MULTILINE)
# Its tools for tests, which call them; and what calls a function that is not to be compiled.
_TOOLS = ("torch/_inductor/utils.py", "torch/_dynamo/testing.py", "/test_case.py", "torch/_dynamo/external_utils.py")
_MODULE = re.compile(f"^{_PLACE}, in <module>$", re.MULTILINE)
# The last frame of a log that ends where a module imports another one.
_IMPORTS = re.compile(
    rf"\n {{0,40}}{frame_place()}, in (?:<module>\n {{4,}}(?:import |from \S{{1,200}} import )[^\n]{{0,2000}}|_find_and_load)"
    # the next one may be cut off in its path
    r'(?:\n {0,40}File "[^"\n]{0,1000})?$'
)
# In it a thread waits for the processes that compile, in whatever process has imported Inductor.
_WAITS = "torch/_inductor/compile_worker/subproc_pool.py"
# Through these an operator is called, and its shape is found; in these it is written in Python.
_OPERATORS = re.compile(
    r"torch/(?:_ops|_meta_registrations|_compile|_dynamo/eval_frame)\.py$|torch/(?:_prims|_prims_common|_refs|_decomp|_library)/"
)
# By these a test asserts.
_ASSERTS = ("/test_case.py", "unittest/case.py", "expecttest/__init__.py")
# What is never compiled, as a function that is checkpointed, is called in eager through this file, and then through one of Dynamo's.
_NEVER = "torch/_compile.py"
# What compiles a function, or switches that off for it, calls it there.
_SWITCHES = "torch/_dynamo/eval_frame.py"
_CALLED = re.compile(r", in _fn(?:\n {4,}return fn\(|$)")
# The same where functions have their qualified names.
_DISABLED = ", in DisableContext."
_CALLS = re.compile(
    # what compiles or does something else does not say so
    rf"torch\.(?:compile|export|_dynamo|_inductor)\b|(?<!re\.)\bcompiled?(?:_(?!or_)\w{{1,60}})?\(|\baoti_\w|\binductor\b|{ADVICE}|{HANDS_OVER}"
)
# What Dynamo calls the rest of a function behind a graph break.
_RESUMED = re.compile(rf"^ {{0,40}}{frame_place()}, in (?:<(?:graph break|resume) in |torch_dynamo_resume_in_)", re.MULTILINE)
_MARKED = re.compile(r"^> {2,}\S", re.MULTILINE)
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
# What a test that compiles is called, or is run with.
_NAMED = re.compile(r"compil|inductor|dynamo|export|aoti|(?<![a-z])aot(?![a-z])|flex_?attention", re.IGNORECASE)
# Where it is switched off: by a parameter of the test, by a variable. What is called alike: a database, what is written to a file, what
# torch.cuda makes of a source in C++.
_OFF = re.compile(
    r"(?:torch_|use_)?(?:compiled?|dynamo|inductor)[_=-](?:False|off|none|0)(?![a-z0-9])|(?:no|not|without)_(?:torch_)?compil(?:ed|e|ing)"
    r"|TORCH(?:DYNAMO|_COMPILE)_DISABLE=1|compile_?kernel"
    r"|dynamo_?db|(?:onnx|csv|json|yaml|html|pdf)[_/]export|export(?:ed|ers?|ing|s)?[_/](?:to_|as_)?(?:onnx|csv|json|yaml|html|pdf)",
    re.IGNORECASE,
)


def on_stack(text: str) -> bool:
    """Whether a frame in the traceback `text` is the compiler's; where there are no frames, whether it is spoken of."""
    before = None
    for found in _FRAME.finditer(text):
        path = found["path"].replace("\\", "/")
        never = (before or "").endswith(_NEVER) or text.startswith(_DISABLED, found.end())
        # what is above may be cut off, and have switched it off
        untold = before is None and path.endswith(_SWITCHES) and bool(_CALLED.match(text, found.end()))
        if _FILES.search(path) and not path.endswith((*_TOOLS, _WAITS)) and not (never or untold):
            return True
        before = path
    return before is None and bool(_MENTIONS.search(text))


def _paths(text: str) -> list[str]:
    """The files of the frames of the last traceback in `text`, the innermost last; what Dynamo quotes of the program's stack is none."""
    last = text.rpartition(HEADER)[2].partition("\nfrom user code:")[0]
    return [each["path"].replace("\\", "/") for each in _FRAME.finditer(last)]


def raised_in_own_kernel(text: str) -> bool:
    """Whether the last traceback in `text` ends below a kernel of Triton's that a program launched, and the compiler did not make. Where it
    does not show what launched it, but frames beside, the kernel's name tells whose it is."""
    paths = _paths(text)
    launchers = (above for above, path in pairwise(paths) if _LAUNCHED.search(path) and not _LAUNCHED.search(above))
    launcher = next(launchers, "")
    if not launcher:
        return bool(paths and _NOT_MADE.search(text.rpartition(HEADER)[2])) and not on_stack(text)
    return not (_BETWEEN.search(launcher) or _MADE.search(launcher))


def raised_at_prompt(text: str) -> bool:
    """Whether the last traceback in `text` ends where somebody called something by hand, at Python's prompt."""
    return _paths(text)[-1:] == ["<stdin>"]


def raised_in_test(text: str) -> bool:
    """Whether the innermost frame of the last traceback in `text` is that of a file of tests."""
    return any(map(_TEST_FILE.search, _paths(text)[-1:]))


def asserts(text: str) -> bool:
    """Whether the innermost frame of the last traceback in `text` is that of an assertion of a test."""
    return any(path.endswith(_ASSERTS) for path in _paths(text)[-1:])


def raised_at_import(text: str) -> bool:
    """Whether the last traceback in `text` ends where a module of the compiler was being imported, itself or what it imports.

    Its processes run one as their program.
    """
    modules = (each["path"].replace("\\", "/") for each in _MODULE.finditer(text.rpartition(HEADER)[2]))
    return any(_FILES.search(path) and not _MADE.search(path) and not path.endswith("/__main__.py") for path in modules)


def ends_at_import(text: str) -> bool:
    """Whether the innermost frame of the last traceback in `text` is one that imports a module, or through which Python does that."""
    named = any(path.endswith("/importlib/__init__.py") or path.startswith("<frozen importlib") for path in _paths(text)[-1:])
    return named or bool(_IMPORTS.search(text.rpartition(HEADER)[2].rstrip()))


def raised_on_sizes(text: str) -> bool:
    """Whether the last traceback in `text` ends where a symbolic size was asked about."""
    return any(path.endswith(_SIZES) for path in _paths(text)[-1:])


def raised_on_fakes(text: str) -> bool:
    """Whether the last traceback in `text` ends where an operator ran on a tensor that is traced, and holds no values."""
    paths = _paths(text)
    # an operator that ran on them
    while len(paths) > 1 and _OPERATORS.search(paths[-1]):
        paths.pop()
    return any("torch/_subclasses/" in path for path in paths[-1:])


def raised_in_compiler(text: str) -> bool:
    """Whether the innermost frame of the last traceback in `text` is the compiler's."""
    return any(_FILES.search(path) and not _MADE.search(path) and not path.endswith((*_TOOLS, _WAITS)) for path in _paths(text)[-1:])


def raised_in_made(text: str) -> bool:
    """Whether the last traceback in `text` ends in code that Inductor made, or near it, or in what Dynamo made of a function."""
    made = any(map(_MADE.search, [path for path in _paths(text) if not _BETWEEN.search(path)][-_NEAR:]))
    return made or bool(_HEAD.search(text.rpartition(HEADER)[2]))


def left_open(signature: Signature, failure: Failure, said: str) -> str:
    """What a check of the test itself leaves open, for people; empty if the `failure` of this `signature` is no such check, or if nothing
    shows that the test compiles. `said` is what was raised last, in its own words."""
    if "AssertionError" in signature.exception and _BOUNDS.search(said):
        if _COMPILED.search(signature.message) or says_that_it_compiles(failure):
            return "numbers beyond a bound of the test: whether the compiler makes them shows only when it runs"
    elif _lacks_an_error(signature) and says_that_it_compiles(failure):
        return "an error is missing: whether compiled code loses it shows only when it runs"
    return ""


def _lacks_an_error(signature: Signature) -> bool:
    """Whether an error did not come which eager may raise as well: one that is not the compiler's."""
    found = _MISSING.match(signature.message) if signature.exception[-1:] in (("AssertionError",), ("Failed",)) else None
    expected = (found["pytest"] or found["unittest"]) if found else ""
    names = set(_CLASS.findall(expected))
    return bool(names) and not names & {*COMPILERS, "UserError"} and not _IN_COMPILER.search(expected)


def says_that_it_compiles(failure: Failure) -> bool:
    """Whether anything says that the test of the `failure` compiles: its name, its command, its job, its source, its stack."""
    words = (failure.test, failure.name, failure.job, failure.hint.program, *failure.hint.variables)
    named = any(_NAMED.search(_OFF.sub("", word)) for word in words)
    return named or any(map(_CALLS.search, (failure.source, failure.text))) or bool(_RESUMED.search(failure.text)) or on_stack(failure.text)


def compiles(failure: Failure) -> bool:
    """Whether the test compiles, as far as can be seen: where the log shows no stack of its `failure`, it may.

    A process that is gone, nobody knows by what, may have been ended from outside: that alone says nothing. Nor does the death of one
    that ran no test.
    """
    # pytest marks the line of the test that raised, above the place in its file
    shown = _FRAME.search(failure.text) or (failure.text and _MARKED.search(failure.source))
    died = failure.gone or (failure.signal is not None and not failure.test)
    return says_that_it_compiles(failure) or not (died or shown)
