from __future__ import annotations

import base64
import html
import json
import shlex
import time
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.redaction import LineRedactor, hide, redact, redacted, words_of_machine
from bot.action.secret_forms import SECRET
from bot.models.result import Result
from tests.action import canaries
from tests.action.report.reports import request, results, texts

SECRETS = list(canaries.TOKENS.values())


@pytest.fixture
def machine() -> Iterator[None]:
    """The words of a machine are known."""
    hide(words_of_machine(canaries.ENVIRONMENT, canaries.HOSTNAME))
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
        '"\\u65e5{}"',
        "'\\U0001f511{}'",
        "b'\\303\\251{}'",
        "\x1b[32m{}\x1b[0m",
        "\x1b[38;5;123m{} ",
        "key_{}",
        "for-{}",
    ],
)
def test_tokens(secret: str, around: str) -> None:
    shown = redact(around.format(secret))
    assert secret not in shown
    assert shown == around.format(SECRET)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("between", ["\x1b[m\x1b[K", "\x1b[01;31m\x1b[K", "\\x1b[0m"])
def test_tokens_with_colors_in_between(secret: str, between: str) -> None:
    """As `grep` shows what it has found, or not yet."""
    for text in (f"{between}{secret}{between}", f"a {secret[:3]}{between}{secret[3:]} b", f"a {secret[:12]}{between}{secret[12:]} b"):
        shown = redact(text)
        assert secret[3:] not in shown
        assert secret[12:] not in shown
        assert SECRET in shown
        assert redact(shown) == shown
    assert redact(f"{between}green{between}") == f"{between}green{between}"


@pytest.mark.parametrize("secret", [*SECRETS, *(form.format(value) for form, value in canaries.SETTINGS.values()), canaries.KEY])
def test_what_is_written_in_another_way(secret: str, machine: None) -> None:
    for text in (secret, f"{{'a': '{secret}'}}\n", f"user:{secret}", f"x={canaries.HOSTNAME} {secret}"):
        raw = text.encode()
        for written in (base64.b64encode(raw), base64.urlsafe_b64encode(raw).rstrip(b"=")):
            assert redact(f"a {written.decode()} b") == f"a {SECRET} b"
            assert redact(f'"auth-{len(raw)}": "{written.decode()}"') == f'"auth-{len(raw)}": "{SECRET}"'
    written = urllib.parse.quote(secret, safe="")
    if written != secret:
        assert secret[-12:] not in urllib.parse.unquote(redact(f"https://example.org/?a%20b={written}"))


@pytest.mark.parametrize("data", [b"a text that holds no secret at all", bytes(range(256)), b"\xff" * 40, b"x" * 25, b"x" * 26])
def test_what_is_harmless_in_another_way_is_left_alone(data: bytes) -> None:
    for text in (base64.b64encode(data).decode(), urllib.parse.quote(data) + "%20and%2Fmore", "100%", "%s%d" * 9):
        assert redact(text) == text


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


@pytest.mark.parametrize(
    ("plus", "slash", "equals"), [(r"\u002B", "/", r"\u003D"), ("+", r"\/", "="), ("+", r"\\/", "="), (r"\u002b", r"\u002f", "=")]
)
def test_values_whose_characters_are_escaped(plus: str, slash: str, equals: str) -> None:
    """As JSON of .NET and of pandas has them."""
    for form, value in (canaries.SETTINGS[each] for each in canaries.SETTINGS if each.startswith(("AWS secret", "Azure storage"))):
        for before in ("", "a+", "/a1"):
            shown = redact(form.format((before + value).replace("+", plus).replace("/", slash).replace("=", equals)))
            assert not any(value[start : start + 12] in shown for start in range(len(value) - 12)), shown


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


LONG = [secret for secret in SECRETS if len(secret) > 90]


def folded(text: str, width: int, border: str = "") -> list[str]:
    """As a library writes it that folds what is longer than a line: `rich`, at the width of a terminal that there is not."""
    return [f"{border}{text[start : start + width]:{width if border else 0}}{border[::-1]}" for start in range(0, len(text), width)]


@pytest.mark.parametrize("secret", LONG)
@pytest.mark.parametrize("border", ["", "│ ", "│ │ "])
@pytest.mark.parametrize("around", ["{}", "'{}'", "{} is bad"])
def test_tokens_that_are_folded(secret: str, border: str, around: str) -> None:
    for width in (60, 72, 80):
        lines = ["bad token", *folded(around.format(secret), width, border), "Done"]
        redactor = LineRedactor()
        # line by line the first is gone before the second is known, where it is no token by itself
        for shown, first in ((redact("\n".join(lines)), 0), ("\n".join(map(redactor, lines)), 2)):
            assert SECRET in shown
            left = "\n".join(shown.split("\n")[first:])
            # of a rest that is this short nothing can be guessed
            assert not any(secret[start : start + 12] in left for start in range(len(secret) - 12)), shown
            assert shown.startswith("bad token\n")
            assert shown.endswith("\nDone")
            assert redact(shown) == shown


# What neither a terminal nor a page shows: it may be in the middle of a word.
UNSHOWN = {
    "link of a terminal": "\x1b]8;;\x1b\\",
    "title of a terminal": "\x1b]0;t\x07",
    "set of characters, as `tput sgr0` writes it": "\x1b(B\x1b[m",
    "color in one byte": "\x9b0m",
    "reset": "\x1bc",
    "blank without width": "\u200b",
    "joiner": "\u2060",
    "soft hyphen": "\u00ad",
    "mark of an order": "\u202e",
    "variant": "\ufe0f",
    "tag": "\U000e0041",
    "zero": "\0",
    "what is wiped out again": "x\b",
    "carriage return": "\r",
    "line of other systems": "\u2028",
    "form feed": "\f",
}


@pytest.mark.parametrize("between", UNSHOWN.values(), ids=UNSHOWN)
@pytest.mark.parametrize("secret", [*SECRETS[:8], canaries.TOKENS["JSON Web Token"]])
def test_tokens_with_what_is_not_shown_in_between(secret: str, between: str) -> None:
    for written in (between, ascii(between)[1:-1]):
        for at in (3, len(secret) // 2, len(secret) - 4):
            shown = redact(f"a {secret[:at]}{written}{secret[at:]} b")
            assert shown == f"a {SECRET} b"
    for harmless in (f"a{between}b", f"a {between}{SECRET} b"):
        assert redact(harmless) == harmless


@pytest.mark.parametrize("between", ["\x1b[1m", "\u200b", "\0"])
def test_a_key_with_what_is_not_shown_in_between(between: str) -> None:
    written = "\n".join(between.join(line) for line in canaries.KEY.split("\n"))
    redactor = LineRedactor()
    for shown in (redact(f"a\n{written}\nb"), "\n".join(redactor(line) for line in ["a", *written.split("\n"), "b"])):
        left = shown.replace(between, "")
        assert SECRET in left
        assert canaries.KEY_LINE not in left
        assert left.startswith("a\n")
        assert left.endswith("\nb")


def test_a_long_token_with_a_color_in_it_leaves_no_rest() -> None:
    for secret in SECRETS:
        for at in range(8, len(secret), 16):
            left = redact(f"{secret[:at]}\x1b[0m{secret[at:]}").replace("\x1b[0m", "")
            assert not any(secret[start : start + 12] in left for start in range(len(secret) - 12)), left


@pytest.mark.parametrize("secret", SECRETS)
def test_what_is_written_in_base64_among_other_data(secret: str) -> None:
    def written(data: bytes) -> str:
        return base64.b64encode(data).decode()

    for data in (
        b"\x80\x04\x95\x00" + secret.encode() + b"\x94.",  # a pickle
        f"\u00e9 {secret}".encode(),
        secret.encode("utf-16-le"),  # as PowerShell takes commands
        base64.b64encode(secret.encode()),
    ):
        for around in ("{}", "SETTINGS={}", "data:text/plain;base64,{}"):
            assert redact(f"a {around.format(written(data))} b") == f"a {around.format(SECRET)} b"
    twice = urllib.parse.quote(urllib.parse.quote(f"/{secret}/", safe=""), safe="")
    left = redact(f"a {twice} b")
    assert not any(secret[start : start + 14] in left for start in range(len(secret) - 14)), left


@pytest.mark.parametrize("write", ["\\x{:02x}", "\\u{:04x}", "&#{};", "&#x{:x};"])
@pytest.mark.parametrize("secret", SECRETS)
def test_tokens_whose_own_characters_are_escaped(secret: str, write: str) -> None:
    for escaped in ("_-.+/=:", secret):
        text = "".join(write.format(ord(one)) if one in escaped else one for one in secret)
        assert redact(f"a '{text}' b") == f"a '{SECRET}' b"
    words = "a 'm\\u00fcde\\x41bc' &#65;bcdefghijklmn&#66; b"
    assert redact(words) == words


@pytest.mark.parametrize("secret", LONG)
@pytest.mark.parametrize(
    "before", ["E   ", "E       ", "# ", "> ", "+ ", "2026-11-29T12:00:00.1234567Z ", "2026-11-29T12:00:00.1234567Z # "], ids=repr
)
def test_tokens_that_are_folded_behind_what_begins_each_line(secret: str, before: str) -> None:
    """As pytest, comments, shells and logs write a text of several lines."""
    lines = ["bad token", *(before + line for line in folded(secret, 64)), "Done"]
    redactor = LineRedactor()
    for shown, first in ((redact("\n".join(lines)), 0), ("\n".join(map(redactor, lines)), 2)):
        left = "\n".join(shown.split("\n")[first:])
        assert SECRET in shown
        assert not any(secret[start : start + 12] in left for start in range(len(secret) - 12)), shown
        assert shown.startswith("bad token\n")
        assert shown.endswith("\nDone")


@pytest.mark.parametrize(("width", "end"), [(75, "="), (70, "\\")])
def test_tokens_whose_lines_say_that_they_go_on(width: int, end: str) -> None:
    """As mails and shells fold."""
    for secret in LONG:
        rows = folded(secret, width)
        text = f"{end}\n".join(rows)
        left = redact(f"a\n{text}\nb")
        assert SECRET in left
        assert not any(secret[start : start + 12] in left for start in range(len(secret) - 12)), left


def test_a_token_in_base64_that_is_folded() -> None:
    for before in range(57):
        text = base64.encodebytes(("x" * before + "\n" + canaries.TOKENS["JSON Web Token"] + "\n" + "y" * 110).encode()).decode()
        last = text.split("\n")[-2]
        assert redact(f"a\n{text}b") == (f"a\n{SECRET}\nb" if len(last) >= 12 else f"a\n{SECRET}\n{last}\nb")


@pytest.mark.parametrize("width", [60, 76])
def test_what_is_folded_and_harmless_is_left_alone(width: int) -> None:
    data = base64.b64encode(bytes(range(256)) * 3).decode()
    for text in (
        "\n".join(folded(data, width)),
        "\n".join(folded("a_long_name_of_1_thing" * 20, width, "│ ")),
        "x" * width + "\nfoo_bar_baz_1234 y",
    ):
        assert redact(text) == text
    token = canaries.TOKENS["JSON Web Token"]
    redactor = LineRedactor()
    lines = [token, "Done.", "1234567890 words", token, "torch.compile is here"]
    assert [redactor(line) for line in lines] == redact("\n".join(lines)).split("\n") == [SECRET, *lines[1:3], SECRET, lines[4]]


@pytest.mark.parametrize("line", ["", " ", "\x1c", "\x0b\x0c", "\u2028", "\u3000a1b2c3d4e5f6", "│", "\ud800"])
def test_lines_of_blanks_of_any_kind_are_no_rest(line: str) -> None:
    redactor = LineRedactor()
    for first in ("x" * 60, SECRETS[0] + "a1" * 30):
        assert redact(f"{first}\n{line}\nx") == f"{redact(first)}\n{line}\nx"
        assert [redactor(first), redactor(line)] == [redact(first), line]


def test_lines_that_always_go_on_cost_linear_time() -> None:
    redactor, line = LineRedactor(), "ghs_" + "a1" * 3998
    started = time.process_time()
    for _ in range(200):
        redactor(line)
        line = "a1" * 4000
    assert time.process_time() - started < 3


def test_a_key_that_never_ends_takes_no_more_than_its_lines() -> None:
    redactor = LineRedactor()
    shown = [redactor(line) for line in [canaries.KEY.split("\n")[0], *["a line"] * 500]]
    assert shown.count("a line") == 300


def test_the_words_of_a_machine(machine: None) -> None:
    assert redact("dave@gpubox17:/srv/people/dave/x on gpubox17.lab.example.org (h200-runner-7)") == "dave@host:~/x on host (runner)"
    assert redact("gpubox171 mygpubox17 /srv/people/dave2") == "gpubox171 mygpubox17 /srv/people/dave2"
    assert redact("x=plainwordsthatnopatternknows;") == f"x={SECRET};"


@pytest.mark.parametrize(
    "write",
    [
        json.dumps,
        lambda value: json.dumps(json.dumps({"a": value})),
        lambda value: json.dumps(value, ensure_ascii=False),
        repr,
        ascii,
        lambda value: repr([repr(value)]),
        lambda value: repr(value.encode()),
        html.escape,
        lambda value: html.escape(value, quote=False),
        shlex.quote,
        urllib.parse.quote,
        urllib.parse.quote_plus,
        lambda value: base64.b64encode(f"bob-the-builder:{value}".encode()).decode(),
    ],
)
def test_a_secret_of_a_machine_in_whatever_way_it_is_written(write: Callable[[str], str], machine: None) -> None:
    for value in ("pa\"ss\\w'ord1\u00e9&<x>/+ =7zq", "ab\ncd1234 efg", "tab\there12345", "100%sure&12345"):
        hide(words_of_machine({"MY_SECRET": value}, "h"))
        shown = redact(f"a {write(value)} b")
        assert SECRET in shown
        assert value[-5:] not in shown
        assert shown.startswith("a ")
        assert shown.endswith(" b")


def test_a_secret_of_a_machine_may_begin_as_a_path_does(machine: None) -> None:
    secret, path = "/K7MDENGbPxRfi/YzEXAMPLEKEYwJalrXUtnFEMI", "/etc/keys/Some-service-0123456789/key"
    hide(words_of_machine({"SOME_SECRET": secret, "KEY_PASSPHRASE_FILE": path}, "h"))
    assert redact(f"a {secret} {path}") == f"a {SECRET} {path}"


def test_each_line_of_a_secret_of_a_machine_is_one(machine: None) -> None:
    """A log has them one by one, and other ends of lines."""
    account = '{\n  "type": "account",\n  "id": "a1b2c3d4e5f6",\r\n  "letters": "' + "abcdEFGH" * 8 + '"\n}\n'
    hide(words_of_machine({"MY_CREDENTIALS": account}, "h"))
    rows = [row.strip() for row in account.splitlines()]
    redactor = LineRedactor()
    assert [redactor(f"  | {row}") for row in rows] == ["  | {", '  | "type": "account",', f"  | {SECRET}", f"  | {SECRET}", "  | }"]


def test_the_name_of_a_machine_in_another_case(machine: None) -> None:
    """Names of hosts have none: libraries write them in small letters, Windows and shells in capitals."""
    assert redact("to [GPUBOX17]:29500, Gpubox17.Lab.Example.org, H200-RUNNER-7") == "to [host]:29500, host, runner"
    hide(words_of_machine({}, "kiosk-1"))
    assert redact("KIOSK-1 kio\u017fk-1") == "host kio\u017fk-1"  # a letter that is an s to those who disregard case
    hide(words_of_machine({}, "Kestrel"))
    # what is rather a word may be the name of something else as well
    assert redact("class kestrel: ...; on Kestrel") == "class kestrel: ...; on host"


def test_a_machine_with_the_name_of_its_gpu_hides_no_gpu() -> None:
    for hostname in ("h100", "A100", "l40s", "a10g", "gb200", "RTX4090", "mi300x", "dgx1"):
        assert words_of_machine({"RUNNER_NAME": hostname}, hostname) == {}
    assert words_of_machine({}, "h100-3.lab.example") == {"h100-3.lab.example": "host", "h100-3": "host"}


@pytest.mark.parametrize("hostname", ["torch", "cuda", "import", "print", "localhost", "a1", "runner", "ubuntu", "42424242"])
def test_a_machine_with_the_name_of_something_else_breaks_no_program(hostname: str) -> None:
    environment = {"HOME": "/root", "RUNNER_NAME": hostname, "SECRET_BACKEND": "inductor", "KEY_FILE": "/etc/keys/0123456789"}
    assert words_of_machine(environment, hostname) == {}


def test_variables_urls_headers_and_keys() -> None:
    assert redact("os.environ['TORCH_TOKEN'] = 'abcdefgh12345678'") == f"os.environ['TORCH_TOKEN'] = '{SECRET}'"
    assert redact("export WANDB_API_KEY=0123456789abcdef0123") == f"export WANDB_API_KEY={SECRET}"
    assert redact("https://bob:hunter22@example.org/x") == f"https://{SECRET}@example.org/x"
    assert redact("Authorization: Bearer abcdefghijklmnop12345") == f"Authorization: Bearer {SECRET}"
    assert redact("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx") == f"{SECRET}\nx"
    assert redact("-----BEGIN PRIVATE KEY-----\nabc") == SECRET
    assert redact("password: |\n  abcdefgh12345678\nx: 1") == f"password: |\n  {SECRET}\nx: 1"


def test_a_variable_of_a_list_with_its_value_in_the_next_line() -> None:
    text = "- name: GITHUB_TOKEN\n  value: {}\n- name: HF_HOME\n  value: /models/a1b2c3d4e5f6\n"
    assert redact(text.format("0123456789abcdef0123456789abcdef01234567")) == text.format(SECRET)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password: |", "  {}"),
        ("api_token:", "  {}"),
        ("    GITHUB_TOKEN: >-", "      {}"),
        ("- name: GITHUB_TOKEN", "  value: {}"),
        ('{"name": "GITHUB_TOKEN",', ' "value": "{}"}'),
    ],
)
def test_a_value_whose_name_is_in_the_line_before_comes_line_by_line(name: str, value: str) -> None:
    """As one text is redacted, so are its lines."""
    secret, other = "0123456789abcdef0123456789abcdef01234567", "  path: /models/a1b2c3d4e5f6"
    lines = [name, value.replace("{}", secret), "step 12", value.replace("{}", secret), other]
    whole = redact("\n".join(lines[:2])).split("\n")
    redactor = LineRedactor()
    assert [redactor(line) for line in lines] == [*whole, "step 12", redact(lines[3]), other]
    assert secret not in whole[1]


def test_a_line_with_a_name_and_a_value_names_no_other() -> None:
    lines = ["- name: HF_TOKEN", "  value: abcdefgh12345678", "- name: HF_HOME", "  value: /models/a1b2c3d4e5f6", "key:", "", "x"]
    redactor = LineRedactor()
    assert [redactor(line) for line in lines] == [lines[0], f"  value: {SECRET}", *lines[2:]]


@pytest.mark.parametrize("password", ["pa/ss", "/4/hunter22", "hunter22/x", "80/x/", "p:a/s\\s", "$/x"])
@pytest.mark.parametrize("behind", ["example.org/simple", "host:5432/db?x=y", "[::1]:80", "localhost"])
def test_a_password_may_hold_a_slash(password: str, behind: str) -> None:
    shown = f"pip install https://{SECRET}@{behind} x@y"
    told = password.startswith(("/", "80/", "$")) or password.endswith("/")  # as good as a port and a path
    assert (redact(f"pip install https://bob:{password}@{behind} x@y") == shown) == (not told)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/bob/src/x.py", "~/src/x.py"),
        ('File "/Users/bob/x.py", line 1', 'File "~/x.py", line 1'),
        ("C:\\Users\\bob\\x.py", "~\\x.py"),
        # behind an escape, as `repr` and JSON write a line's end or an equals sign
        (r"PATH\u003d/home/bob/bin", r"PATH\u003d~/bin"),
        (r"'log\nC:\\Users\\bob\\x.py'", r"'log\n~\\x.py'"),
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
        "names = ('MASK_TOKEN', 'UNUSED_TOKEN_12')",
        "cookie: dict[str, int] = make_of(x1)",
        "docker run -u 1000:1000 image; login -p 2222; curl --user-agent x https://example.org/a1b2c3d4",
        "auth=(user_name_1, password_of_1(x)), -u origin:feature_2_of_x",
        "/usr/share/homeless/x and https://example.org/home/bob",
        "http://localhost:8080/a@b",
        "pip install git+ssh://git@example.org:team/models.git@v1.2 'x @ git+https://example.org/team/x@main'",
        "docker pull registry:5000/team/image@sha256 https://registry:4873/@scope/x http://[::1]:8080/x@y file://C:/x@y",
        "http://example.org:$PORT/x@y http://example.org:{port}/x@y http://example.org/a:b/c@d s3://bucket/a:b/c@d",
        "headers = {'Authorization': f'Bearer {token_of_the_machine_12}', 'X-Api-Token': os.environ['X1']}",
        "authorization: see section 4 of rfc7235",
        "old_pwd = os.getcwd(); OLD_PWD = make_of(x1)",
        "vocabulary = {'token': 'internationalization', 'id': 12345678901234567890}",
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


def test_a_line_that_is_full_without_its_secret_goes_on() -> None:
    folded = "https://x.webhook.office.com/webhookb2/0a1b2c3d-0a1b@0a1b2c3d-4e5f/IncomingWebhook/" + "0a1b2c3d" * 4
    once = redact(
        f"{folded}/0a1b2c3d-4e5f\nhttps://conda.anaconda.org/t/xy-0a1b2c3d-0a1b-2c32a1B2a1B2a1B2\naut-4e5f-0a1b2c3d4e5f/org/linux-64\nmore"
    )
    assert redact(once) == once
    assert "aut-4e5f" not in once


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
        "%41",
        "a%",
        "QUFB",
        "Z2hw_",
        "a+ASt",
        "\x1b[1m",
        "\x1b]8;;",
        "\x1b",
        "\u200b",
        "a\x08",
        "\\u0041",
        "&#65;",
        "pass_1=",
        "Password=a1",
        "Z2hwX0ExYjJD",
        "\x1b[",
        "\\x1b[1",
        '\\"',
        'password\\"',
        'cookie\\": \\"',
        "\\u0026sig=",
        "curl ",
        "curl -u ",
        "login ",
        "auth=('a', ",
        "\\\\/home",
        "\\/a",
        ":\\/\\/a:",
        "://a:b/",
        "://a:b/c@",
        f"{'a1' * 30}\n",
        f"{'a1' * 30}\n{'b2' * 29}\n",
        f"ghs_{'a1' * 40}\n{'a1' * 42}\n",
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


@pytest.mark.parametrize("behind", ["", "@somebody/team" + "9" * 800])
def test_no_rest_of_a_long_secret_is_left(behind: str) -> None:
    """A runner's configuration is longer than what a pattern takes."""
    text = f"run --jitconfig eyJ{'a1B2' * 12}{'9' * 16_000}{behind}\nmore\n"
    once = redact(text)
    assert once == redact(once) == "run --jitconfig [secret]\nmore\n"


@pytest.mark.parametrize("password", ["hun@ter22", "@@hunter22", "hun:ter@22"])
def test_a_password_may_hold_an_at_sign(password: str) -> None:
    assert redact(f"pip install https://bob:{password}@example.org/simple x@y") == f"pip install https://{SECRET}@example.org/simple x@y"


def test_what_is_looked_for_first_is_in_all_that_is_found() -> None:
    """A pattern is tried where a text holds a part of it: each canary, alone, is still found."""
    settings = (form.format(value) for form, value in canaries.SETTINGS.values())
    paths = (path for path, _ in canaries.PATHS.values())
    for text in (*canaries.TOKENS.values(), *settings, canaries.KEY, *paths):
        assert not canaries.left_in(redact(text)), text
