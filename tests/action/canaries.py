"""One made-up secret of each sort, put together here so that no scanner takes them for real ones."""

from __future__ import annotations

_MIXED = "a1B2" * 20
_HEX = "0a1b2c3d" * 8
_LETTERS = "abcdEFGH" * 12
_JWT = "ey" + "J" + _MIXED[:16] + "." + _MIXED[:60] + "." + _MIXED[:43]

# Forms as their issuers document them, or as public code that looks for them has them.
# GitHub's long one is that of installations since 2026: app, then a JSON Web Token, 520 characters.
TOKENS = {
    "GitHub, classic": "gh" + "p_" + _MIXED[:36],
    "GitHub, OAuth": "gh" + "o_" + _LETTERS[:36],
    "GitHub, user to server": "gh" + "u_" + _MIXED[:36],
    "GitHub, installation": "gh" + "s_" + _MIXED[:36],
    "GitHub, installation, long": "gh" + "s_1234567_" + "ey" + "J" + _MIXED[:36] + "." + (_MIXED * 6)[:380] + "." + (_MIXED + "_-Z")[-43:],
    "GitHub, refresh": "gh" + "r_" + _MIXED[:76],
    "GitHub, fine grained": "github" + "_pat_" + _MIXED[:22] + "_" + _MIXED[:59],
    "AWS key": "AKI" + "A" + "A1B2C3D4" * 2,
    "AWS temporary key": "ASI" + "A" + "A1B2C3D4" * 2,
    "GCP key": "AIz" + "a" + _MIXED[:35],
    "GCP access": "ya2" + "9." + _MIXED[:60],
    "GCP client": "GOC" + "SPX-" + _MIXED[:28],
    "Azure client": "abc8" + "Q~" + _MIXED[:34],
    "Hugging Face": "h" + "f_" + _LETTERS[:34],
    "Hugging Face, organization": "api" + "_org_" + _LETTERS[:34],
    "Slack bot": "xox" + "b-" + "123456789012-1234567890123-" + _MIXED[:24],
    "Slack app": "xap" + "p-1-" + "A0123456789-1234567890123-" + _HEX,
    "PyPI": "py" + "pi-AgEIcHlwaS5vcmc" + _MIXED[:70],
    "npm": "np" + "m_" + _MIXED[:36],
    "OpenAI": "s" + "k-proj-" + _MIXED[:60],
    "Anthropic": "s" + "k-ant-api03-" + _MIXED[:60] + "-" + _MIXED[:20],
    "GitLab": "glp" + "at-" + _MIXED[:20],
    "GitLab runner": "glr" + "t-" + _MIXED[:20],
    "NVIDIA": "nva" + "pi-" + _MIXED[:64],
    "Fly": "fm" + "2_" + _MIXED[:70] + "/+" + _MIXED[:9] + "==",
    "Cloudflare": "cf" + "ut_" + _LETTERS[:40] + "0a1b2c3d",
    "Groq": "gs" + "k_" + _MIXED[:52],
    "xAI": "xa" + "i-" + _MIXED[:80],
    "Replicate": "r" + "8_" + _MIXED[:37],
    "Perplexity": "pp" + "lx-" + _MIXED[:48],
    "Vault": "hv" + "s." + _MIXED[:24],
    "DigitalOcean": "dop" + "_v1_" + _HEX,
    "Atlassian": "ATA" + "TT3xFfGF0" + _MIXED[:60],
    "Grafana": "gl" + "sa_" + _MIXED[:32] + "_0a1b2c3d",
    "Shopify": "shp" + "at_" + _HEX[:32],
    "age": "AGE-SECRET" + "-KEY-1" + _MIXED[:58].upper(),
    "Weights & Biases": "wandb" + "_v1_" + _MIXED[:60],
    "Pinecone": "pc" + "sk_" + _MIXED[:50],
    "LangSmith": "lsv" + "2_pt_" + _HEX[:32] + "_0a1b2c3d4e",
    "Kaggle": "KG" + "AT_" + _HEX[:32],
    "Tailscale": "tsk" + "ey-auth-" + _MIXED[:17] + "-" + _MIXED[:32],
    "Buildkite": "bk" + "ua_" + _HEX[:40],
    "CircleCI": "CCI" + "PAT_" + _MIXED[:22] + "_" + _HEX[:40],
    "Linear": "lin" + "_api_" + _MIXED[:40],
    "Notion": "nt" + "n_" + _MIXED[:46],
    "Terraform": _MIXED[:14] + ".atlas" + "v1." + _MIXED[:60],
    "Together": "tgp" + "_v1_" + _MIXED[:43],
    "RunPod": "rp" + "a_" + _MIXED[:44].upper(),
    "Sentry": "sntr" + "yu_" + _HEX,
    "RubyGems": "ruby" + "gems_" + _HEX[:48],
    "Supabase": "sb" + "p_" + _HEX[:40],
    "Figma": "fig" + "d_" + _MIXED[:40],
    "Pulumi": "pu" + "l-" + _HEX[:40],
    "Postman": "PM" + "AK-" + _HEX[:24] + "-" + _HEX[:34],
    "New Relic": "NR" + "AK-" + _MIXED[:27].upper(),
    "Alibaba": "LT" + "AI" + _MIXED[:20],
    "Doppler": "dp" + ".pt." + _MIXED[:43],
    "AWS Bedrock": "AB" + "SK" + (_MIXED * 2)[:108] + "==",
    "Azure, of its AI services": _MIXED[:52] + "JQQ" + "J99" + _MIXED[:26],
    "Azure, of a storage account": _MIXED[:76] + "+A" + "St" + "a1B2" + "==",
    "Hugging Face, OAuth": "h" + "f_oauth_" + _JWT,
    "Cerebras": "cs" + "k-" + _MIXED[:48].lower(),
    "Tavily": "tv" + "ly-dev-" + _MIXED[:32],
    "Gemini": "A" + "Q.Ab8RN6" + _MIXED[:44],
    "Fireworks": "f" + "w_" + _MIXED[:24],
    "Anyscale": "ese" + "cret_" + _MIXED[:40],
    "Stripe, for tests": "s" + "k_test_" + _MIXED[:24],
    "Stripe hook": "wh" + "sec_" + _MIXED[:32],
    "Docker": "dckr" + "_pat_" + _MIXED[:27],
    "JSON Web Token": _JWT,
}
# A value that only its surroundings give away: where it is put in, and the value.
SETTINGS = {
    "AWS secret in a file of settings": ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE01"),
    "AWS secret in JSON": ('"SecretAccessKey": "{}"', "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE02"),
    "AWS secret in an environment": ("AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLE03"),
    "Azure storage": ("AccountKey={};EndpointSuffix=core.windows.net", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq=="),
    "Azure signed address": ("https://x.blob.core.windows.net/c?sv=1&sig={}&se=2", "abcDEF123%2Bghi456%2FjklMNO789pqr%3D"),
    "GCP key's id": ('"private_key_id": "{}"', _HEX[:40]),
    "password in an address": ("https://bob:{}@example.org/simple", "hunter22hunter"),
    "token in an address": ("git clone https://x-access-token:{}@github.com/o/r", "v" + _MIXED[:39]),
    "token alone in an address": ("https://{}@github.com/o/r", _MIXED[:40]),
    "netrc": ("machine example.org login bob password {}", "correcthorse"),
    "Slack hook": ("https://hooks.slack.com/services/{}", "T00000000/B00000000/" + _LETTERS[:24]),
    "Discord hook": ("https://discord.com/api/webhooks/{}", "123456789012345678/" + _LETTERS[:68]),
    "Docker's identity": ('"identitytoken": "{}"', _MIXED[:40]),
    "runner made for one job": ("run --jitconfig {}", "ey" + "J" + _MIXED[:60]),
    "option": ("pip install --api-key={} x", _MIXED[:30]),
    "option of a word of its own": ("client --db-password {} --port 1", "correct5horse6battery"),
    "header of an API": ("X-API-Key: {}", _MIXED[:32]),
    "cookie": ("Set-Cookie: session={}; path=/", _LETTERS[:40]),
    "header": ("Authorization: Bearer {}", _MIXED[:40]),
    "npm's settings": ("//registry.example.org/:_authToken={}", "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"),
    # as programs write what they hold, without meaning to hide anything
    "local of pytest, in a column": ("api_key    = '{}'", _MIXED[:32]),
    "bytes": ("password=b'{}'", _MIXED[:32]),
    "three quotes": ('password = """{}"""', _MIXED[:32]),
    "pair of a header": ("[('X-Api-Key', '{}')]", _MIXED[:32]),
    "variable in JSON": ('"MY_TOKEN=\\"{}\\""', _MIXED[:32]),
    "JSON in JSON in JSON": ('"\\"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}\\""', _MIXED[:32]),
    "JSON of .NET": (r"{{\u0022password\u0022: \u0022{}\u0022}}", _MIXED[:32]),
    "HTML of a dictionary": ("{{&#x27;password&#x27;: &#x27;{}&#x27;}}", _MIXED[:32]),
    "HTML of JSON": ("{{&quot;api_key&quot;: &quot;{}&quot;}}", _MIXED[:32]),
    "signed address in JSON of Go": (r"https://b.s3.amazonaws.com/k?X-Amz-Expires=9\u0026X-Amz-Signature={}\u0026x=1", _HEX[:64]),
    "signed address of a CDN": ("https://cdn.example.org/k?Expires=9&Signature={}&Key-Pair-Id=x", _MIXED[:40] + "__"),
    "raw file of a private repository": ("https://raw.example.org/o/r/main/x.py?token={}", "GHSAT0" + _MIXED[:40]),
    "address with escaped slashes": (r"https:\/\/bob:{}@example.org\/simple", "hunter22hunter"),
    "Slack hook with escaped slashes": (r"https:\/\/hooks.slack.com\/services\/T00000000\/B00000000\/{}", _LETTERS[:24]),
    "cookie in a dictionary": ("{{'Accept': '*/*', 'Cookie': 'session={}'}}", _LETTERS[:40]),
    "user of curl, as a shell echoes it": ("+ curl -sSL -u bob:{} https://example.org/x", "correct5horse"),
    "login to a registry": ("+ docker login ghcr.io --username bob -p {}", "correct5horse"),
    "login to W&B": ("+ wandb login --relogin {}", _HEX[:40]),
    "pair of a client": ("requests.get(url, auth=('bob', '{}'))", "correct5horse"),
    "cookie in bytes": (r"send: b'GET / HTTP/1.1\r\nCookie: session={}\r\n'", _LETTERS[:40]),
}
KEY = "\n".join(["-----BEGIN OPENSSH " + "PRIVATE KEY-----", *[_LETTERS[:64]] * 4, "-----END OPENSSH " + "PRIVATE KEY-----"])
KEY_LINE = _LETTERS[:64]
PATHS = {
    "home": ("/home/carol/src/model.py", "carol"),
    "home on a disk of its own": ("/mnt/data/home/carol/src/model.py", "carol"),
    "home behind a compiler's option": ("g++ -O2 -I/home/carol/include x.cpp", "carol"),
    "home of a Mac": ("/Users/carol/model.py", "carol"),
    "home in JSON of pandas": (r'"\/home\/carol\/model.py"', "carol"),
    "cache": ("/tmp/torchinductor_carol/ab/c.py", "carol"),
    "host of a cloud": ("ip-10-17-200-3.us-west-2.compute.internal", "ip-10-17-200-3"),
}
# What this machine is called, for `words_of_machine`, and a secret that only its environment gives away.
ENVIRONMENT = {"HOME": "/srv/people/dave", "RUNNER_NAME": "h200-runner-7", "DEPLOY_TOKEN": "plainwordsthatnopatternknows"}
HOSTNAME = "gpubox17.lab.example.org"
OF_MACHINE = ["/srv/people/dave", "h200-runner-7", "plainwordsthatnopatternknows", "gpubox17"]

# All that may be found nowhere.
NOWHERE = [*TOKENS.values(), *(value for _, value in SETTINGS.values()), KEY_LINE, *(name for _, name in PATHS.values()), *OF_MACHINE]
# A text with all of them.
ALL = "\n".join(
    [
        *(f"{sort}: {token}" for sort, token in TOKENS.items()),
        *(f"url https://x-access-token:{token}@github.com/o/r" for token in TOKENS.values()),
        *(f"{form.format(value)}" for form, value in SETTINGS.values()),
        *(path for path, _ in PATHS.values()),
        *(f"at {word}" for word in OF_MACHINE),
        f"ssh {HOSTNAME}",
        KEY,
        "the end",
    ]
)


def left_in(text: str) -> list[str]:
    """The canaries in `text`, also as JSON writes them."""
    return [canary for canary in NOWHERE if canary in text or canary.replace("/", "\\/") in text]
