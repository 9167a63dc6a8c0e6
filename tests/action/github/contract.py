"""GitHub's own description of its API, against which every request that is sent is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

import requests
from openapi_core import Config, OpenAPI
from openapi_core.testing import MockRequest

GITHUB = "https://api.github.com"


class Contract:
    """`checked` are the requests that were compared, as `GET /repos/...`; the first that breaks the contract raises."""

    def __init__(self, description: Path) -> None:
        spec = json.loads(description.read_text(encoding="utf-8"))
        # its words speak of a range in the syntax of the search, as `gh run list --created` sends it; its format is that of a moment
        moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        spec["components"]["parameters"]["created"]["schema"] = {"type": "string", "pattern": rf"^(?:[<>]=?)?{moment}$"}
        # the checker of the description itself is left out: it takes a minute and GitHub's business is GitHub's
        self._api = OpenAPI.from_dict(spec, config=Config(spec_validator_cls=None))
        self.checked: list[str] = []

    def check(self, verb: str, url: str, body: bytes | str | None, content_type: str = "application/json") -> None:
        """Raises an exception of `openapi_core` where GitHub would not know the request."""
        parts = urlsplit(url)
        if parts.path == "/graphql":
            # not of this API: the one question that is asked there is that of octokit/graphql-schema, schema.graphql, `type Query`
            assert (verb, json.loads(body or "")) == ("POST", {"query": "query { viewer { login } }"})
            return
        # the description has one place for a path with slashes; GitHub takes them as they are
        path = re.sub(r"(?<=/contents/).+|(?<=/git/ref/).+", lambda found: found[0].replace("/", "%2F"), parts.path)
        data = body.encode() if isinstance(body, str) else body
        asked = MockRequest(
            GITHUB,
            verb.lower(),
            path,
            args=dict(parse_qsl(parts.query)),
            data=data or None,
            content_type=content_type if data else "",
        )
        self._api.validate_request(asked)
        self.checked.append(f"{verb} {parts.path}")

    @contextmanager
    def watching(self, base: str) -> Iterator[Contract]:
        """Check all that `requests` sends to `base` (PyGithub sends with it), until the end of the block."""
        send = requests.Session.send

        def checked(session: requests.Session, request: requests.PreparedRequest, **how: Any) -> requests.Response:
            url = str(request.url)
            if url.startswith(base) and not urlsplit(url).path.startswith(("/_blob/", "/_test/")):
                self.check(str(request.method), url, request.body, str(request.headers.get("Content-Type", "application/json")))
            return send(session, request, **how)

        with mock.patch.object(requests.Session, "send", checked):
            yield self
