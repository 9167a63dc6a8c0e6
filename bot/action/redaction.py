"""Removes secrets and personal paths from texts before they leave the machine."""

from __future__ import annotations

import base64
import builtins
import html
import keyword
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from bot.action.secret_forms import KEY_BEGINS, KEY_ENDS, PRIVATE_KEY, REPLACED, REST, SECRET, START, TORN_KEY
from bot.action.spellings import spellings
from bot.models.failure import Model, Signature
from bot.sandbox.environment import SECRET_NAMES

_LONGEST_KEY = 200  # lines; what goes on like one is longer
_KEY_ROW = re.compile(r"[A-Za-z0-9+/=]{1,100}")
_SECRET_NAME = re.compile(SECRET_NAMES, re.IGNORECASE)  # the author of a commit (AUTHOR) is not one
# Names this short, or as common as these, cannot be hidden without damaging other text.
_SHORTEST_NAME, _SHORTEST_SECRET = 4, 8
_PLAIN = frozenset(
    {"localhost", "runner", "ubuntu", "debian", "linux", "docker", "build", "builder", "github", "default", "self-hosted", "root", "host"}
    | {"torch", "triton", "cuda", "python", "test", "tests", "main", "model", "data", "node", "worker", "server", "none", "true", "false"}
    | {word.lower() for word in (*keyword.kwlist, *keyword.softkwlist, *dir(builtins))}
)
# GPU names are not secret, though machines may have them: the table of versions contains them.
_GPU = re.compile(r"(?:[abhpv]|g[bh])\d00|l40s|a10g|[gr]tx\d{4}(?:ti)?|mi\d{3}[ax]?|dgx\d?")

# A part of a key that begins as a path does, as one of 64 keys in base64: no path has such a part.
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9+=]{12,}")
_MOST_PASSES = 6

# What a terminal obeys, and what no page shows, as it is or as Python and JSON escape it: colors and other sequences (ECMA-48), a character
# that is wiped out again, control characters, and characters without width.
_ESCAPE = r"(?:\x1b|\\x1b|\\033|\\u001b)"
_ENDS = r"(?:\x07|\\x07|\\u0007|\\a|" + _ESCAPE + r"\\{1,2})"
_UNSHOWN = re.compile(
    rf"(?:{_ESCAPE}\[|\x9b|\\x9b)[0-9;:?]{{0,40}}[ -/]?[@-~]"
    rf"|{_ESCAPE}[\]PX^_][^\x07\x1b\\\n]{{0,300}}{_ENDS}|{_ESCAPE}[ -/]{{0,2}}[0-Z\\^-~]"
    r"|[A-Za-z0-9_.-](?:\x08|\\x08|\\b)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
    r"|\\(?:[fr]|x(?:[01][0-9a-f]|7f|[89][0-9a-f]|ad)|u(?:00(?:[01][0-9a-f]|7f|[89][0-9a-f]|ad)|200[b-f]|202[89a-e]|20[67][0-9a-f]|fe0[0-9a-f]|feff)"
    r"|U000e0[0-9a-f]{3})"
)
# What may be other text in base64, percent-encoded, or escaped as for Python, JSON and HTML.
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])(?=[a-z0-9+/_-]{0,60}[A-Z])(?=[A-Z0-9+/_-]{0,60}[a-z])[A-Za-z0-9+/_-]{24,}={0,2}")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPED = re.compile(r"\\{1,4}(?:x|u00)([2-7][0-9a-fA-F])|&(?:#\d{2,3}|#[xX][0-9a-fA-F]{2}|[a-z]{3,6});")
_WORD = re.compile(r"[^\s'\"<>]{12,}")
_MOST_LAYERS = 3
_ADDRESS = re.compile(r"[A-Za-z0-9._~+%/:@?=&-]{12,}")
_URL_SAFE = str.maketrans("-_", "+/")
# What begins each line of a text that pytest, a comment, a shell or a log shows, and how a line says that it goes on in the next.
_BEGINS = re.compile(r"(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z )?(?:(?:E|#|//|>|\+|\*) {1,12})?")
_MAILED = 76  # characters of a line in a mail, with the sign at its end
# Characters around a line in a frame; minimum width of a line that was filled by folding, and minimum length of a rest worth hiding.
_FRAME, _NARROWEST, _SHORTEST_REST = " \t\r│┃|", 60, 12
# What a line contains that names the value in the next one, and number of its last characters that are examined.
_MAY_NAME = re.compile(r"token|secret|passw|passphrase|key|auth|_pat\b|pwd|credentials", re.IGNORECASE)
_MOST_NAMED = 400
# Number of preceding characters that are examined together with a line.
_MOST_FOLDED = 4_000

M = TypeVar("M", bound=Model)


class _Hidden:
    """What else is removed: the names of this machine and the secrets that it holds, each with its replacement."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.pattern: re.Pattern[str] | None = None

    def replace(self, text: str) -> str:
        return self.pattern.sub(lambda found: self.words.get(found[0]) or self.words[found[0].lower()], text) if self.pattern else text


_hidden = _Hidden()


def hide(words: Mapping[str, str]) -> None:
    """From now on `redact` removes these `words` as well, each in favor of its value, secrets in whatever way programs write them; an empty
    mapping ends that."""
    words = {form: SECRET for word, place in words.items() if place == SECRET for form in spellings(word)} | dict(words)
    secret = [re.escape(word) for word in sorted(words, key=len, reverse=True) if words[word] == SECRET]
    named = [_as_named(word) for word in sorted(words, key=len, reverse=True) if words[word] != SECRET]
    # also behind an option of a compiler, such as -I
    parts = [*secret, *([rf"(?:{START}|(?<=[\s'\"]-[A-Za-z]))(?:{'|'.join(named)})(?![A-Za-z0-9_])"] if named else [])]
    _hidden.words = {word.lower(): place for word, place in words.items() if _is_no_word(word)} | dict(words)
    _hidden.pattern = re.compile("|".join(parts)) if parts else None


def _is_no_word(name: str) -> bool:
    """Whether a machine's name cannot be a name in a program, even one that differs only in case."""
    return "/" not in name and re.search(r"[\d-]", name) is not None


def _as_named(word: str) -> str:
    return f"(?ai:{re.escape(word)})" if _is_no_word(word) else re.escape(word)


def is_secret_name(name: str) -> bool:
    """Whether the variable `name` is, judging by its name, one that no program may see."""
    return bool(_SECRET_NAME.search(name))


def words_of_machine(environ: Mapping[str, str], hostname: str) -> dict[str, str]:
    """The words of this machine for `hide`: the secret values in `environ`, its home directory, its `hostname`, full and short, and the
    name of the runner."""
    words = {value: SECRET for name, value in environ.items() if is_secret_name(name) and _hard_to_guess(value)}
    home = environ.get("HOME", "").rstrip("/")
    if home.count("/") > 1:
        words.setdefault(home, "~")
    for name, place in ((hostname, "host"), (hostname.partition(".")[0], "host"), (environ.get("RUNNER_NAME", ""), "runner")):
        # one word each: the replacement is a name as well, so that a program stays one
        if (
            len(name) >= _SHORTEST_NAME
            and name.lower() not in _PLAIN
            and not _GPU.fullmatch(name.lower())
            and not name.isdecimal()
            and " " not in name
        ):
            words.setdefault(name, place)
    return words


def _hard_to_guess(value: str) -> bool:
    """Whether a secret looks like one: hiding a word or a path would damage programs."""
    if value.startswith("/") and not any(map(_RANDOM.fullmatch, value.split("/"))):
        return False
    return len(value) >= (_SHORTEST_SECRET if any(map(str.isdigit, value)) else 2 * _SHORTEST_SECRET)


def redact(text: str) -> str:
    """The `text` with secrets as `[secret]`, home directories as `~`, and without what `hide` was given."""
    for _ in range(_MOST_PASSES if "\n" in text else 1):
        # a line without its secret may be one that was filled by folding
        before, text = text, _all_of(_unfolded(text))
        if text == before:
            break
    return text


def _unfolded(text: str) -> str:
    """The text with folded secrets joined again: libraries fold their output, also inside frames."""
    lines, shown, at = text.split("\n"), [], 0
    while at < len(lines):
        parts = [_core(lines[at])]
        while _is_full(parts) and at + len(parts) < len(lines) and (word := _goes_on(_core(lines[at + len(parts)]), len(parts[0]))):
            parts.append(word)
        last = at + len(parts) - 1
        if last > at and _spans(parts):
            rest = _core(lines[last]).removeprefix(parts[-1])
            shown.append(lines[at].replace(parts[0], _all_of("".join(parts)) + rest, 1))
            at = last + 1
        else:
            # the last part may be the first of others
            shown += lines[at : max(last, at + 1)]
            at = max(last, at + 1)
    return "\n".join(shown)


def _core(line: str) -> str:
    """What is in a `line` of a text that was folded, without what stands around it in each line."""
    line = line.strip(_FRAME)
    begun = _BEGINS.match(line)
    line = line[begun.end() :].strip(_FRAME) if begun else line
    return line[:-1] if line.endswith("\\") or (line.endswith("=") and len(line) == _MAILED) else line


def _is_full(parts: Sequence[str]) -> bool:
    """Whether the last of `parts` fills a line, so that it may continue in the next."""
    return len(parts[-1]) == len(parts[0]) >= _NARROWEST and (len(parts) > 1 or not re.search(r"\s", parts[0]))


def _goes_on(line: str, width: int) -> str:
    """The word at the start of `line` that may continue one of `width` characters; empty if it is more likely a separate word."""
    word = re.split(r"\s", line[: width + 1], maxsplit=1)[0]
    if len(word) == len(line) == width:
        return word
    mixed = re.search(r"\d", word) and re.search("[A-Za-z]", word)
    return word if mixed and _SHORTEST_REST <= len(word) <= width else ""


def _spans(parts: Sequence[str]) -> bool:
    """Whether a secret extends over more than one of `parts`."""
    together = _all_of("".join(parts))
    return SECRET in together and len(together) < len("".join(map(_all_of, parts)))


def _all_of(text: str) -> str:
    """A text without folded parts, redacted."""
    if _UNSHOWN.search(text):
        bare = _UNSHOWN.sub("", text)
        cut = PRIVATE_KEY.search(bare) and not PRIVATE_KEY.search(text)
        text = bare if cut else "\n".join(map(_without_what_is_not_shown, text.split("\n")))
    if _ESCAPED.search(text):
        text = _WORD.sub(lambda found: _unless_escapes_hide(found[0]), text)
    before = _redacted(text)
    text = _BASE64.sub(lambda found: _unless_hidden(found[0], _from_base64(found[0])), before)
    if _PERCENT.search(text):
        text = _ADDRESS.sub(lambda found: _unless_hidden(found[0], urllib.parse.unquote(found[0])), text)
    # what was too long for its option, or its address, may not be any more
    return text if text == before else _redacted(text)


def _redacted(text: str) -> str:
    for _ in range(_MOST_PASSES):
        # the replacement of one secret may be where another begins
        before, text = text, _pass(text)
        if text == before:
            break
    return text


def _without_what_is_not_shown(line: str) -> str:
    """A line without its colors, and whatever else is not shown, if these hide a secret or a part of one, as in the output of `grep`."""
    bare = _UNSHOWN.sub("", line)
    if bare == line or (shown := _redacted(bare)) == bare or _UNSHOWN.sub("", _redacted(line)) == shown:
        return line
    return shown


def _unless_hidden(written: str, meant: str) -> str:
    """The `written` text, unless what it is `meant` to be contains a secret."""
    return SECRET if meant != written and _tells(meant) else written


def _tells(text: str, layers: int = _MOST_LAYERS) -> bool:
    """Whether a `text` contains a secret, also in that many `layers` of base64 or percent signs."""
    if _pass(text) != text:
        return True
    if not layers or not text.isascii():  # other data takes most of the time, and is no further layer
        return False
    inner = [meant for found in _BASE64.finditer(text) if (meant := _from_base64(found[0])) != found[0]]
    if _PERCENT.search(text) and (meant := urllib.parse.unquote(text)) != text:
        inner.append(meant)
    return any(_tells(meant, layers - 1) for meant in inner)


def _unless_escapes_hide(written: str) -> str:
    """The `written` word, unless characters of a secret in it are escaped."""
    meant = _unescaped(written)
    if meant == written or (shown := _redacted(meant)) == meant or _unescaped(_redacted(written)) == shown:
        return written
    return SECRET


def _unescaped(written: str) -> str:
    """The text that is `written` with escapes of Python, JSON or HTML for characters of ASCII."""
    return html.unescape(_ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[0], written))


def _from_base64(written: str) -> str:
    """The text that is `written` in base64, possibly among other data."""
    digits = written.rstrip("=").translate(_URL_SAFE)
    data = base64.b64decode(digits[: len(digits) - len(digits) % 4] + (digits[-(len(digits) % 4) :] + "==")[:4] * (len(digits) % 4 > 1))
    # other systems write two bytes for each character
    data = data.replace(b"\0", b"")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _pass(text: str) -> str:
    if "PRIVATE KEY" in text:
        text = PRIVATE_KEY.sub(SECRET, text)
        if "PRIVATE KEY" in text:
            text = TORN_KEY.sub(lambda found: SECRET if found["end"] else found[0], text)
    text = _hidden.replace(text)
    folded = text.casefold()
    for pattern, instead, needed in REPLACED:
        # most texts contain none of what a pattern needs, and checking that costs a hundredth
        if any(part in folded for part in needed):
            before, text = text, pattern.sub(instead, text)
            folded = folded if text == before else text.casefold()
    return REST.sub(SECRET, text) if SECRET in text else text


class LineRedactor:
    """`redact` for lines that come one by one: a private key extends over several of them."""

    def __init__(self) -> None:
        self._left = 0  # lines that may still belong to a key, whatever they hold
        self._in_key = False
        self._parts: list[str] = []  # of a text that may be folded
        self._names = ""  # the line before, if it may name a value in this one

    def __call__(self, line: str) -> str:
        """The `line` redacted."""
        bare = _UNSHOWN.sub("", line)
        if "PRIVATE KEY" in bare and "PRIVATE KEY" not in line:
            line = bare
        end = KEY_ENDS.search(line) if self._in_key else None
        if end is not None:
            self._left, self._in_key, line = 0, False, SECRET + line[end.end() :]
        elif self._left or (self._in_key and _KEY_ROW.fullmatch(_core(line))):
            self._left = max(self._left - 1, 0)
            return SECRET
        else:
            self._in_key = False
        if KEY_BEGINS.search(line):
            self._left, self._in_key = _LONGEST_KEY, True
        return self._without_value(self._without_rest(line))

    def _without_value(self, line: str) -> str:
        """The `line` redacted, including a value that the line before names, as in YAML."""
        names, shown = self._names, redact(line)
        self._names = line[-_MOST_NAMED:] if _MAY_NAME.search(line) else names if names and not line.strip() else ""
        if not names:
            return shown
        *before, last = _all_of(f"{names}\n{line}").split("\n")
        return last if len(before) == 1 and last.count(SECRET) > shown.count(SECRET) else shown

    def _without_rest(self, line: str) -> str:
        """The `line` without the continuation of a secret from the lines before."""
        core = _core(line)
        word = _goes_on(core, len(self._parts[0])) if self._parts and _is_full(self._parts) else ""
        if word and len(self._parts) * len(self._parts[0]) < _MOST_FOLDED and _spans([*self._parts, word]):
            self._parts.append(word if word == core else "")
            return line.replace(word, SECRET, 1)
        self._parts = [core]
        return line


def redacted(model: M) -> M:
    """The `model` with all its texts redacted."""
    return type(model).model_validate(redact_all(model.model_dump(by_alias=True, round_trip=True)))


def line_of(signature: Signature) -> str:
    """The `signature` on one line, redacted. Redaction comes first because the line is shortened, and half a secret would not be
    recognized."""
    return redacted(signature).line()


def _redact_entry(key: Any, held: Any) -> tuple[Any, Any]:
    """An entry with both parts redacted, including a value that its key reveals as a secret."""
    told = f'"{key}": "{held}"' if isinstance(key, str) and isinstance(held, str) else ""
    return key, held if redact(told) == told else SECRET


def redact_all(value: Any) -> Any:
    """A JSON `value` with all its texts redacted."""
    if isinstance(value, str) and type(value) is str:
        return redact(value)
    if isinstance(value, dict):
        return dict(_redact_entry(redact_all(key), redact_all(held)) for key, held in value.items())
    if isinstance(value, (list, tuple)):
        return [redact_all(held) for held in value]
    return value
