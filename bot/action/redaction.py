"""Secrets and personal paths taken out of texts before they are posted.

Every pattern is bounded, or starts where nothing of its kind comes before, so that a hostile text costs linear time.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from bot.models.failure import Model

SECRET = "[secret]"

# GitHub, OpenAI and Anthropic, Hugging Face, Slack, AWS, Google, GitLab, npm, PyPI, Stripe, JSON Web Tokens.
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}|[rs]k_live_[A-Za-z0-9]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?i)(?<![a-z])((?:bearer|basic|token) )[A-Za-z0-9._~+/=-]{20,}")
_IN_URL = re.compile(r"(?<=://)[^/\s:@'\"]{1,100}:[^/\s@'\"]{1,300}@")
# As PyTorch's dumps and a shell's `env` write them. A value without a digit is rather a name or a word.
_VARIABLE = re.compile(
    r"(?<![A-Z0-9_])([A-Z0-9_]{0,60}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS)['\"]?\]?\s{0,3}[=:]\s{0,3}['\"]?)"
    r"(?=[^\d\s'\"]{0,200}\d)[A-Za-z0-9_/+=.~!@#$%^&*-]{12,}"
)
_HOME = re.compile(
    r"(?<![\w.~-])(?:/home/|/Users/)[^/\s'\":<>|]{1,64}(?=[/\s'\":]|\Z)|(?<![\w.~/-])/root(?=/)|(?<!\w)[A-Za-z]:\\+Users\\+[^\\\s'\":<>|]{1,64}"
)
# Inductor's default cache directory is named after the user.
_CACHE = re.compile(r"(?<=/torchinductor_)[^/\s'\":]{1,64}")

M = TypeVar("M", bound=Model)


def redact(text: str) -> str:
    """The text with secrets as `[secret]` and home directories as `~`."""
    text = _PRIVATE_KEY.sub(SECRET, text)
    text = _TOKENS.sub(SECRET, text)
    text = _BEARER.sub(rf"\g<1>{SECRET}", text)
    text = _IN_URL.sub(f"{SECRET}@", text)
    text = _VARIABLE.sub(rf"\g<1>{SECRET}", text)
    return _CACHE.sub("user", _HOME.sub("~", text))


def redacted(model: M) -> M:
    """The model with all its texts redacted."""
    return type(model).model_validate(redact_all(model.model_dump(by_alias=True, round_trip=True)))


def redact_all(value: Any) -> Any:
    """A value as JSON has it, with all its texts redacted."""
    if isinstance(value, str) and type(value) is str:
        return redact(value)
    if isinstance(value, dict):
        return {redact_all(key): redact_all(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(held) for held in value]
    return value
