from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.redaction import SECRET, redact, redacted
from bot.models.result import Result
from tests.action.report.reports import request, results, texts

# Made up, and put together here so that no scanner takes them for real ones.
SECRETS = [
    "ghs" + "_" + "a1B2" * 9,
    "github" + "_pat_" + "a1B2" * 12,
    "hf" + "_" + "a1B2" * 9,
    "sk" + "-" + "a1B2" * 9,
    "AKI" + "A" + "A1B2C3D4" * 2,
    "ey" + "J" + "a1B2" * 4 + "." + "a1B2" * 5 + "." + "a1B2" * 5,
    "xox" + "b-" + "123456789012-abc",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "x = '{}'\n", "token: {}", "https://example.org/?a={}&b", "({})"])
def test_tokens(secret: str, around: str) -> None:
    shown = redact(around.format(secret))
    assert secret not in shown
    assert shown == around.format(SECRET)


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
        ("cd /home/bob", "cd ~"),
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
        "http://localhost:8080/a@b",
    ],
)
def test_a_program_is_left_alone(text: str) -> None:
    assert redact(text) == text


@given(texts)
def test_once_is_enough(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("piece", ["A", "eyJ", "-----BEGIN PRIVATE KEY-----", "://a:", "ghs_", "A_TOKEN=", "/home/", "bearer ", "a.", "\\"])
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
