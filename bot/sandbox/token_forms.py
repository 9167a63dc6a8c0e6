"""The forms of tokens, as their issuers document them.

The pattern is bounded, or starts only where nothing of its kind precedes, so that a hostile text takes linear time.
"""

from __future__ import annotations

import re

# A token does not begin after a letter of a word, but may after an escape as `repr`, addresses and terminals write them.
BEHIND = (
    r"|(?<=\\[abefnrtv0])|(?<=\\x[0-9a-fA-F]{2})|(?<=\\u[0-9a-fA-F]{4})|(?<=\\U000[0-9a-fA-F]{5})|(?<=\\[0-3][0-7]{2})|(?<=%[0-9a-fA-F]{2})"
    r"|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m)|(?<=;[0-9]{3}m)"
)
TOKENS = re.compile(
    rf"(?:(?<![A-Za-z0-9]){BEHIND})(?:"
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
IN_TOKENS = (
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
