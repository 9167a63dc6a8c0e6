"""Names that `torch` and `torch.ops.aten` have in common (torch 2.13): called with the same positional arguments."""

_NAMES = """
_NAMES
"""
TORCH_FUNCTIONS = frozenset(_NAMES.split())
