from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.minify.isolation import is_secret_name
from bot.action.redaction import SECRET, LineRedactor, hide, redact, redacted, words_of_machine
from bot.models.result import Result
from tests.action import canaries
from tests.action.report.reports import request, results, texts

SECRETS = list(canaries.TOKENS.values())


@pytest.fixture
def machine() -> Iterator[None]:
    """The words of a machine are known."""
    hide(words_of_machine(canaries.ENVIRONMENT, canaries.HOSTNAME, is_secret_name))
    yield
    hide({})


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "x = '{}'\n",
        "token: {}",
        "https://example.org/?a={}&b",
        "({})",
        "'\\n{}'",
        "b'\\x00{}'",
        "%3D{}",
        "\x1b[32m{}\x1b[0m",
        "\x1b[38;5;123m{} ",
    ],
)
def test_tokens(secret: str, around: str) -> None:
    shown = redact(around.format(secret))
    assert secret not in shown
    assert shown == around.format(SECRET)


@pytest.mark.parametrize("secret", SECRETS)
def test_tokens_in_addresses(secret: str) -> None:
    shown = redact(f"fatal: https://x-access-token:{secret}@github.com/o/r and https://{secret}@github.com/o/r")
    assert shown == f"fatal: https://{SECRET}@github.com/o/r and https://{SECRET}@github.com/o/r"


@pytest.mark.parametrize(("form", "value"), canaries.SETTINGS.values(), ids=canaries.SETTINGS)
def test_values_that_their_surroundings_give_away(form: str, value: str) -> None:
    shown = redact(form.format(value))
    assert value not in shown
    assert SECRET in shown
    assert redact(shown) == shown


def test_nothing_of_each_sort_is_left(machine: None) -> None:
    shown = redact(canaries.ALL)
    assert not canaries.left_in(shown)
    assert shown.endswith(f"{SECRET}\nthe end")
    assert redact(shown) == shown


def test_a_key_that_comes_line_by_line(machine: None) -> None:
    redactor = LineRedactor()
    shown = [redactor(line) for line in canaries.ALL.split("\n")]
    assert not canaries.left_in("\n".join(shown))
    assert shown[-1] == "the end"


def test_a_key_that_never_ends_takes_no_more_than_its_lines() -> None:
    redactor = LineRedactor()
    shown = [redactor(line) for line in [canaries.KEY.split("\n")[0], *["a line"] * 500]]
    assert shown.count("a line") == 300


def test_the_words_of_a_machine(machine: None) -> None:
    assert redact("dave@gpubox17:/srv/people/dave/x on gpubox17.lab.example.org (h200-runner-7)") == "dave@host:~/x on host (runner)"
    assert redact("gpubox171 mygpubox17 /srv/people/dave2") == "gpubox171 mygpubox17 /srv/people/dave2"
    assert redact("x=plainwordsthatnopatternknows;") == f"x={SECRET};"


@pytest.mark.parametrize("hostname", ["torch", "cuda", "import", "print", "localhost", "a1", "runner", "ubuntu", "42424242"])
def test_a_machine_with_the_name_of_something_else_breaks_no_program(hostname: str) -> None:
    environment = {"HOME": "/root", "RUNNER_NAME": hostname, "SECRET_BACKEND": "inductor", "KEY_FILE": "/etc/keys/0123456789"}
    assert words_of_machine(environment, hostname, is_secret_name) == {}


def test_variables_urls_headers_and_keys() -> None:
    assert redact("os.environ['TORCH_TOKEN'] = 'abcdefgh12345678'") == f"os.environ['TORCH_TOKEN'] = '{SECRET}'"
    assert redact("export WANDB_API_KEY=0123456789abcdef0123") == f"export WANDB_API_KEY={SECRET}"
    assert redact("https://bob:hunter22@example.org/x") == f"https://{SECRET}@example.org/x"
    assert redact("Authorization: Bearer abcdefghijklmnop12345") == f"Authorization: Bearer {SECRET}"
    assert redact("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx") == f"{SECRET}\nx"
    assert redact("-----BEGIN PRIVATE KEY-----\nabc") == SECRET


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/bob/src/x.py", "~/src/x.py"),
        ('File "/Users/bob/x.py", line 1', 'File "~/x.py", line 1'),
        ("C:\\Users\\bob\\x.py", "~\\x.py"),
        ("/root/x", "~/x"),
        ("/tmp/torchinductor_bob/ab/c.py", "/tmp/torchinductor_user/ab/c.py"),
        (f"/tmp/torchinductor_{'b' * 90}/ab/c.py", "/tmp/torchinductor_user/ab/c.py"),
        (rf"C:\Users\{'b' * 90}\a.py", r"~\a.py"),
        ("cd /home/bob", "cd ~"),
        # as the compiler's command stands in the message of a CppCompileError (torch 2.13)
        ("g++ -I/home/bob/include -L/home/bob/lib\n-B/root/x '-I/mnt/a/home/bob'", "g++ -I~/include -L~/lib\n-B~/x '-I~'"),
    ],
)
def test_personal_paths(path: str, shown: str) -> None:
    assert redact(path) == shown


@pytest.mark.parametrize(
    "text",
    [
        "x = torch.randn(2, 2)  # /usr/lib/python3/root/x",
        "PAD_TOKEN = tokenizer.pad_token_id",
        "MAX_TOKENS = 1234567890123456",
        "torch.ops.aten.fractional_max_pool2d.default(x, [0, 0], [2, 1], y)",
        "src/home/bob/x.py",
        "0123456789abcdef0123456789abcdef01234567",
        "task-force-and-risk-sk-learn",
        "scipy.optimize._highs_wrapper.something_long_1234567890_more",
        "eos_token = model.config.eos_token_2d_of_something",
        "access_token = os.environ['X1']; api_key = get_the_key_1234(x)",
        "password = hash_of_the_word_12345(y)",
        "torch.foo.internal and x.internal.y",
        "next_token = torch.argmax(logits[0, -1, 2:4])",
        "/usr/share/homeless/x and https://example.org/home/bob",
        "http://localhost:8080/a@b",
    ],
)
def test_a_program_is_left_alone(text: str) -> None:
    assert redact(text) == text


pieces = st.sampled_from(
    [*SECRETS, *(form.format(value) for form, value in canaries.SETTINGS.values()), canaries.KEY, "@", "'", " ", "\\n"]
)


@given(texts | st.lists(pieces, max_size=6).map("".join))
def test_once_is_enough(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "piece",
    [
        "A",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "ghs_",
        "ghs_.",
        "A_TOKEN=",
        "/home/",
        "bearer ",
        "a.",
        "\\",
        "/a",
        "/home",
        "sk-",
        "sk-a-",
        "password=",
        "login a ",
        "password a",
        "ip-1-",
        "a.internal.",
        "a8Q~",
        "&sig=",
        "SG.",
        "1//0",
        "x-amz-signature=",
        "://",
        "--",
        "--a-",
        "--password ",
        "cookie:",
        "cookie: a=",
        "/api/webhooks/1",
        "aaaaaaaaaaaaaa.atlasv1.",
        " -I/home/",
    ],
)
def test_hostile_text_costs_linear_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 5


@given(results)
def test_models_keep_all_but_the_secrets(result: Result) -> None:
    once = redacted(result)
    assert repr(redacted(once).model_dump(round_trip=True)) == repr(once.model_dump(round_trip=True))


@given(st.sampled_from(SECRETS))
def test_no_text_of_a_model_is_missed(secret: str) -> None:
    asked = request(asked_by=secret, tests=(secret, secret), expected=f"x {secret}", script=secret)
    shown = redacted(asked).model_dump_json()
    assert secret not in shown
    assert shown.count(SECRET) == 5


@pytest.mark.parametrize("password", ["hun@ter22", "@@hunter22", "hun:ter@22"])
def test_a_password_may_hold_an_at_sign(password: str) -> None:
    assert redact(f"pip install https://bob:{password}@example.org/simple x@y") == f"pip install https://{SECRET}@example.org/simple x@y"


def test_what_is_looked_for_first_is_in_all_that_is_found() -> None:
    """A pattern is tried where a text holds a part of it: each canary, alone, is still found."""
    settings = (form.format(value) for form, value in canaries.SETTINGS.values())
    paths = (path for path, _ in canaries.PATHS.values())
    for text in (*canaries.TOKENS.values(), *settings, canaries.KEY, *paths):
        assert not canaries.left_in(redact(text)), text
