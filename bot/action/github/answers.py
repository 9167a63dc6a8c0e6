"""Reads GitHub's answers: an unexpected answer is an error of GitHub's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from bot.action.github.resources import Resource
from bot.action.github.transport import GitHubError

R = TypeVar("R", bound=Resource)


def read(kind: type[R], data: Any) -> R:
    """The `data` of an answer as the resource `kind`. Raises GitHubError if it is not one."""
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise GitHubError(f"GitHub's answer is no {kind.__name__}: {error.error_count()} fields are wrong") from error


@contextmanager
def wrong_keys() -> Iterator[None]:
    """An answer without the usual keys is an error of GitHub's, not of ours: raises GitHubError."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise GitHubError(f"GitHub's answer lacks {error}") from error


@contextmanager
def missing() -> Iterator[None]:
    """What GitHub does not have, or not any more, is passed over: no GitHubError for a 404 or a 410."""
    try:
        yield
    except GitHubError as error:
        if error.status not in (404, 410):
            raise


def account_of(data: Mapping[str, Any]) -> Any:
    """The account number whose permission an answer (`data`) reports; None if it does not say."""
    user = data.get("user")
    return user.get("id") if isinstance(user, dict) else None


def number_of(data: Mapping[str, Any]) -> float:
    """The number of an issue (`data`); one without a number comes after all others."""
    number = data.get("number")
    return number if isinstance(number, int) else math.inf
