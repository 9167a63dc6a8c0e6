"""The forms of secrets and personal paths.

Every pattern is bounded, or starts only where nothing of its kind precedes, so that a hostile text takes linear time.
"""

from __future__ import annotations

import re

from bot.sandbox.token_forms import BEHIND, IN_TOKENS, TOKENS

SECRET = "[secret]"

# Names may be part of longer ones (`my_host`) where tokens are not (`hf_oauth_eyJ...`).
START = rf"(?:(?<![A-Za-z0-9_-]){BEHIND})"
# The second form is that of RFC 4716.
_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-----| ----)"
_BEGIN, _END = rf"(?:-----|---- )BEGIN {_KEY}", rf"(?:-----|---- )END {_KEY}"
PRIVATE_KEY = re.compile(rf"{_BEGIN}.*?(?:{_END}|\Z)", re.DOTALL)
# The last form is that of PuTTY's files: the number of lines of the private half of a key, that half, and a check of it.
KEY_BEGINS = re.compile(rf"{_BEGIN}(?!.*(?:-----|---- )END )|^\s{{0,40}}Private-Lines: \d{{1,3}}\s*$")
KEY_ENDS = re.compile(rf"{_END}|Private-(?=MAC: )")
_ROW_ENDS = r"(?:\s|\\{1,15}[rn]){1,4}"
_PUTTY = re.compile(
    rf"((?:\b|\\[nrt])Private-Lines: \d{{1,3}}{_ROW_ENDS})[A-Za-z0-9+/=]{{1,100}}"
    rf"(?:{_ROW_ENDS}[A-Za-z0-9+/=]{{1,100}}(?![A-Za-z0-9+/=:-]))*"
)
# What begins a line of a log of GitHub's, and of what pytest, a comment, a shell or a mail shows.
_BEGINS = r"(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z )?(?:(?:E|#|//|[>|+*])(?=[ \t]))?[ \t]{0,60}"
# A key whose beginning is elsewhere: rows, perhaps right before its end.
_NEXT_ROW = rf"(?:\r?\n{_BEGINS}|\\{{1,15}}(?:r\\{{1,15}})?n)"
TORN_KEY = re.compile(
    rf"(?:(?<![A-Za-z0-9+/=])|(?<=\\n))[A-Za-z0-9+/=]{{16,100}}(?:{_NEXT_ROW}[A-Za-z0-9+/=]{{1,100}})*{_NEXT_ROW}(?P<end>{_END})?"
)
# A quotation mark as programs write it inside a text: escaped for Python and JSON once or more, by .NET, for HTML.
_QUOTE = r"(?:(?:\\{0,15}['\"]){1,3}|\\{1,15}(?:u00|x)2[27]|&(?:quot|apos|#0?3[49]|#[xX]2[27]);)"
# Escaped characters of values, as in the JSON of some libraries.
_ESCAPED = r"\\{1,15}(?:/|u00(?:2[BbFf]|3[Dd]))"
# Between a name and its value, and between the two in a tuple. In a log of GitHub's, a time begins the next line, and is no value.
_BLOCK = r"(?:[|>][+-]?\n[ \t]{1,12})?"  # of YAML
_MEANS = rf"{_QUOTE}?\]?[ \t]{{0,12}}\s{{0,3}}(?::=|=>|[=:])\s{{0,3}}{_BLOCK}(?!\d{{4}}-\d\d-\d\dT\d\d:)b?{_QUOTE}?"
_BESIDE = rf"{_QUOTE}(?:, ?| value=)b?{_QUOTE}"
# The same in a list of variables, as files of Kubernetes have it.
_LISTED = rf"{_QUOTE}?,?\s{{0,40}}{_QUOTE}?value{_QUOTE}?\s?:\s{{0,3}}{_QUOTE}?"
# The same in YAML, with the value in the next line.
_BELOW = rf"{_QUOTE}?[ \t]{{0,12}}:[ \t]{{0,12}}(?:[|>][+-]?[ \t]{{0,3}})?\r?\n{_BEGINS}(?:- )?{_QUOTE}?"
_BEARER = re.compile(r"([bBtT](?i:(?<=b)(?<![a-z]b)(?:earer|asic)|(?<=t)(?<![a-z]t)oken) )[A-Za-z0-9._~+/=-]{20,}")
# An argument, or a line of a configuration file. Words of languages and of grammars are called tokens as well.
_NAMED = re.compile(
    rf"((?<![\w-])token{_QUOTE}?[ \t]{{0,12}}[=:][ \t]{{0,3}}b?{_QUOTE})"
    r"(?=[^\s'\"]{0,100}?\d)(?=[^\s'\"]{0,100}?[A-Za-z])"
    rf"[A-Za-z0-9+/=-]{{20,2000}}(?={_QUOTE})"
)
# The last form: a password with a slash. What a port begins is a path, which may hold an at sign as well.
_IN_URL = re.compile(
    r"(:(?:\\{0,15}/){2})(?:[^/\s:'\"]{0,200}:[^/\s'\"]{1,2000}|(?=[^/\s@'\"]{0,100}\d)[A-Za-z0-9_.~%-]{20,2000}"
    r"|[^/\s:'\"@\[]{0,200}:(?!\d{0,5}\\{0,15}/|[$<{])[^\s'\"@]{1,200}(?<!/)(?=@[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]{0,253}(?:[/?#\s'\"<>)]|\Z)))(?=:?@)"
)
# Parameters of signed addresses, and addresses that are themselves secret.
_SIGNED = re.compile(
    r"(?i)((?:[?&;]|\\{1,15}(?:u00|x)26)(?:sig(?:nature)?|token|pwd|private_token|x-(?:amz|goog)-(?:signature|security-token|credential))=)"
    r"[A-Za-z0-9%+/=._~-]{10,}"
)
_HOOK = re.compile(
    r"(hooks\.slack\.com\\{0,15}/)(?:services|workflows|triggers)\\{0,15}/[A-Za-z0-9/\\_-]{20,}"
    r"|(/api\\{0,15}/webhooks\\{0,15}/)\d{10,25}\\{0,15}/[A-Za-z0-9_-]{40,}"
    r"|(webhook\.office\.com\\{0,15}/webhookb2\\{0,15}/)[A-Za-z0-9@/\\-]{60,}"
    r"|((?:anaconda|prefix)\.(?:org|com|cloud|dev)\\{0,15}/t\\{0,15}/)[A-Za-z0-9-]{16,}"
)
# On a command line, and in the output of an HTTP client.
_OPTION = re.compile(
    r"((?<![\w-])--(?:[a-z0-9]{1,20}[_-]){0,4}(?:password|passwd|secret|jitconfig|(?:api|access|secret)[_-]key)[ =](?:" + _QUOTE + ")?)"
    r"(?=[^\s'\"]{0,100}?\d)[^\s'\"]{8,2000}"
)
_LOGIN = re.compile(
    rf"(\b(?:curl|wget)\b[^\n]{{0,300}}?[ \t](?:-u|--user|--proxy-user)[ =]?{_QUOTE}?[^\s:'\"]{{1,100}}:"
    rf"|\blogin\b[^\n]{{0,200}}?[ \t]-p[ =]?{_QUOTE}?|\bsshpass -p[ =]?{_QUOTE}?|\blogin\((?:key|token)=b?{_QUOTE}|\bSecretStr\({_QUOTE}"
    rf"|\bwandb login (?:--[a-z]{{1,20}} )?|\b(?:auth=|[A-Za-z]{{0,20}}BasicAuth)\({_QUOTE}[^'\"\n]{{1,100}}{_QUOTE}, ?b?{_QUOTE})"
    r"(?=[^\s'\"]{0,100}?\d)[^\s'\"]{8,2000}"
)
_COOKIE = re.compile(
    rf"((?i:(?:\b|_|\\[nrt])cookie)(?:{_QUOTE}?:[ \t]{{0,3}}b?{_QUOTE}?|{_BESIDE}))[^\s;=]{{1,100}}=[^\r\n'\"\\]{{8,4000}}"
)
# Any scheme; a placeholder such as `{token}` is not a value.
_HEADER = re.compile(
    r"((?i:(?:\b|\\[nrt])(?:authorization|(?:private|job|deploy)-token|x-[a-z]{1,20}-(?:token|key)|subscription-key))"
    rf"(?:{_QUOTE}?:[ \t]{{0,3}}b?{_QUOTE}?|{_BESIDE})"
    r"(?:[A-Za-z][A-Za-z0-9-]{1,30} )?)(?=[^\s'\"]{0,100}?\d)[A-Za-z0-9._~+/=:-]{16,2000}"
)
# A name and a password in base64: for a header, and for Docker.
_BASIC = re.compile(
    rf"((?i:(?:\b|\\[nrt])authorization(?:{_QUOTE}?:[ \t]{{0,3}}b?{_QUOTE}?|{_BESIDE})basic )|{_QUOTE}auth{_QUOTE}: ?b?{_QUOTE})"
    r"(?=[a-z]{0,100}[A-Z0-9+/])(?:[A-Za-z0-9+/]{4}){1,500}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2,3}={1,2})(?![A-Za-z0-9+/_=-])"
)
_NETRC = re.compile(
    r"(?i)(\blogin\s{1,10}\S{1,100}\s{1,10}(?:account\s{1,10}\S{1,100}\s{1,10})?password\s{1,10}"
    r"|\bmachine\s{1,10}\S{1,100}\s{1,10}password\s{1,10}(?=\S{1,200}\s{1,10}login\b))(?:(?!\\n)\S)+"
)
# An address without its scheme.
_PROXY = re.compile(
    rf"((?i:proxy)[\w-]{{0,20}}{_QUOTE}?[ \t]{{0,3}}[=: ]\s{{0,3}}{_QUOTE}?)"
    r"[^\s/:@'\"]{1,100}:[^\s/@'\"]{6,100}(?=@[\w.-]{1,100}:\d{2,5})"
)
_SECRET_WORDS = (
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|_PAT|_AUTH|_PWD|CREDENTIALS"
    r"|(?:ACCESS|ADMIN|PRIVATE|ENCRYPTION|SIGNING|FERNET|MASTER|DEPLOY)_KEY)"
)
# As PyTorch's dumps and a shell's `env` write them. A value without a digit is more likely a name or a word.
_VARIABLE = re.compile(
    rf"((?<![A-Z0-9_])(?:(?<=setenv )|(?<=ENV )|(?<=set -x )|(?<=set -gx ))[A-Z0-9_]{{0,60}}{_SECRET_WORDS}[ \t]{{1,3}}"
    rf"|(?<=[a-z]\(){_QUOTE}[A-Z0-9_]{{0,60}}{_SECRET_WORDS}{_BESIDE}|(?<![A-Z0-9_])[A-Z0-9_]{{0,60}}{_SECRET_WORDS}(?:{_MEANS}|{_LISTED}))"
    rf"(?=[^\d\s'\"]{{0,200}}\d)(?:[A-Za-z0-9_/+=.~!@#$%^&*-]{{12,}}|[A-Za-z0-9_+=-]{{0,11}}{_ESCAPED}[A-Za-z0-9_/+=-]+)"
)
# As configuration files and programs write them; a value that continues as an expression does not count.
_SETTING = re.compile(
    r"([sSaArRiIcCpP\"'_](?i:(?<=s)(?:ecret_?(?:access_?)?key|ession_?token|hared_?access_?key)|(?<=a)(?:ccess[_-]?token|uth[_-]?token|pi[_-]?(?:key|token)|ccess_?key_?secret|ccount_?key)"
    r"|(?<=r)efresh_?token|(?<=i)d(?:entity)?_?token|(?<=c)lient_?secret|(?<=p)(?:rivate_?key(?:_id)?|asswd|assword)|(?<=[\"'])auth|(?<=:_)auth)"
    rf"(?:{_MEANS}|{_BESIDE}|>))"
    r"(?=[^\s'\"]{0,100}?\d)(?=[^\s'\"]{0,100}?[A-Za-z])"
    rf"(?:[A-Za-z0-9_/+=~!@#$%^&*-]{{12,2000}}(?![\w.(\[])|[A-Za-z0-9_+=-]{{0,11}}{_ESCAPED}[A-Za-z0-9_/+=-]+)"
)
# Names that are no certain sign, as words are called tokens: the value has letters between its digits, and is no path.
_SIGN = (
    r"(?:[tTsSpPcCbBaAeEfFmMdDkK_](?i:(?<=t)oken|(?<=s)ecret(?:[_-]?key)?|(?<=p)assphrase|(?<=c)redentials?|(?<=b)earer|(?<=[^\w]_)auth"
    r"|(?:(?<=a)(?:ccess|dmin|ccount)|(?<=p)rivate|(?<=e)ncryption|(?<=s)igning|(?<=f)ernet|(?<=m)aster|(?<=d)eploy)[_-]?key"
    r"|(?<=s)torage_key|(?<=k)aggle_key|(?<=[a-z0-9]_)pat)|(?<![A-Za-z0-9])PAT|(?<![\s\S])_auth)"
)
_SIGNED_BY_NAME = re.compile(
    rf"({_SIGN}(?:{_MEANS}|{_LISTED}|{_BESIDE}|>|{_BELOW}))(?!\.{{0,2}}/)(?=[0-9_+/=-]{{0,200}}[A-Za-z])"
    r"(?=[A-Za-z_+/=-]{0,60}\d{1,60}[A-Za-z_+/=-]{1,60}\d)"
    r"(?:[A-Za-z0-9+=-]{20,2000}|(?=[A-Z0-9_+/=-]{0,200}[a-z])(?=[a-z0-9_+/=-]{0,200}[A-Z])[A-Za-z0-9_+/=-]{24,2000})(?![\w.(\[])"
)
# A value alone in the line after its name is certain enough.
_ALONE = re.compile(
    rf"([tTsSpPaA_](?i:(?<=t)oken|(?<=s)ecret|(?<=p)ass(?:word|wd|phrase)|(?<=a)pi[_-]?key|(?<=_)(?:key|pat|auth|pwd)){_BELOW})"
    r"(?!\.{0,2}[/~])(?=[^\s'\"]{0,200}?\d)(?=[^\s'\"]{0,200}?[A-Za-z])[A-Za-z0-9_/+=.~!@#$%^&*-]{12,2000}"
    rf"(?={_QUOTE}?,?[ \t]{{0,12}}(?:[\r\n]|\Z))"
)
# People's passwords are shorter than the values of other settings. Only a quoted one, or one of a connection or of an environment, is
# certainly a value.
_PASSWORD = re.compile(
    rf"((?i:pass(?:word|wd|phrase))(?:{_QUOTE}?\]?[ \t]{{0,12}}[=:]\s{{0,3}}b?{_QUOTE}|{_BESIDE}))"
    rf"(?=[^\s'\"]{{0,100}}?\d)(?=[^\s'\"]{{0,100}}?[A-Za-z])[^\s'\"\\{{}}()]{{6,100}}(?={_QUOTE})"
    r"|(\b(?i:password|pwd)=)(?=[^\s;'\"]{0,100}?\d)[^\s;'\"{}()]{6,100}(?=;)"
    r"|((?<![A-Z0-9_])[A-Z0-9_]{0,60}PASS(?:WORD|WD|PHRASE)=)(?=[^\s'\"]{0,100}?\d)[^\s'\"{}()]{6,100}"
)
# After its slash: whether a path begins there, including after a compiler option (-I).
_PATH = (
    r"(?:(?<![\w.~-]/)|(?<=[\s'\"]-[A-Za-z]/)|(?<=\\[abefnrtv0]/)|(?<=\\x[0-9a-fA-F]{2}/)|(?<=\\u[0-9a-fA-F]{4}/)"
    r"|(?<=[\[;][0-9]m/)|(?<=[\[;][0-9]{2}m/))"
)
# The second form: homes that are mounted elsewhere, below an absolute path. The third: on disks that are shared.
_HOME = re.compile(
    rf"/(?:{_PATH}(?:homes?|Users)/{{1,3}}[^/\s'\":<>|]{{1,64}}(?=[/\s'\":]|\Z)"
    rf"|{_PATH}(?<![:/]/)(?:[\w.-]{{1,40}}/){{1,6}}(?:homes?|Users)/{{1,3}}[^/\s'\":<>|]{{1,64}}(?=[/\s'\":]|\Z)|{_PATH}(?<!//)root(?=/)"
    rf"|{_PATH}(?<![:/]/)(?:data|nfs|export|scratch|lustre|gpfs|fsx|shared)/users/[^/\s'\":<>|]{{1,64}}(?=/))"
)
# As in the JSON of some libraries, such as pandas.
_ESCAPED_HOME = re.compile(
    r"(?<![\w.~/:-])(?:(?:\\{1,15}/[\w.-]{1,40}){0,6}\\{1,15}/(?:home|Users)\\{1,15}/[^/\\\s'\":<>|]{1,64}(?=[\\\s'\":]|\Z)"
    r"|\\{1,15}/root(?=\\{1,15}/))"
)
_WINDOWS_HOME = re.compile(r"(?:(?<!\w)|(?<=\\[abefnrtv0])|(?<=\\u[0-9a-fA-F]{4}))[A-Za-z]:\\+(?i:Users)\\+[^\\\s'\":<>|]+")
# A pattern ends somewhere: what follows directly belongs to the same secret.
REST = re.compile(rf"{re.escape(SECRET)}(?:(?=[A-Za-z0-9+=])[A-Za-z0-9+/=_-]{{20,}}|(?:{_ESCAPED}[A-Za-z0-9+/=_-]+)+)")
# Inductor's default cache directory is named after the user.
_CACHE = re.compile(r"(?<=/torchinductor_)[^/\s'\":]+")
# Names that clouds give to their machines.
_CLOUD_HOST = re.compile(
    rf"{START}(?<!\.)"
    r"(?:ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[a-z0-9.-]{1,100})?|[a-z0-9-]{1,63}\.(?:[a-z0-9.:-]{1,100}\.)?(?:c\.[a-z0-9.:-]{1,63}|compute|ec2)\.internal)(?![\w-])"
)

_KEEPING = rf"\g<1>{SECRET}"
# In this order: what is removed, its replacement, and strings of which a text must contain one, as `casefold` returns them.
REPLACED: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = (
    (TOKENS, SECRET, tuple(part.casefold() for part in IN_TOKENS)),
    (_BEARER, _KEEPING, ("bearer ", "basic ", "token ")),
    (_IN_URL, _KEEPING, ("://", "\\/")),
    (_PUTTY, _KEEPING, ("private-lines",)),
    (_SIGNED, _KEEPING, ("sig=", "signature=", "token=", "pwd=", "x-amz-", "x-goog-")),
    (_HOOK, rf"\g<1>\g<2>\g<3>\g<4>{SECRET}", ("hooks.slack.com", "webhooks", "webhookb2", "/t/", "/t\\")),
    (_OPTION, _KEEPING, ("--",)),
    (_LOGIN, _KEEPING, ("-u", "login", "auth", "sshpass", "secretstr")),
    (_COOKIE, _KEEPING, ("cookie",)),
    (_NAMED, _KEEPING, ("token",)),
    (_BASIC, _KEEPING, ("authorization", "auth")),
    (_HEADER, _KEEPING, ("authorization", "-token", "-key")),
    (_NETRC, _KEEPING, ("password",)),
    (_PROXY, _KEEPING, ("proxy",)),
    (_VARIABLE, _KEEPING, ("token", "secret", "passw", "passphrase", "apikey", "api_key", "_key", "_pat", "_auth", "_pwd", "credentials")),
    (
        _SETTING,
        _KEEPING,
        (
            *(
                "secret",
                "sessiontoken",
                "session_token",
                "access",
                "auth",
                "apikey",
                "api_key",
                "api-key",
                "api_token",
                "apitoken",
                "api-token",
                "account",
                "refresh",
            ),
            *("id_token", "idtoken", "identity"),
            *("client", "private", "passwd", "password"),
        ),
    ),
    (
        _SIGNED_BY_NAME,
        _KEEPING,
        ("token", "secret", "passphrase", "credential", "bearer", "key", "auth", "_pat", "pat=", "pat:", "pat'", 'pat"'),
    ),
    (_ALONE, _KEEPING, ("token", "secret", "passw", "passphrase", "key", "_pat", "_auth", "_pwd")),
    (_PASSWORD, rf"\g<1>\g<2>\g<3>{SECRET}", ("passw", "passphrase", "pwd")),
    (_HOME, "~", ("/home/", "/homes/", "/users/", "/root/")),
    (_ESCAPED_HOME, "~", ("/home\\", "/users\\", "/root\\")),
    (_WINDOWS_HOME, "~", ("users",)),
    (_CACHE, "user", ("/torchinductor_",)),
    (_CLOUD_HOST, "host", ("ip-", ".internal")),
)
