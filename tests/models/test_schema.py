"""The published schema of result.json is the model's."""

import json
from pathlib import Path

from bot.models.result import Result

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "result.schema.json"


def test_schema_is_current() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == Result.model_json_schema(by_alias=True, mode="serialization")
