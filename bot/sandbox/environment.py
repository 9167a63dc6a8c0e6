"""The variables that a program sees: an allow-list, without anything that is secret by its name or its value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping

from bot.sandbox.token_forms import TOKENS

# Names further variables that a program may see, separated by blanks.
PASSED = "TORCH_MINIFY_PASS"
_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_\w+|TZ|TERM|CC|CXX|CPATH|CFLAGS|CXXFLAGS|LDFLAGS|LD_LIBRARY_PATH|LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(?:PYTHON|PYTEST_)\w+"
    r"|(?:CUDA|NVIDIA|NCCL|GLOO|ROCM|ROCR|HIP|HSA|AMD|XPU|ZE|SYCL|INTEL|AOT_INDUCTOR|AOTINDUCTOR|TORCH|TORCHINDUCTOR|TORCHDYNAMO|PYTORCH|TRITON"
    r"|OMP|MKL|KMP|OPENBLAS|GOMP|MALLOC|ONEDNN|DNNL)_\w+"
    r"|HF_HOME|HF_HUB_CACHE|HF_HUB_OFFLINE|TRANSFORMERS_OFFLINE|SSL_CERT_FILE|SSL_CERT_DIR"
)
_NAMED = re.compile(r"""["']([A-Z_][A-Z0-9_]{1,100})["']""")
_PROXIES = re.compile(r"(?:https?|no|all)_proxy", re.IGNORECASE)
# Our own variable (`PASSED`) holds names, not a secret.
SECRET_NAMES = (
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|_KEY|(?:API|ACCESS|ACCOUNT|PRIVATE)KEY|COOKIE|WEBHOOK|CONN(?:ECTION)?_?STR(?:ING)?$"
    r"|SEED_PHRASE|MNEMONIC|(?<!TORCH_MINIFY)_PASS$|^PASS$|_PWD$|(?:^|_)(?:PAT|DSN|JWT|PW|SAS|BEARER)$"
)
_SECRET = re.compile(f"{SECRET_NAMES}|AUTH", re.IGNORECASE)
# what is no token by itself
_SECRET_VALUE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:]*:[^/\s@]+@")
# where Python looks for the user's packages, and libraries for their models, if HOME is changed
_BELOW_HOME = {"PYTHONUSERBASE": ".local", "HF_HOME": ".cache/huggingface", "TORCH_HOME": ".cache/torch"}


def hand_over(variables: Mapping[str, str], environ: MutableMapping[str, str]) -> None:
    """Set `variables` in `environ`, so that every program started from here on sees them, whatever they are called."""
    environ.update(variables)
    environ[PASSED] = " ".join(dict.fromkeys([*environ.get(PASSED, "").split(), *variables]))


def pass_what_is_named(text: str, environ: MutableMapping[str, str]) -> None:
    """Let a program see the variables of `environ` that its own `text` asks for by name, except for secrets."""
    named = [name for name in dict.fromkeys(_NAMED.findall(text)) if name in environ]
    if named:
        environ[PASSED] = " ".join(dict.fromkeys([*environ.get(PASSED, "").split(), *named]))


def is_secret(name: str, value: str = "") -> bool:
    """Whether the variable `name` with this `value` is one that no program may see."""
    return bool(_SECRET.search(name) or _SECRET_VALUE.search(value) or TOKENS.search(value))


def allowed(environ: Mapping[str, str], *, network: bool = False) -> dict[str, str]:
    """What a program may see of `environ`, which may name further variables (`PASSED`); `network` adds the proxies."""
    passed = environ.get(PASSED, "").split()
    return {
        name: value
        for name, value in environ.items()
        if (name in passed or _KEPT.fullmatch(name) or (network and _PROXIES.fullmatch(name))) and not is_secret(name, value)
    }


def inside(environ: Mapping[str, str], home: str, tmp: str, *, network: bool) -> dict[str, str]:
    """The environment of a program that has its own `home` and `tmp`, made from ours (`environ`); `network` adds the proxies."""
    env = allowed(environ, network=network)
    outer = environ.get("HOME") or os.path.expanduser("~")
    for name, below in _BELOW_HOME.items():
        place = os.path.join(outer, below)
        if name not in env and os.path.isdir(place):
            env[name] = place
    if not network:
        # otherwise each lookup waits for answers that cannot come
        env.setdefault("HF_HUB_OFFLINE", "1")
    # pytest warns if it cannot write next to the tests
    env["PYTEST_ADDOPTS"] = f"{env.get('PYTEST_ADDOPTS', '')} -o cache_dir={tmp}/pytest".strip()
    return {**env, "HOME": home, "TMPDIR": tmp, "XDG_CACHE_HOME": os.path.join(home, ".cache"), "USER": "program", "LOGNAME": "program"}
