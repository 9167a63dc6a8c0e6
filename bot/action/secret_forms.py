"""The forms of secrets and personal paths.

Every pattern is bounded, or starts only where nothing of its kind precedes, so that a hostile text takes linear time.
"""

from __future__ import annotations

import re

SECRET = "[secret]"

# A token does not begin after a letter of a word, but may after an escape as `repr`, addresses and terminals write them.
_BEHIND = (
    r"|(?<=\\[abefnrtv0])|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})|(?<=\\U000[0-9a-fA-F]{5})|(?<=\\[0-3][0-7]{2})|(?<=%[0-9a-fA-F]{2})"
    r"|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m)|(?<=;[0-9]{3}m)"
)
# Names may be part of longer ones (`my_host`) where tokens are not (`hf_oauth_eyJ...`).
START = rf"(?:(?<![A-Za-z0-9_-]){_BEHIND})"
_TOKENS = re.compile(
    rf"(?:(?<![A-Za-z0-9]){_BEHIND})(?:"
    # GitHub: an installation's token contains dots, since it is a JSON Web Token after the number of its app
    r"gh[pousr]_(?:(?=[A-Za-z0-9_.-]{0,40}\d)[A-Za-z0-9_.-]{29,}[A-Za-z0-9_-]|[A-Za-z0-9]{30,})|github_pat_[A-Za-z0-9_]{30,}|v1\.[0-9a-f]{40}"
    r"|eC1hY2Nlc3MtdG9rZW46[A-Za-z0-9+/=]{8,}"  # x-access-token: in base64, as git sends it
    # OpenAI and Anthropic, Hugging Face, Slack, GitLab, npm, PyPI, Stripe, Docker, Databricks, SendGrid
    r"|sk-(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{20,}|hf_(?:oauth_[A-Za-z0-9._-]{30,}|(?<![_-]hf_)[A-Za-z0-9]{20,}|[A-Za-z0-9]{30,})|api_org_[A-Za-z0-9]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}"
    r"|xapp-\d-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,}|[rs]k_live_[A-Za-z0-9]{20,}"
    r"|dckr_[po]at_[A-Za-z0-9_-]{20,}|dapi[0-9a-f]{32}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    # GitLab's others, NVIDIA, Groq, xAI, Replicate, Perplexity, Vault, DigitalOcean, Atlassian, Grafana, Shopify, age
    r"|gl(?:ptt|dt|rt|cbt|ft|soat|agent|ffct|oas|imt|wt)-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{40,}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,}"
    r"|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|hv[sbr]\.[A-Za-z0-9_-]{24,}|do[opr]_v1_[0-9a-f]{40,}|AT(?:ATT3|BB|[CO]A?TT3)[A-Za-z0-9_=-]{24,}"
    r"|gl(?:c|sa)_[A-Za-z0-9_=]{30,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
    # Weights & Biases, Pinecone, LangSmith, Kaggle, Tailscale, Buildkite, CircleCI, Linear, Notion, Terraform
    r"|wandb_v1_[A-Za-z0-9_]{30,}|pcsk_[A-Za-z0-9_]{30,}|lsv2_[a-z]{2}_[0-9a-f]{32}(?:_[0-9a-f]{4,})?|KGAT_[0-9a-f]{32}"
    r"|tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,}|bk[a-z]{2}_[0-9a-f]{40}|CCI(?:PAT|PRJ)_[A-Za-z0-9_]{40,}|lin_(?:api|oauth)_[A-Za-z0-9]{30,}"
    r"|ntn_[A-Za-z0-9]{30,}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"
    # Together, RunPod, Sentry, RubyGems, Supabase, Figma, Pulumi, Postman, New Relic, Alibaba, Doppler
    r"|tgp_v1_[A-Za-z0-9_-]{30,}|rpa_[A-Z0-9]{30,}|sntry[su]_[A-Za-z0-9_=+/-]{40,}|rubygems_[0-9a-f]{40,}|sbp_[0-9a-f]{40}"
    r"|figd_[A-Za-z0-9_-]{30,}|pul-[0-9a-f]{40}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|NRAK-[A-Z0-9]{27}|LTAI[A-Za-z0-9]{16,24}"
    # Fly (as its own client removes them from logs), Cloudflare
    r"|(?:fo1|fm1[ar]|fm2)_(?:[A-Za-z0-9/+_-]|%2[BFbf]){40,}(?:=|%3[Dd]){0,2}|cf(?:ut|at|k)_[A-Za-z0-9]{40,}"
    # Cerebras, Tavily, Gemini, Fireworks, Anyscale, Stripe's for tests and hooks
    r"|csk-[a-z0-9]{40,}|tvly-[A-Za-z0-9-]{30,}|AQ\.(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{40,}|fw_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{22,}"
    r"|esecret_[A-Za-z0-9_-]{30,}|[rs]k_test_[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9+/=]{24,}"
    r"|dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._-]{40,}"
    # 1Password, Sourcegraph, Artifactory, HubSpot, PlanetScale, Prefect, Dynatrace, Heroku, Netlify, Jina, OpenShift, Contentful
    r"|ops_eyJ[A-Za-z0-9_-]{60,}|sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}|AKCp[A-Za-z0-9]{60,}|cmVmdGtu[A-Za-z0-9]{50,}"
    r"|pat-(?:na|eu)\d-[0-9a-f-]{36}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._=-]{30,}|pnu_[A-Za-z0-9]{30,}"
    r"|dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}|HRKU-[A-Za-z0-9_-]{36,}|nfp_[A-Za-z0-9]{36,}|jina_[A-Za-z0-9_-]{40,}"
    r"|sha256~[A-Za-z0-9_-]{43,}|CFPAT-[A-Za-z0-9_-]{40,}"
    # Tencent, Volcano, Brevo, E2B, LlamaCloud, EasyPost, Typeform, Square, Telegram, Mapbox, Dropbox, Snyk, Notion's older ones
    r"|AK(?:ID|LT)(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{32,}|xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}|e2b_[0-9a-f]{40}|llx-[A-Za-z0-9]{40,}"
    r"|EZ[AT]K[A-Za-z0-9]{50,}|tfp_[A-Za-z0-9_.-]{40,}|sq0(?:csp|atp)-[A-Za-z0-9_-]{22,}|\d{8,10}:AA[A-Za-z0-9_-]{33}"
    r"|[st]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}|sl\.(?:u\.)?[A-Za-z0-9_-]{100,}|snyk_[us]at\.[0-9a-f]{8}\.[A-Za-z0-9_-]{30,}"
    r"|secret_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{40,}"
    # Modal, Voyage, Yandex, NuGet, Rancher, Cloudflare's origin CA, self-hosted Weights & Biases
    r"|a[ks]-(?=[A-Za-z]{0,21}\d)(?=[a-z0-9]{0,21}[A-Z])(?=[A-Z0-9]{0,21}[a-z])[A-Za-z0-9]{22}(?![\w-])|AQVN[A-Za-z0-9_-]{35,}"
    r"|pa-(?=[A-Za-z_-]{0,42}\d)[A-Za-z0-9_-]{43}(?![\w-])|oy2[a-z0-9]{43}|token-[a-z0-9]{5}:[a-z0-9]{54}|v1\.0-[0-9a-f]{24}-[0-9a-f]{24,}"
    r"|local-[0-9a-f]{40}"
    # Vercel, Supabase, ElevenLabs, Firecrawl, Airtable, PostHog, Neon, Render, Resend, Mailgun, Mailchimp, Twilio,
    # Databricks' for services, Friendli, Nomic, Depot, Infisical, Lambda
    r"|vc[aikpr]_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{24,}|sb_secret_[A-Za-z0-9_-]{20,}|sk_[0-9a-f]{48}|fc-[0-9a-f]{32}"
    r"|pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|phx_[A-Za-z0-9]{40,}|napi_[a-z0-9]{40,}|rnd_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{28,}"
    r"|re_(?=[A-Za-z_]{0,40}\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{24}|key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}|SK[0-9a-f]{32}|dose[0-9a-f]{32}"
    r"|flp_[A-Za-z0-9]{40,}|nk-(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{40,}|depot_[a-z]{3,8}_[0-9a-f]{60,}|st\.[0-9a-f]{24}(?:\.[0-9a-f]{32}){2}"
    r"|secret_[a-z0-9-]{1,40}_[0-9a-f]{32}\.[A-Za-z0-9]{20,}"
    # SonarQube, dbt, Shippo, Duffel, Readme, Scalingo, Stripe's of organizations, Vercel's for blobs, xAI's for managing, Anyscale,
    # LaunchDarkly, GitLab's for registering runners
    r"|sq[upa]_[0-9a-f]{40}|dbt[cu]_(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9+/=_-]{30,}|shippo_(?:live|test)_[0-9a-fA-F]{40}"
    r"|duffel_(?:live|test)_[A-Za-z0-9_=-]{40,}|rdme_[a-z0-9]{60,}|tk-us-[A-Za-z0-9_-]{48}|[rs]k_org_(?:live|test)_[A-Za-z0-9]{20,}"
    r"|vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30,}|xai-token-[A-Za-z0-9]{40,}|aph0_[A-Za-z0-9_-]{30,}"
    r"|(?:api|sdk)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])"
    r"|GR1348941[A-Za-z0-9_-]{20,}|glrtr-[A-Za-z0-9_-]{20,}"
    # AWS, including temporary ones, Google, Azure: its own keys contain four letters that say what they open
    r"|(?:IQoJb3JpZ2lu|F[Qw]oGZXIvYXdz)(?:[A-Za-z0-9+/=]|%2[BFbf]|%3[Dd]){60,}|ABSK[A-Za-z0-9+/]{80,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{40,}"
    r"|[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{8,}|[A-Za-z0-9+/]{76}(?:\+ASt|ACDb|APIM|AZDO)[A-Za-z0-9+/]{4,}={0,2}"
    r"|A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9._-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}"
    r"|[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}"
    # JSON Web Tokens, also encrypted ones
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){1,3})"
)
# In a text that contains none of these, no position needs to be tried.
_IN_TOKENS = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "v1.", "eC1hY2Nl", "sk-", "hf_", "api_org_", "xox", "xapp-", "glpat-", "npm_"),
    *("glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-", "glagent-", "nvapi-", "gsk_", "xai-", "r8_", "pplx-", "hvs.", "hvb."),
    *("hvr.", "_v1_", "ATATT3", "ATBB", "ATCTT3", "glc_", "glsa_", "shpat_", "shpca_", "shppa_", "shpss_", "AGE-SECRET-KEY-1"),
    *("wandb_v1_", "pcsk_", "lsv2_", "KGAT_", "tskey-", "bk", "CCIPAT_", "CCIPRJ_", "lin_", "ntn_", ".atlasv1."),
    *("tgp_v1_", "rpa_", "sntrys_", "sntryu_", "rubygems_", "sbp_", "figd_", "pul-", "PMAK-", "NRAK-", "LTAI"),
    *("fo1_", "fm1a_", "fm1r_", "fm2_", "cfut_", "cfat_", "cfk_"),
    *(
        "vca_",
        "vci_",
        "vck_",
        "vcp_",
        "vcr_",
        "sk_",
        "fc-",
        "pat",
        "phx_",
        "napi_",
        "rnd_",
        "re_",
        "key-",
        "-us",
        "SK",
        "dose",
        "flp_",
        "nk-",
    ),
    *("depot_", "st.", "IQoJb3JpZ2lu", "QoGZXIvYXdz", "woGZXIvYXdz", "ATOATT3"),
    *("csk-", "tvly-", "AQ.", "fw_", "esecret_", "k_test_", "whsec_"),
    *("dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."),
    *("ABSK", "bedrock-api-key-", "JQQJ99", "+ASt", "ACDb", "APIM", "AZDO"),
    *("glffct-", "gloas-", "glimt-", "glwt-", "ops_eyJ", "sgp_", "AKCp", "cmVmdGtu", "pat-na", "pat-eu"),
    *("pscale_", "pnu_", "dt0", "HRKU-", "nfp_", "jina_"),
    *("sha256~", "CFPAT-", "AKID", "AKLT", "xkeysib-", "e2b_", "llx-", "EZAK", "EZTK", "tfp_", "sq0", ":AA", "k.eyJ", "sl.", "snyk_"),
    *("secret_", "ak-", "as-", "AQVN", "pa-", "oy2", "token-", "v1.0-", "local-"),
    *("squ_", "sqp_", "sqa_", "dbtc_", "dbtu_", "shippo_", "duffel_", "rdme_", "tk-us-", "k_org_", "blob_rw_", "xai-token-", "aph0_"),
    *("GR1348941", "glrtr-", "api-", "sdk-"),
    *("pypi-", "k_live_", "dckr_pat_", "dckr_oat_", "dapi", "SG.", "AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ya29.", "GOCSPX-", "1//0"),
    *("Q~", "eyJ"),
)
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
# A quotation mark as programs write it inside a text: escaped for Python and JSON once or more, by .NET, for HTML.
_QUOTE = r"(?:(?:\\{0,15}['\"]){1,3}|\\{1,15}(?:u00|x)2[27]|&(?:quot|apos|#0?3[49]|#[xX]2[27]);)"
# Escaped characters of values, as in the JSON of some libraries.
_ESCAPED = r"\\{1,15}(?:/|u00(?:2[BbFf]|3[Dd]))"
# Between a name and its value, and between the two in a tuple.
_BLOCK = r"(?:[|>][+-]?\n[ \t]{1,12})?"  # of YAML
_MEANS = rf"{_QUOTE}?\]?[ \t]{{0,12}}\s{{0,3}}(?::=|=>|[=:])\s{{0,3}}{_BLOCK}b?{_QUOTE}?"
_BESIDE = rf"{_QUOTE}(?:, ?| value=)b?{_QUOTE}"
_BEARER = re.compile(r"([bBtT](?i:(?<=b)(?<![a-z]b)(?:earer|asic)|(?<=t)(?<![a-z]t)oken) )[A-Za-z0-9._~+/=-]{20,}")
# An argument, or a line of a configuration file. Words of languages and of grammars are called tokens as well.
_NAMED = re.compile(
    rf"((?<![\w-])token{_QUOTE}?[ \t]{{0,12}}[=:][ \t]{{0,3}}b?{_QUOTE})"
    r"(?=[^\s'\"]{0,100}?\d)(?=[^\s'\"]{0,100}?[A-Za-z])"
    rf"[A-Za-z0-9+/=-]{{20,2000}}(?={_QUOTE})"
)
_IN_URL = re.compile(r"(:(?:\\{0,15}/){2})(?:[^/\s:'\"]{0,200}:[^/\s'\"]{1,2000}|(?=[^/\s@'\"]{0,100}\d)[A-Za-z0-9_.~%-]{20,2000})(?=@)")
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
    r"((?<![\w-])--(?:[a-z0-9]{1,20}-){0,4}(?:password|passwd|secret|jitconfig|(?:api|access|secret)-key)[ =](?:" + _QUOTE + ")?)"
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
_NETRC = re.compile(r"(?i)(\blogin\s{1,10}\S{1,100}\s{1,10}password\s{1,10})(?:(?!\\n)\S)+")
_SECRET_WORDS = (
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|_PAT|_AUTH|_PWD|CREDENTIALS"
    r"|(?:ACCESS|ADMIN|PRIVATE|ENCRYPTION|SIGNING|FERNET|MASTER|DEPLOY)_KEY)"
)
# As PyTorch's dumps and a shell's `env` write them. A value without a digit is more likely a name or a word.
_VARIABLE = re.compile(
    rf"((?<![A-Z0-9_])(?:(?<=setenv )|(?<=ENV )|(?<=set -x )|(?<=set -gx ))[A-Z0-9_]{{0,60}}{_SECRET_WORDS}[ \t]{{1,3}}"
    rf"|(?<=[a-z]\(){_QUOTE}[A-Z0-9_]{{0,60}}{_SECRET_WORDS}{_BESIDE}|(?<![A-Z0-9_])[A-Z0-9_]{{0,60}}{_SECRET_WORDS}{_MEANS})"
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
# The second form: homes that are mounted elsewhere, below an absolute path.
_HOME = re.compile(
    rf"/(?:{_PATH}(?:home|Users)/[^/\s'\":<>|]{{1,64}}(?=[/\s'\":]|\Z)"
    rf"|{_PATH}(?<![:/]/)(?:[\w.-]{{1,40}}/){{1,6}}(?:home|Users)/[^/\s'\":<>|]{{1,64}}(?=[/\s'\":]|\Z)|{_PATH}(?<!//)root(?=/))"
)
# As in the JSON of some libraries, such as pandas.
_ESCAPED_HOME = re.compile(
    r"(?<![\w.~/:-])(?:(?:\\{1,15}/[\w.-]{1,40}){0,6}\\{1,15}/(?:home|Users)\\{1,15}/[^/\\\s'\":<>|]{1,64}(?=[\\\s'\":]|\Z)"
    r"|\\{1,15}/root(?=\\{1,15}/))"
)
_WINDOWS_HOME = re.compile(r"(?:(?<!\w)|(?<=\\[abefnrtv0])|(?<=\\u[0-9a-fA-F]{4}))[A-Za-z]:\\+Users\\+[^\\\s'\":<>|]+")
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
    (_TOKENS, SECRET, tuple(part.casefold() for part in _IN_TOKENS)),
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
    (_PASSWORD, rf"\g<1>\g<2>\g<3>{SECRET}", ("passw", "passphrase", "pwd")),
    (_HOME, "~", ("/home/", "/users/", "/root/")),
    (_ESCAPED_HOME, "~", ("/home\\", "/users\\", "/root\\")),
    (_WINDOWS_HOME, "~", ("users",)),
    (_CACHE, "user", ("/torchinductor_",)),
    (_CLOUD_HOST, "host", ("ip-", ".internal")),
)
