"""What the two sides of a sandbox say to each other."""

from __future__ import annotations

import json

import pytest

from bot.sandbox.order import Order, ProcessReport, decode, read_report


@pytest.mark.parametrize(
    "order",
    [
        Order(),
        Order(("python", "-c", "x"), {"HOME": "/h"}, "/", uid=70_000, gid=70_001, groups=(3,), read=("/",), limits={"CPU": 3}, layers=()),
        Order(network=True, gpu=True, confined=False, sole=False, keep=(0, 5), layers=("uid",), named=("/a\n",), must_reach=("/b",)),
    ],
)
def test_an_order_comes_back(order: Order) -> None:
    line = order.encode()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == order


def test_a_report_comes_in_pieces() -> None:
    pieces = [{"layers": ["uid", "seccomp"], "unreachable": ["/a"]}, {"ended": "disk", "of tomorrow": 1}]
    said = b"".join(json.dumps(piece).encode() + b"\n" for piece in pieces)
    assert read_report(said) == ProcessReport(("uid", "seccomp"), ("/a",), "", "disk")
    assert read_report(b"") == ProcessReport()
    assert read_report(b'{"failed": "no"}\n{"failed": "yes"}\n').failed == "yes"
