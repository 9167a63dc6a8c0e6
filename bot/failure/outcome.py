"""What happened when a script ran: raw facts, before anybody decides what they mean."""

from __future__ import annotations

from bot.models.failure import Model


class Outcome(Model):
    """One run of one script.

    `status`: ok (ran to its end), raised (an uncaught exception; `text` ends in the traceback as Python prints it),
    exit (ended with a non-zero status without one), signal (died of `signal`; `text` holds faulthandler's dump),
    timeout (`text` holds faulthandler's dump of that moment), memory (exceeded its limit), stopped (a warm worker left the
    compiler on purpose, after the last phase in which the signature could show itself), infra (our own fault, or the machine's).
    """

    status: str
    text: str = ""
    exit: int | None = None
    signal: str | None = None
    calls: int = 0  # compile or export calls reached
    raised: int = 0  # of these, under the eager control, how many raised
    asked: int = 0  # under that control, how often the program asked whether it is being compiled, in code that would be compiled
    unmade: int = 0  # under that control, how often the program looked at what only the compiler makes, or gave it a backend of its own
    error: str = ""  # under that control, class and message of the first such exception, without its numbers
    seconds: float = 0.0
    elapsed: float = 0.0  # on a busy machine more than `seconds`, which is the run's own time; 0 if it was not measured
    stdout: str = ""  # what a process of its own printed there; empty if that is long
    cut: bool = False  # for a timeout: the budget ended it before its own time was over

    def end(self, most: int) -> str:
        """The last lines of `text` that fit into `most` characters, or the end of the last line if not even that one does."""
        text = self.text.strip()
        if len(text) <= most:
            return text
        lines = text[-most - 1 :].partition("\n")[2]
        return lines or f"… {text[-most:]}"
