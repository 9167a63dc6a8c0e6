from __future__ import annotations

from pathlib import Path

import pytest

from bot.action.redaction import words_of_machine
from bot.sandbox.environment import PASSED, allowed, hand_over, inside, is_secret, pass_what_is_named
from tests.action import canaries


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LC_ALL",
        "CXX",
        "CUDA_HOME",
        "TORCHINDUCTOR_FX_WRAPPER",
        "TORCHDYNAMO_VERBOSE",
        "TRITON_INTERPRET",
        "PYTHONPATH",
        "OMP_NUM_THREADS",
    ],
)
def test_what_a_program_may_see(name: str) -> None:
    assert allowed({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "HF_TOKEN", "PYTHON_API_KEY", "LD_PRELOAD", "SSH_AUTH_SOCK", "EDITOR", "https_proxy", "TORCH_PASSWORD"]
)
def test_what_it_may_not(name: str) -> None:
    assert allowed({name: "1"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "ghs_" + "0" * 40,
        "github_pat_" + "a" * 30,
        "hf_" + "a" * 34,
        "AKIA" + "A" * 16,
        "-----BEGIN RSA PRIVATE KEY-----",
        "https://user:word@example.com/simple",
        "redis://:word@example.com",
        "smtp://user@example.com:word@mail.example.com",
        "ghs_1234_eyJhbGciOi.eyJpc3Mi.c2ln" + "0" * 20,
    ],
)
def test_a_secret_is_known_by_its_value(value: str) -> None:
    assert is_secret("TORCH_LOGS", value)
    assert allowed({"TORCH_LOGS": value}) == {}


@pytest.mark.parametrize("value", canaries.TOKENS.values(), ids=canaries.TOKENS)
def test_a_token_that_a_program_asks_for_by_a_harmless_name_it_does_not_see(value: str) -> None:
    for held in (value, f"x={value}", f"https://{value}@example.org/"):
        environ = {"MODEL": held}
        pass_what_is_named('os.environ["MODEL"]', environ)
        assert "MODEL" not in allowed(environ)


@pytest.mark.parametrize("name", ["ACCESSKEY", "STORAGE_CONNECTION_STRING", "DB_PW", "BLOB_SAS", "PAT", "JWT", "SEED_PHRASE", "BEARER"])
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert name not in allowed({name: "1", PASSED: name})


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "PATH", "PYTHONPATH", "COMPASS", "BYPASS", "PATTERN", "CONNECTIONS", "TORCH_BEARERS"])
def test_what_only_looks_like_the_name_of_a_secret_is_none(name: str) -> None:
    assert not is_secret(name)


def test_more_variables_can_be_named_but_no_secrets() -> None:
    environ = {"MODEL": "small", "OTHER": "1", "MY_TOKEN": "1", PASSED: "MODEL MY_TOKEN"}
    assert "MODEL" in allowed(environ)
    assert not {"OTHER", "MY_TOKEN"} & allowed(environ).keys()


def test_proxies_are_for_those_with_a_network() -> None:
    assert allowed({"https_proxy": "p"}, network=True) == {"https_proxy": "p"}


def test_it_has_a_home_of_its_own_but_the_packages_and_models_of_the_user(tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".cache/huggingface").mkdir(parents=True)
    env = inside({"HOME": str(tmp_path), "PATH": "/bin", "TMPDIR": "/elsewhere"}, "/box/home", "/box/tmp", network=False)
    assert (env["HOME"], env["TMPDIR"], env["XDG_CACHE_HOME"]) == ("/box/home", "/box/tmp", "/box/home/.cache")
    assert env["PYTEST_ADDOPTS"] == "-o cache_dir=/box/tmp/pytest"
    assert env["PYTHONUSERBASE"] == str(tmp_path / ".local")
    assert env["HF_HOME"] == str(tmp_path / ".cache/huggingface")
    assert "TORCH_HOME" not in env
    assert env["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in inside({}, "/h", "/t", network=True)


def test_what_is_set_for_the_program_is_handed_over_whatever_it_is_called() -> None:
    environ = {"SUITE_COMPILES": "0", "OTHER": "1", PASSED: "MINE", "MINE": "2"}
    hand_over({"SUITE_COMPILES": "1", "SUITE_TOKEN": "t"}, environ)
    assert {name: value for name, value in allowed(environ).items() if name != PASSED} == {"SUITE_COMPILES": "1", "MINE": "2"}


def test_what_the_program_asks_for_by_name_it_sees_but_no_secret() -> None:
    environ = {"USE_COMPILE": "1", "OTHER": "1", "WANDB_API_KEY": "k", "CONFIG": "https://me:word@host/", "PATH": "/bin"}
    text = "print(os.environ.get('USE_COMPILE'), os.getenv(\"WANDB_API_KEY\"), os.environ['CONFIG'], os.environ['NONE'])\n"
    pass_what_is_named(text, environ)
    assert set(allowed(environ)) - {PASSED} == {"USE_COMPILE", "PATH"}


@pytest.mark.parametrize("name", ["DB_PASS", "MYSQL_PWD", "GH_PAT", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "SSH_PASSPHRASE", "CI_JOB_JWT"])
def test_a_secret_that_the_program_asks_for_by_name_it_does_not_see(name: str) -> None:
    environ = {name: "correct-horse-7", "SECOND_PASSES": "1"}
    pass_what_is_named(f"print(os.environ.get('{name}'), os.environ['SECOND_PASSES'])", environ)
    assert set(allowed(environ)) - {PASSED} == {"SECOND_PASSES"}
    assert "correct-horse-7" in words_of_machine(environ, "host")
    assert not {environ[PASSED], PASSED} & words_of_machine(environ, "host").keys()
