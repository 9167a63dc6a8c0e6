"""What a program may read: the interpreter and what it imports, the compilers, the program's own directory, the machine's models."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping

# Parts of the system. Not /etc as a whole, nor /var, /run, /root, /home, /tmp: what lies there belongs to somebody.
_ROOTS = "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store /sys /proc"
_OF_ETC = """ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload alternatives localtime timezone locale.alias ssl pki ca-certificates
    passwd group nsswitch.conf hosts host.conf resolv.conf gai.conf protocols services os-release debian_version lsb-release
    mime.types fonts OpenCL vulkan nvidia cufile.json inputrc python3 python3.10 python3.11 python3.12 python3.13 python3.14
    crypto-policies magic terminfo"""
SYSTEM = (*_ROOTS.split(), *(f"/etc/{name}" for name in _OF_ETC.split()))
# Left out of what is readable otherwise: settings of the machine, such as npm's with its tokens, whose modes let everybody read them.
_SETTINGS: tuple[str, ...] = ("/usr/local/etc", "/usr/etc")
# Where other packages are installed, and also GitHub Actions runners with the checkouts of their jobs.
_OPTIONAL = "/opt"
_OF_RUNNERS = frozenset({".runner", ".credentials", ".credentials_rsaparams", "_work"})
_DEEPEST_RUNNER = 2  # directories around it
# Devices that every program has, and those of GPUs; writable as well.
_DEVICES = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/shm /dev/kfd /dev/dri /dev/dxg /dev/accel"
_NVIDIA = "/dev/nvidia*"
# Made by GPU drivers. If there is one, the address space is not limited, since a driver reserves more than any limit allows.
GPUS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
# Never read, below a home directory or next to a program.
_SECRET_NAMES = """.ssh .aws .azure .gnupg .docker .kube .netrc .git-credentials .gitconfig .npmrc .pypirc .huggingface .bash_history
    .zsh_history .python_history .psql_history .mysql_history .sqlite_history .node_repl_history .vault-token .vault_pass .terraform.d
    .terraformrc .password-store .mozilla .git .hg .svn .credentials .credentials_rsaparams .runner token stored_tokens credentials.json
    pip.conf pip.ini .pip .condarc condarc .mambarc .yarnrc.yml .dockercfg .pgpass .my.cnf .mylogin.cnf .htpasswd .wgetrc .curlrc .s3cfg
    .boto .databrickscfg .kaggle kaggle.json .modal.toml .streamlit .oci .rclone.conf rclone.conf"""
_SECRET = frozenset(_SECRET_NAMES.split())
_SECRET_FORM = re.compile(
    r"\.env(?:rc|\..*)?|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|\.?secrets\.(?:toml|json|ya?ml|env)|service[_-]account\S*\.json"
    r"|client_secret\S*\.json|application_default_credentials\.json|.+\.(?:p12|pfx|jks|keystore|ppk|kdbx)"
)
# These may hold a certificate, which everybody may read, or a key; and bytes at the beginning that tell which.
_MAY_BE_KEYS = (".pem", ".key")
_BEGINNING = 4096
# Directories that many share: in these, only plain files next to the program, and packages, are its own.
_SHARED = frozenset({"/", "/tmp", "/var/tmp", "/var", "/home", "/mnt", "/media", "/srv", "/run", "/etc", "/dev/shm", "/root", "/data"})
_MODELS = ("HF_HOME", "HF_HUB_CACHE", "TORCH_HOME", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
# Tools and libraries that replace those that triton brings, each by its own variable (triton/knobs.py).
_TRITON_S = re.compile(r"TRITON_\w+_PATH")
_LISTS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH")
_COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc", "nvcc", "ptxas", "ld", "as", "hipcc")

# Run in the user's interpreter: prints where it imports from, including editable installs.
ASK = """
import json, os, site, sys
found = [sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.realpath(sys.executable), *sys.path]
for module in list(sys.modules.values()):
    mapping = getattr(module, "MAPPING", None)
    if isinstance(mapping, dict) and getattr(module, "__name__", "").startswith("__editable__"):
        found += [os.path.dirname(str(path)) for path in mapping.values()]
try:
    from importlib.metadata import distributions
    for each in distributions():
        text = each.read_text("direct_url.json")
        if text and '"editable": true' in text:
            found.append(json.loads(text)["url"].partition("file://")[2])
except Exception:
    pass
print(json.dumps([path for path in found if path]))
"""


def devices() -> list[str]:
    """The device nodes that a program may use, GPUs among them."""
    return [*_DEVICES.split(), *glob.glob(_NVIDIA)]


def has_gpu() -> bool:
    """Whether this machine has a GPU."""
    return any(map(os.path.exists, GPUS))


def optional_packages(place: str = _OPTIONAL) -> tuple[str, ...]:
    """What may be read in `place` with everything below it: nothing of a runner, since the checkout of this job is asked for by its
    name."""
    return tuple(_without_runners(place, 0) or ())


def _without_runners(path: str, depth: int) -> list[str] | None:
    """What is below `path` without the runners there, in as few paths as possible; None if `path` is a runner itself."""
    try:
        with os.scandir(path) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return [path]
    if not _OF_RUNNERS.isdisjoint(found):
        return None
    if depth > _DEEPEST_RUNNER:
        return [path]
    below = {
        full: _without_runners(full, depth + 1) if is_directory else [full]
        for full, is_directory in ((os.path.join(path, name), held) for name, held in found.items())
    }
    if all(held == [full] for full, held in below.items()):
        return [path]
    return [each for held in below.values() for each in held or ()]


def of_system(places: Iterable[str] = SYSTEM) -> tuple[list[str], list[str]]:
    """What may be read of the system's `places` with everything below it, and what may only be listed."""
    parts = [_without_settings(path) for path in places]
    return [path for whole, _ in parts for path in whole], [path for _, listed in parts for path in listed]


def _without_settings(path: str) -> tuple[list[str], list[str]]:
    if path in _SETTINGS:
        return [], []
    if not any(each.startswith(path + os.sep) for each in _SETTINGS):
        return [path], []
    parts = [_without_settings(os.path.join(path, name)) for name in sorted(_names(path))]
    return [each for whole, _ in parts for each in whole], [path, *(each for _, listed in parts for each in listed)]


def of_environment(env: Mapping[str, str]) -> Iterator[str]:
    """What the environment `env` names: search paths, compilers, model caches, triton's tools."""
    for name in _LISTS:
        yield from (entry for entry in env.get(name, "").split(os.pathsep) if os.path.isabs(entry))
    yield from (env[name] for name in _MODELS if name in env)
    yield from (path for name, path in env.items() if path and _TRITON_S.fullmatch(name))
    for name in (*_COMPILERS, *(env[name].split()[0] for name in ("CC", "CXX") if env.get(name, "").strip())):
        found = shutil.which(name, path=env.get("PATH"))
        if found:
            yield os.path.dirname(os.path.dirname(os.path.realpath(found)))


def readable(wanted: Iterable[str], home: str) -> tuple[list[str], list[str]]:
    """Of the paths that are `wanted`: what may be read with everything below it, and what may only be listed. `home` is the user's
    directory.

    Secrets are left out. Of a directory that everybody uses, and of the home directory, only what belongs to a program is taken.
    """
    whole: dict[str, None] = {}
    listed: dict[str, None] = {}
    for path in dict.fromkeys(os.path.realpath(each) for each in wanted if each):
        if not os.path.isdir(path):
            if not is_secret(path):
                whole[path] = None
            continue
        everybodys = path in _SHARED or path == os.path.realpath(home) or os.path.realpath(home).startswith(path + os.sep)
        if not everybodys and not any(is_secret(os.path.join(path, name)) for name in _names(path)):
            parts, places = _without_settings(path)
            whole.update(dict.fromkeys(parts))
            listed.update(dict.fromkeys(places))
            continue
        listed[path] = None
        for name in _names(path):
            below = os.path.join(path, name)
            if not is_secret(below) and (not everybodys or _is_programs(below)):
                whole[below] = None
    return list(whole), list(listed)


def is_secret(path: str) -> bool:
    """Whether what `path` names is never read by a program, judging by its name; a key also by its beginning."""
    name = os.path.basename(path)
    return name in _SECRET or _SECRET_FORM.fullmatch(name) is not None or (name.endswith(_MAY_BE_KEYS) and _is_private_key(path))


def _is_private_key(path: str) -> bool:
    try:
        # without O_NONBLOCK, opening a pipe would wait for a writer
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return b"PRIVATE KEY" in (file.read(_BEGINNING) or b"")
    except OSError:
        return False


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _is_programs(path: str) -> bool:
    """Whether `path`, in a directory that everybody uses, probably belongs to a program there: a file of ours, or a package."""
    if os.path.basename(path).startswith(".") or os.path.islink(path):
        return False
    try:
        ours = os.stat(path).st_uid == os.geteuid()
    except OSError:
        return False
    return ours and (os.path.isfile(path) or os.path.exists(os.path.join(path, "__init__.py")))
