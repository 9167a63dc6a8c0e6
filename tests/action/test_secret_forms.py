from __future__ import annotations

import json
import time

import pytest

from bot.action.redaction import LineRedactor, hide, redact, words_of_machine
from bot.action.secret_forms import SECRET
from tests.action import canaries

AT = "2026-11-29T12:00:00.1234567Z "
HEX, MIXED = "0a1b2c3d" * 5, "a1B2" * 8 + "Cd"
URL_SAFE = "a1B2_c3D4-" * 4
NAMES = [
    *("token", "hf_token", "github-token", "userToken", "registrytoken", "bot_token", "secret", "webhook_secret", "passphrase"),
    *("access_key", "secret-key", "signing_key", "deploy_key", "AZURE_STORAGE_KEY", "KAGGLE_KEY"),
    *("credentials", "bearer", "MY_PAT", "_auth"),
]


FORMS = [
    *("{}={}", "export {}='{}'", "  {}: {}", '"{}": "{}"', '\\"{}\\": \\"{}\\"', "{} = '{}'", "f({}='{}')", "<{}>{}</x>", "('{}', '{}')"),
    *("{}:\n  {}", "{}:\n          {}", "{}: >-\n      {}", f"{AT}{{}}:\n{AT}    {{}}", f'{AT}env:\n{AT}  {{}}: "{{}}"', "--{}={}"),
    *("{}:\r\n      {}", "# {}:\n#     {}"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_says_that_a_value_is_a_secret(name: str) -> None:
    for value, forms in ((HEX, FORMS), (MIXED, FORMS[::4]), (URL_SAFE, FORMS[1::4])):
        for form in forms:
            text = form.format(name, value)
            assert redact(text) == text.replace(value, SECRET)


@pytest.mark.parametrize("name", ["api_token", "API_KEY", "password", "MY_PASSWORD", "client_secret", "GITHUB_TOKEN"])
@pytest.mark.parametrize(("quote", "blanks"), [("", 4), ('"', 6), ("'", 20)])
def test_a_value_in_the_next_line(name: str, quote: str, blanks: int) -> None:
    for begins in ("", AT, "E     ", "> "):
        lines = [f"{begins}{name}:", f"{begins}{' ' * blanks}{quote}abc-Defgh12345678{quote}", f"{begins}x: 1"]
        shown = [lines[0], lines[1].replace("abc-Defgh12345678", SECRET), lines[2]]
        redactor = LineRedactor()
        assert redact("\n".join(lines)).split("\n") == shown == [redactor(line) for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        "if has_token:\n    result_12345678 = f(x)",
        "if api_key:\n        result_12345678(x)",
        "cannot read the credentials:\n    /etc/keys/Some-service-0123456789/key1",
        "pad_token = special_tokens_map_v2_of_the_1b_model",
        "mask_token = '<extra_id_1234567890123456789>'",
        "x = {'token': 'internationalization', 'pat': 'resnet50/layer1/conv2d'}",
        "num_tokens=12345678901234567890123, cache_key='f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4'",
        "token = torch.float8_e4m3fn.of2d3d4d5d6d7d8d9d; secret = get1of2the3things4here5(x)",
        "credentials: ./config1/of2/the3/service4/account",
        "pattern = 'a1b2c3d4e5f6a1b2c3d4e5f6'; pat = r'\\d+'; compat='a1b2c3d4e5f6a1b2c3d4e5f6'",
        "PWD=/opt/build3/torch2/abc4defgh5",
        "lambda x1:weight12345@x1.T",
    ],
)
def test_what_is_no_value_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "form",
    [
        "machine example.org\n  login bob\n  account x\n  password {}",
        "machine example.org password {} login bob",
        "https_proxy=bob:{}@proxy.example.org:3128",
        "proxy: 'bob:{}@proxy:3128'",
    ],
)
def test_passwords_of_files_of_settings(form: str) -> None:
    shown = redact(form.format("Tr0ub4dor&3x"))
    assert "Tr0ub4dor" not in shown
    assert SECRET in shown


@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n", f"\n{AT}", "\n    ", "\nE     ", "\n# "], ids=repr)
def test_a_key_whose_beginning_is_elsewhere(between: str) -> None:
    """A log may be read from the middle of a key on."""
    first, *rows = canaries.KEY.split("\n")
    for torn in (rows, [*rows[:-1], "YWI=", rows[-1]]):
        shown = redact(f"Done it.{between}{between.join(torn)}{between}more")
        assert canaries.KEY_LINE not in shown
        assert shown.endswith("more")
        assert shown.startswith("Done it.")
    plain = between.join([canaries.KEY_LINE, canaries.KEY_LINE, "no key"])
    assert redact(plain) == plain
    assert first.startswith("-----BEGIN")


def test_a_key_with_many_lines_comes_line_by_line() -> None:
    """As those of PGP with several subkeys."""
    first, row, *_, last = canaries.KEY.split("\n")
    redactor = LineRedactor()
    assert {redactor(line) for line in [first, *[row] * 500, last]} == {SECRET}
    assert redactor("more") == "more"


def test_rows_without_end_cost_linear_time() -> None:
    end = "-----END PRIVATE KEY-----"
    for piece in (canaries.KEY_LINE + "\n", canaries.KEY_LINE, end, "token:\n ", "token: ", "a1", "proxy=a:", "machine a "):
        text = f"{end}{piece * (300_000 // len(piece))}"
        started = time.process_time()
        redact(text)
        assert time.process_time() - started < 3, piece


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("g++ -I/srv/people/dave/include '-L/srv/people/dave'", "g++ -I~/include '-L~'"),
        ("see -/srv/people/dave and x/srv/people/dave", "see -/srv/people/dave and x/srv/people/dave"),
        ("/data/users/bob/pytorch/torch/x.py", "~/pytorch/torch/x.py"),
        ("/homes/bob/x.py", "~/x.py"),
        ("/home//bob/x.py", "~/x.py"),
        (r"c:\users\bob\x.py", r"~\x.py"),
        ("https://example.org/data/users/bob/x and api/users/bob", "https://example.org/data/users/bob/x and api/users/bob"),
    ],
)
def test_homes_in_other_places(path: str, shown: str) -> None:
    hide(words_of_machine({"HOME": "/srv/people/dave"}, "h"))
    try:
        assert redact(path) == shown
    finally:
        hide({})


def test_json_of_json_hides_what_its_names_tell() -> None:
    text = json.dumps({"log": json.dumps({"hf_token": MIXED, "n": 1})})
    assert MIXED not in redact(text)
    assert json.loads(json.loads(redact(text))["log"])["n"] == 1
