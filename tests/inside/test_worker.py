"""What a worker says of a run beside how it ended."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bot.inside import worker  # noqa: E402


def test_numbers_of_a_gpu_count_and_its_start_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Generator:
        offset = 0

        def get_offset(self) -> int:
            return self.offset

    before = worker.generator_state()
    generator = Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    assert worker.generator_state() == before, "a GPU that nobody started is not asked"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert worker.generator_state() == before
    generator.offset = 4
    assert worker.generator_state() != before
