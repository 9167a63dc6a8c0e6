"""Sends requests to GitHub with patience: waits for what passes by itself, and treats anything else as an error at once."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

import requests
from github import Auth, Github, GithubException, RateLimitExceededException
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester, RequestsResponse
from tenacity import RetryCallState, Retrying, retry_if_exception

log = logging.getLogger(__name__)

ATTEMPTS = 6
# Seconds. GitHub asks for a minute after a limit without a stated duration, and for longer each time.
FIRST_WAIT, SECONDARY_WAIT = 1.0, 60.0
# Total waiting time of one client, including answers that did not come: the job must have time left to report that it gave up.
PATIENCE = 600.0
TIMEOUT = 30.0
# For one request without patience: GitHub works on a request for at most ten seconds, so one without an answer by then is not done later.
SHORT_TIMEOUT = 11.0
PAGE = 100
_PASSING = frozenset({429, 500, 502, 503, 504})
_LIMITED = frozenset({403, 429})
_LOST = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)
# The answers for a repository that was renamed or transferred; how often a request follows them.
_MOVED = frozenset({301, 302, 303, 307, 308})
_MOST_MOVES = 5


class GitHubError(Exception):
    """GitHub refused, or could not be reached however long we waited: `message`. `status` is null without an answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnusableAnswerError(Exception):
    """GitHub, or something in between, answered 200 with something it never means: nothing, half a JSON text, null, another type."""


class _MovedError(Exception):
    """The resource has moved to `location`; empty if GitHub does not say where."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def _unless_moved(answer: RequestsResponse) -> RequestsResponse:
    if answer.status in _MOVED:
        raise _MovedError({key.lower(): value for key, value in answer.getheaders()}.get("location", ""))
    return answer


class _Http(HTTPRequestsConnectionClass):
    """PyGithub's connection, which would follow a 301 without the query, and take a 307 for the answer."""

    def getresponse(self) -> RequestsResponse:
        return _unless_moved(super().getresponse())


class _Https(HTTPSRequestsConnectionClass):
    """The same, encrypted."""

    def getresponse(self) -> RequestsResponse:
        return _unless_moved(super().getresponse())


class _Plain(requests.Session):
    """Sends only what it is given. The requests library would replace our token by the machine's .netrc entry for a host, and even add
    that to a request without a token, so that whoever names a file would see what the machine's owner may see."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _unchanged

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Send no credentials to the target of a redirect."""
        prepared_request.headers.pop("Authorization", None)


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _headers(error: BaseException) -> Mapping[str, str]:
    given = error.headers if isinstance(error, GithubException) else None
    return {key.lower(): str(value) for key, value in (given or {}).items()}


def passing(error: BaseException) -> bool:
    """Whether the same request may succeed after `error`: a limit, a server error, a lost connection."""
    # half a JSON text is a ValueError in PyGithub's parser
    if isinstance(error, (*_LOST, UnusableAnswerError)):
        return True
    if isinstance(error, ValueError) and not isinstance(error, requests.RequestException):
        return True
    if isinstance(error, GithubException):
        headers = _headers(error)
        limited = isinstance(error, RateLimitExceededException) or "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0"
        return error.status in _PASSING or (error.status == 403 and limited)
    return False


def _told_time(headers: Mapping[str, str], name: str = "date") -> float | None:
    """When an answer with these `headers` was given, by GitHub's clock, or the time in another header with that `name`; None if they do not
    say."""
    try:
        return parsedate_to_datetime(headers[name]).timestamp()
    except (KeyError, ValueError, TypeError, IndexError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() and len(text) < 12 else None


def wait_for(error: BaseException | None, attempt: int, now: float) -> float:
    """Seconds to wait after the `attempt`-th failure (from 1), `error`, at the time `now` (seconds since the epoch), which is used if
    GitHub does not tell the time."""
    headers = _headers(error) if error is not None else {}
    wait = FIRST_WAIT * 2.0 ** (attempt - 1)
    after, reset = _number(headers.get("retry-after")), _number(headers.get("x-ratelimit-reset"))
    given, until = _told_time(headers), _told_time(headers, "retry-after")
    if after is not None:
        wait = after
    elif headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        wait = max(wait, reset - (now if given is None else given) + 1)
    elif isinstance(error, GithubException) and error.status in _LIMITED:
        wait = SECONDARY_WAIT * 2.0 ** (attempt - 1)
    if given is not None and until is not None and until - given <= PATIENCE:  # HTTP allows a time instead of seconds
        wait = max(wait, until - given)
    return max(wait, 0.0)


class Transport:
    """PyGithub's requester for `api_url` and `token` with our patience. PyGithub's own retry is off: it posts twice after a 502.

    `sleep` waits for the given seconds, `now` is the time in seconds since the epoch. With `hasty`, each request is made once.
    """

    def __init__(
        self,
        token: str,
        api_url: str = "https://api.github.com",
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        hasty: bool = False,
    ) -> None:
        Requester.injectConnectionClasses(_Http, _Https)
        timeout = int(SHORT_TIMEOUT if hasty else TIMEOUT)
        self._requester = Github(
            auth=Auth.Token(token), base_url=api_url, retry=None, timeout=timeout, user_agent="torch-minify", per_page=PAGE,
            seconds_between_requests=0, seconds_between_writes=0,
        ).requester  # fmt: skip
        Requester.resetConnectionClasses()
        self._api_url, self._token = api_url.rstrip("/"), token
        self._sleep, self._now = sleep, now
        self._attempts = 1 if hasty else ATTEMPTS
        self._waited = self._ahead = 0.0

    def at_once(self) -> Transport:
        """One that asks once, and waits for no limit."""
        return Transport(self._token, self._api_url, sleep=self._sleep, now=self._now, hasty=True)

    def now(self) -> float:
        """The time (seconds since the epoch) by GitHub's clock, as of its last answer; before that, by this machine's."""
        return self._now() + self._ahead

    def _patiently(self, what: str, ask: Callable[[], Any]) -> Any:
        def wait(state: RetryCallState) -> float:
            return wait_for(state.outcome.exception() if state.outcome else None, state.attempt_number, self._now())

        def stop(state: RetryCallState) -> bool:
            return state.attempt_number >= self._attempts or self._waited + state.upcoming_sleep > PATIENCE

        def once() -> Any:
            began = self._now()
            try:
                return ask()
            except RecursionError as error:
                raise UnusableAnswerError("an answer that is nested too deep") from error
            except Exception:
                self._waited += max(self._now() - began, 0.0)
                raise

        def before(state: RetryCallState) -> None:
            self._waited += state.upcoming_sleep
            error = state.outcome.exception() if state.outcome else None
            log.warning("%s: %s; again in %.0f s", what, _words(error), state.upcoming_sleep)

        try:
            return Retrying(retry=retry_if_exception(passing), wait=wait, stop=stop, before_sleep=before, sleep=self._sleep, reraise=True)(
                once
            )
        except GithubException as error:
            raise GitHubError(f"{what}: {_words(error)}", error.status) from error
        except (requests.RequestException, ValueError, UnusableAnswerError) as error:
            raise GitHubError(f"{what}: {_words(error)}") from error

    def ask(
        self,
        verb: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        body: Any = None,
        kind: type[Any] | tuple[type[Any], ...] = dict,
    ) -> Any:
        """The JSON that GitHub answers to `verb` (an HTTP method) on `path`, with query `parameters` and a JSON `body`.

        Everything requested with this must be safe to repeat. An answer that is not of type `kind` does not count as an answer; `object`:
        it is not checked. Raises GitHubError if GitHub refused, or did not answer after all attempts.
        """
        return self._answered(verb, path, parameters, body, kind)[1]

    def _answered(
        self, verb: str, path: str, parameters: Mapping[str, Any] | None, body: Any, kind: type[Any] | tuple[type[Any], ...]
    ) -> tuple[Mapping[str, Any], Any]:
        """What `ask` returns, with the headers."""

        def once() -> tuple[Mapping[str, Any], Any]:
            headers, data = self._follow(verb, path, parameters, body)
            return headers, _of_kind(data, kind)

        return self._patiently(f"{verb} {path}", once)  # type: ignore[no-any-return]

    def _follow(self, verb: str, path: str, parameters: Mapping[str, Any] | None, body: Any) -> tuple[Mapping[str, Any], Any]:
        """Headers and JSON of one answer, requested in the same way wherever GitHub has moved the resource, but never from another host."""
        where = path
        for _ in range(_MOST_MOVES):
            try:
                headers, data = self._requester.requestJsonAndCheck(verb, where, parameters=dict(parameters or {}), input=body)
                told = _told_time(headers)
                self._ahead = self._ahead if told is None else told - self._now()
                return headers, data
            except _MovedError as moved:
                location = urljoin(self._api_url + where, moved.location)
                if not moved.location or not location.startswith(self._api_url + "/"):
                    raise GitHubError(f"{verb} {path}: moved to another place: {location[:200]}", 301) from None
                where, parameters = location.removeprefix(self._api_url), None
        raise GitHubError(f"{verb} {path}: moved {_MOST_MOVES} times", 301)

    def find(self, path: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """What `ask` returns for `path` with query `parameters`; None if there is nothing (404)."""
        try:
            return self.ask("GET", path, parameters)
        except GitHubError as error:
            if error.status == 404:
                return None
            raise

    def viewer(self) -> str | None:
        """The login of the token's owner according to the GraphQL API; None if that does not tell."""
        try:
            answer = self.ask("POST", self._requester.graphql_url, body={"query": "query { viewer { login } }"})
            return str(answer["data"]["viewer"]["login"])
        except (GitHubError, KeyError, TypeError):  # its errors are answers with 200, of which any part may be null
            return None

    def create(self, path: str, body: Any, find: Callable[[], Any]) -> Any:
        """POST `body` to `path` to create what must not exist twice.

        After a failure, `find` checks whether it exists by now, since the answer may have been lost. Raises GitHubError if GitHub refused,
        or did not answer after all attempts.
        """
        failed = False

        def once() -> Any:
            nonlocal failed
            if failed and (found := find()) is not None:
                return found
            failed = True
            _, data = self._follow("POST", path, None, body)
            return _of_kind(data, dict)

        return self._patiently(f"POST {path}", once)

    def pages(self, path: str, parameters: Mapping[str, Any] | None = None, key: str = "", limit: int = 10) -> list[Any]:
        """The items of at most `limit` pages of `path` with query `parameters`; `key` names the list if the answer is an object.

        A page may be short even if others follow: hidden items are left out of it, and a server may allow fewer per page.
        """
        items: list[Any] = []
        for page in range(1, limit + 1):
            wanted = {**(parameters or {}), "per_page": PAGE, "page": page}
            headers, answer = self._answered("GET", path, wanted, None, dict if key else list)
            found = answer.get(key, []) if key else answer
            if not isinstance(found, list):
                raise GitHubError(f"GET {path}: {key} is no list")
            items += found
            if len(found) < PAGE and 'rel="next"' not in str(headers.get("link", "")):
                break
        return items

    def download(self, path: str, limit: int) -> bytes:
        """The last `limit` bytes of the file to which GitHub redirects from `path`. Only GitHub's API gets the token. Raises GitHubError
        if GitHub refused, or did not answer after all attempts."""

        def once() -> bytes:
            headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "torch-minify", "Accept": "application/vnd.github+json"}
            url = self._api_url + path
            for _ in range(_MOST_MOVES):
                # the new place of a renamed repository; stored files may be on the same host, but are not part of the API
                if not url.startswith((f"{self._api_url}/repos/", f"{self._api_url}/repositories/")):
                    headers = {"User-Agent": "torch-minify"}
                answer = _Plain().get(url, headers=headers, allow_redirects=False, stream=True, timeout=TIMEOUT)
                if not answer.is_redirect:
                    break
                url = urljoin(url, answer.headers["location"])
            else:
                raise GitHubError(f"GET {path}: moved {_MOST_MOVES} times", 301)
            _check(answer)
            if answer.headers.get("content-type", "").startswith("text/html"):  # neither a log nor an archive is
                raise UnusableAnswerError("an answer that cannot be used: a page of HTML")
            kept = bytearray()
            for chunk in answer.iter_content(1 << 16):
                kept += chunk
                if len(kept) > 2 * limit:
                    del kept[:-limit]
            return bytes(kept[-limit:])

        return self._patiently(f"GET {path}", once)  # type: ignore[no-any-return]

    def fetch(self, url: str, limit: int) -> bytes | None:
        """The file at the public address `url`, requested without our token; None if it has more than `limit` bytes. Raises GitHubError if
        it is not available, or not within all attempts."""

        def once() -> bytes | None:
            # requests follows GitHub's redirect to its storage; these headers contain nothing that must stay with GitHub
            with _Plain().get(url, headers={"User-Agent": "torch-minify"}, stream=True, timeout=TIMEOUT) as answer:
                _check(answer)
                kept = bytearray()
                for chunk in answer.iter_content(1 << 16):
                    kept += chunk
                    if len(kept) > limit:
                        return None
                return bytes(kept)

        return self._patiently(f"GET {url}", once)  # type: ignore[no-any-return]

    def upload(self, url: str, content: bytes) -> Any:
        """POST the bytes `content` to `url`, where a release accepts its assets; returns GitHub's JSON answer. Raises GitHubError if it
        refused, or did not answer after all attempts."""
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": "torch-minify", "Content-Type": "application/octet-stream"}

        def once() -> Any:
            answer = _Plain().post(url, data=content, headers=headers, timeout=2 * TIMEOUT)
            _check(answer)
            return answer.json()

        return self._patiently(f"POST {url}", once)


def _of_kind(data: Any, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    # PyGithub returns text that is not JSON as {"data": the text}
    if not isinstance(data, kind) or (isinstance(data, dict) and data.keys() <= {"data", "url"} and isinstance(data.get("data"), str)):
        raise UnusableAnswerError(f"an answer that cannot be used: {str(data)[:60]!r}")
    return data


def _check(answer: requests.Response) -> None:
    if answer.status_code >= 400:
        try:
            said = json.loads(next(answer.iter_content(1 << 16), b""))
        except ValueError:
            said = None
        # some limits can only be recognized by their message
        told = said if isinstance(said, dict) and isinstance(said.get("message"), str) else {"message": answer.reason}
        raise Requester.createException(answer.status_code, dict(answer.headers), told)
    if answer.status_code not in (200, 201):  # an answer without content would be taken for an empty file
        raise UnusableAnswerError(f"an answer that cannot be used: {answer.status_code}")


def _words(error: BaseException | None) -> str:
    """An error on one line, without the text of GitHub's HTML pages."""
    if isinstance(error, GithubException):
        said = error.data.get("message") if isinstance(error.data, dict) else None
        return " ".join(f"{error.status} {said or ''}".split())[:300]
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
