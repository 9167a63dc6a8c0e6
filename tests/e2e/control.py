"""Runs a case without the product, for the check of the cases themselves. Not the product's own controls: these check them.

`control.py eager SCRIPT [ARGS...]`: with the compiler taken out. `torch.compile` becomes the identity, an exported program's
`module()` the module, an AOTInductor package the module.

`control.py numbers SCRIPT [ARGS...]`: as it is, and every compiled call is made once more in eager, from the same state of
the random numbers; the first difference ends the run with an AssertionError.
"""

import runpy
import sys

import torch
import torch._inductor


class Exported:
    def __init__(self, module):
        self._module = module

    def module(self, *args, **kwargs):
        return self._module


class Packages:
    """Stands in for the two AOTInductor functions; `beside(module, path, ...)` makes what is called in the end."""

    def __init__(self, package, beside):
        self._package, self._beside = package, beside
        self._modules = {}
        self._left = {}

    def compile(self, exported, *args, **kwargs):
        path = self._package(exported, *args, **kwargs)
        self._modules[path] = exported.module()
        self._left[path] = exported
        return path

    def load(self, path, *args, **kwargs):
        self._left.pop(path, None)
        return self._beside(self._modules[path], path, *args, **kwargs)

    def load_the_rest(self):
        for path, exported in list(self._left.items()):
            self.load(path)(*exported.example_inputs[0], **exported.example_inputs[1])


def compared(compiled, eager):
    def call(*args, **kwargs):
        state = torch.get_rng_state()
        expected = eager(*args, **kwargs)
        torch.set_rng_state(state)
        actual = compiled(*args, **kwargs)
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3, equal_nan=True)
        return actual

    return call


def take_out():
    real = torch.compile

    def identity(model=None, **kwargs):
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            return real(model, **kwargs)  # higher-order operations are compiled to run in eager, by a backend that compiles nothing
        return model if model is not None else (lambda function: function)

    torch.compile = identity
    torch.export.export = lambda module, *args, **kwargs: Exported(module)
    packages = Packages(lambda exported, **_: f"package of {id(exported)}", lambda module, path: module)
    torch._inductor.aoti_compile_and_package, torch._inductor.aoti_load_package = packages.compile, packages.load
    return lambda: None


def compare():
    real = torch.compile
    torch._inductor.config.fallback_random = True

    def checked(model=None, **kwargs):
        if model is None:
            return lambda function: checked(function, **kwargs)
        return compared(real(model, **kwargs), model)

    torch.compile = checked
    packages = Packages(
        torch._inductor.aoti_compile_and_package,
        lambda module, path, load=torch._inductor.aoti_load_package: compared(load(path), module),
    )
    torch._inductor.aoti_compile_and_package, torch._inductor.aoti_load_package = packages.compile, packages.load
    return packages.load_the_rest


if __name__ == "__main__":
    finish = {"eager": take_out, "numbers": compare}[sys.argv[1]]()
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    finish()
