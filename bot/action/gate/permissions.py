"""Whether an event may start something: a pure function of what GitHub says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.action.github.resources import User

WRITERS = ("admin", "write")


@dataclass(frozen=True)
class Head:
    """The head of the pull request whose code would run. `gone`: its repository was deleted. `queued`: a merge queue made it."""

    from_fork: bool
    pushed_at: datetime | None
    gone: bool = False
    queued: bool = False


@dataclass(frozen=True)
class ForkPolicy:
    """The environment in which code from forks may run, and whether runs there need approval."""

    environment: str = ""
    protected: bool = False


class Allowed:
    """Go on."""


@dataclass(frozen=True)
class Refused:
    """No, and why: our words, for people."""

    reason: str


class Ignored:
    """Nothing is to be said: a bot, or somebody who edited another's comment."""


def may_ask(author: User, sender: User, permission: str) -> Allowed | Refused | Ignored:
    """Whether `author`, who has that `permission`, may have code run by a comment about which `sender` sent the event.

    The sender must be the author: for an edit, the sender is the editor, who would lend their own rights to somebody else's words.
    """
    if author.is_bot or author.id != sender.id or author.id == 0:
        return Ignored()
    if permission not in WRITERS:
        return Refused(
            "Running code takes write permission for this repository, which you do not have here. "
            "Somebody who has it can write the same command."
        )
    return Allowed()


def may_run(head: Head, policy: ForkPolicy, asked_at: datetime | None) -> Allowed | Refused:
    """Whether the code at `head` of a pull request may run under `policy`, asked for at `asked_at` (None: not by a person).

    A commit that was pushed after the request is not what the person saw; GitHub reports times in whole seconds. If it does not say when a
    fork's commit was pushed, it is refused: nobody with write permission vouches for it.
    """
    if head.pushed_at is not None and asked_at is not None and head.pushed_at >= asked_at:
        return Refused("New commits were pushed after the request, or in the same second. Look at them, then ask again.")
    if head.gone:
        return Refused("The repository that this code comes from is gone. Push the commits to a branch that exists, then ask again.")
    if not head.from_fork:
        return Allowed()
    comes = "What the merge queue tried may hold code from a fork" if head.queued else "This pull request comes from a fork"
    if not policy.environment:
        return Refused(
            f"{comes}, and this repository does not run code from forks. "
            "It can allow that with the input `fork-environment` and an environment of that name with required reviewers."
        )
    if not policy.protected:
        return Refused(
            f"{comes}. The environment that `fork-environment` names does not exist or has no required "
            "reviewers, so nobody would look at the code before it runs."
        )
    if head.pushed_at is None:
        return Refused(f"{comes}, and GitHub does not say when its last commit was pushed.")
    return Allowed()
