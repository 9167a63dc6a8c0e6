"""Generated Python that cannot be imported: its root is Python's own error, not the import."""

from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Phase

# As torch 2.11 printed it on a GPU, its middle left out.
TEXT = """Traceback (most recent call last):
  File "/tmp/here/repro.py", line 12, in <module>
    torch.compile(Repro())(x)
  File "/opt/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py", line 1004, in compile_wrapper
    raise e.remove_dynamo_frames() from None
  File "/opt/lib/python3.12/site-packages/torch/_inductor/runtime/compile_tasks.py", line 29, in _reload_python_module
    raise RuntimeError(
torch._inductor.exc.InductorError: RuntimeError: Failed to import /tmp/torchinductor_x/{key}/c{key}.py
SyntaxError: {reason} (c{key}.py, line {line})
"""


def shown(reason: str, key: str = "2zab", line: int = 20) -> object:
    signature = signature_of(Outcome(status="raised", text=TEXT.format(reason=reason, key=key, line=line)))
    assert signature is not None
    return signature


def test_root_is_the_syntax_error() -> None:
    signature = signature_of(Outcome(status="raised", text=TEXT.format(reason="invalid syntax", key="2zab", line=20)))
    assert signature is not None
    assert signature.exception[-1] == "SyntaxError"
    assert signature.message == "invalid syntax"
    assert signature.phase is Phase.LOAD


def test_place_does_not_count_and_reason_does() -> None:
    assert shown("invalid syntax") == shown("invalid syntax", "9qqq", 31)
    assert shown("invalid syntax") != shown("unterminated string literal")
