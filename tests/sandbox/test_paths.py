from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.sandbox import paths


def test_secrets_are_left_out_and_the_rest_is_listed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("src/a.py", ".git/config", ".env", "data.bin"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x")
    whole, listed = paths.readable([str(project)], "/nobody")
    assert sorted(whole) == [str(project / "data.bin"), str(project / "src")]
    assert listed == [str(project)]


@pytest.mark.parametrize(
    "name",
    [
        *(".env.local", ".env.production", ".envrc", "pip.conf", ".condarc", "id_ecdsa", "id_ed25519_sk", "kaggle.json", ".pgpass"),
        *("secrets.toml", ".secrets.yaml", "service_account.json", "client_secret_1-x.json", "deploy.ppk", "store.p12", ".psql_history"),
        "application_default_credentials.json",
    ],
)
def test_secrets_have_many_names(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    (tmp_path / "a.py").touch()
    assert paths.readable([str(tmp_path)], "/nobody") == ([str(tmp_path / "a.py")], [str(tmp_path)])
    assert paths.readable([str(tmp_path / name)], "/nobody") == ([], [])


def test_of_keys_only_private_ones_are_secret(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "deploy.pem").write_text("-----BEGIN RSA " + "PRIVATE KEY-----\n")
    (tmp_path / "closed.key").write_text("-----BEGIN ENCRYPTED " + "PRIVATE KEY-----\n")
    os.mkfifo(tmp_path / "pipe.key")
    whole, _ = paths.readable([str(tmp_path)], "/nobody")
    assert sorted(whole) == [str(tmp_path / "ca.pem"), str(tmp_path / "pipe.key")]


@pytest.mark.parametrize("name", ["environment.py", "env", "keys.py", "secrets.py", "tokenizer.json", "public.key", ".envoy", "pip.config"])
def test_what_only_sounds_like_a_secret_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    assert paths.readable([str(tmp_path)], "/nobody") == ([str(tmp_path)], [])


def test_a_directory_without_secrets_is_one_rule(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    assert paths.readable([str(tmp_path), str(tmp_path), "", str(tmp_path / "none")], "/nobody") == (
        [str(tmp_path), str(tmp_path / "none")],
        [],
    )


def test_of_a_home_directory_only_what_a_program_has_there(tmp_path: Path) -> None:
    for name in (".ssh/id_rsa", "letters/a.txt", "package/__init__.py", "fail.py", ".bashrc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("/etc")
    whole, _ = paths.readable([str(tmp_path)], str(tmp_path))
    assert sorted(whole) == [str(tmp_path / "fail.py"), str(tmp_path / "package")]
    # a directory around it holds what is of others too
    assert paths.readable([str(tmp_path)], str(tmp_path / "letters")) == (
        [str(tmp_path / "fail.py"), str(tmp_path / "package")],
        [str(tmp_path)],
    )


def test_of_what_is_installed_nothing_of_a_runner(tmp_path: Path) -> None:
    """GitHub's guide puts runners at /opt/actions-runner, too."""
    for name in ("cuda/bin/nvcc", "github/runner/.runner", "github/runner/_work/r/r/a.py", "github/cli/gh", "tool"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(paths.optional_packages(str(tmp_path))) == [str(tmp_path / name) for name in ("cuda", "github/cli", "tool")]
    assert paths.optional_packages(str(tmp_path / "github" / "runner")) == ()
    assert paths.optional_packages(str(tmp_path / "cuda")) == (str(tmp_path / "cuda"),)


def test_settings_of_the_machine_are_not_read_with_what_is_around_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("local/etc/npmrc", "local/bin/python3", "bin/ld", "lib/a.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(paths, "_SETTINGS", (str(tmp_path / "local" / "etc"),))
    whole, listed = [str(tmp_path / name) for name in ("bin", "lib", "local/bin")], [str(tmp_path), str(tmp_path / "local")]
    assert paths.of_system([str(tmp_path)]) == (whole, listed)
    # as where the interpreter is there
    assert paths.readable([str(tmp_path)], "/nobody") == (whole, listed)
    assert paths.readable([str(tmp_path / "local")], "/nobody") == (whole[2:], listed[1:])
    assert paths.readable([str(tmp_path / "local" / "etc")], "/nobody") == ([], [])


def test_what_is_below_usr_is_read_but_for_its_settings() -> None:
    whole, _ = paths.of_system()
    assert not [path for path in whole if path in ("/usr", "/usr/local") or path.startswith(("/usr/local/etc", "/usr/etc"))]
    assert {"/usr/lib", "/usr/bin", "/lib", "/proc"} <= set(whole)


def test_links_are_followed_to_what_they_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert paths.readable([str(tmp_path / "link")], "/nobody")[0] == [str(tmp_path / "real")]


def test_a_file_with_a_secret_name_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    assert paths.readable([str(tmp_path / "token")], "/nobody") == ([], [])


def test_what_the_environment_names(tmp_path: Path) -> None:
    compiler = tmp_path / "tools" / "bin" / "g++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    found = list(paths.of_environment({"PATH": f"{compiler.parent}::relative", "HF_HOME": "/models", "CXX": "none -O2"}))
    assert found == [str(compiler.parent), "/models", str(compiler.parent.parent)]


def test_a_tool_of_triton_that_the_environment_names_may_be_read() -> None:
    own = {"TRITON_PTXAS_PATH": "/own/bin/ptxas", "TRITON_LIBDEVICE_PATH": "/own/libdevice.bc"}
    found = set(paths.of_environment({**own, "TRITON_CUOBJDUMP_PATH": "", "TRITON_CACHE_DIR": "/cache", "PTXAS_PATH": "/other/ptxas"}))
    assert found & {*own.values(), "", "/cache", "/other/ptxas"} == set(own.values())


def test_an_interpreter_says_where_it_imports_from(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", paths.ASK], capture_output=True, check=True, env={"PYTHONPATH": str(tmp_path)}, cwd="/")
    said = json.loads(done.stdout)
    assert {sys.prefix, sys.base_prefix, str(tmp_path)} <= set(said)
    assert "" not in said


def test_packages_installed_in_editable_form_are_found(tmp_path: Path) -> None:
    """As PEP 610 records them: https://peps.python.org/pep-0610/#example-pip-commands-and-their-effect-on-direct-url-json."""
    facts = tmp_path / "thing-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (facts / "direct_url.json").write_text(json.dumps({"dir_info": {"editable": True}, "url": "file:///src/thing"}))
    done = subprocess.run([sys.executable, "-c", paths.ASK], capture_output=True, check=True, env={"PYTHONPATH": str(tmp_path)}, cwd="/")
    assert "/src/thing" in json.loads(done.stdout)
