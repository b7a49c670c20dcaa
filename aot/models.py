# SPDX-License-Identifier: Apache-2.0
"""What `--model` can name: a bundled example, a Python file, an exported program, a torchvision model.

All become one `Model`: a module or an exported program, with example inputs and what else its file says.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.export import ExportedProgram

from aot.model_names import TORCHVISION, check_source
from report.errors import EnvironmentError_, UsageError
from report.preprocess import ImagePreprocessing


@dataclass(frozen=True)
class Model:
    """A model ready for export.

    Attributes:
        name: stem of the files that compilation writes.
        sha256: hash of parameters, buffers and source, the model's identity in reports.
        module: the model in eval mode, None when it came as `exported`.
        inputs, kwargs: example inputs, in the call order of `forward`.
        labels: class names, best known as the classifier's output order; empty when there are none.
    """

    name: str
    sha256: str
    inputs: tuple[Any, ...]
    module: torch.nn.Module | None = None
    exported: ExportedProgram | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    preprocessing: ImagePreprocessing | None = None


def load_model(source: str, model_input: str | None) -> Model:
    """Load the model that `source` names; `model_input` is a .pt file that replaces its example inputs.

    Raises:
        UsageError: nothing of that name, or a file without the attributes a model file needs.
        EnvironmentError_: ``torchvision:NAME`` without torchvision.
    """
    inputs = _load_inputs(model_input) if model_input else None
    return _loader(source)(source, inputs)


def _loader(source: str) -> Callable[[str, tuple[Any, ...] | None], Model]:
    if source.startswith(TORCHVISION):
        return _from_torchvision
    check_source(source)
    loaders = {".py": _from_file, ".pt2": _from_exported, ".pt": _from_pickle, ".pth": _from_pickle}
    return loaders.get(Path(source).suffix, _from_example)


def _from_example(name: str, inputs: tuple[Any, ...] | None) -> Model:
    return _from_module(name, importlib.import_module(f"examples.{name}"), inputs)


def _from_file(source: str, inputs: tuple[Any, ...] | None) -> Model:
    """Execute a model file as `--model FILE.py` of ExecuTorch's own compiler script does."""
    path = Path(source)
    spec = importlib.util.spec_from_file_location(f"_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError("cannot be imported", where=source)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(
            "the model file raises an error", where=source, why=f"{type(error).__name__}: {error}"
        ) from error
    return _from_module(path.stem, module, inputs)


def _from_module(name: str, file: ModuleType, inputs: tuple[Any, ...] | None) -> Model:
    """The model that a Python module defines by `ModelUnderTest` and `ModelInputs`."""
    where = str(file.__file__)
    module = getattr(file, "ModelUnderTest", None)
    if not isinstance(module, torch.nn.Module):
        raise UsageError("defines no torch.nn.Module called ModelUnderTest", where=where)
    if inputs is None and not hasattr(file, "ModelInputs"):
        raise UsageError(
            "defines no ModelInputs",
            where=where,
            hint="add a tuple of tensors, or give --model_input FILE.pt",
        )
    return Model(
        name=name,
        sha256=_digest(module.state_dict(), Path(where).read_bytes()),
        inputs=inputs if inputs is not None else _as_tuple(file.ModelInputs, where),
        module=_ready(module),
        kwargs=dict(getattr(file, "ModelKwargs", {})),
        labels=tuple(getattr(file, "Labels", ())),
        preprocessing=getattr(file, "Preprocessing", None),
    )


def _from_exported(source: str, inputs: tuple[Any, ...] | None) -> Model:
    try:
        exported = torch.export.load(source)
    except Exception as error:
        raise UsageError("not a readable exported program", where=source, why=str(error)) from error
    kwargs: Mapping[str, Any] = {}
    if inputs is None:
        if exported.example_inputs is None:
            raise UsageError(
                "the program holds no example inputs", where=source, hint="give --model_input FILE.pt"
            )
        inputs, kwargs = exported.example_inputs
    sha256 = hashlib.sha256(Path(source).read_bytes()).hexdigest()
    return Model(Path(source).stem, sha256, tuple(inputs), exported=exported, kwargs=kwargs)


def _from_pickle(source: str, inputs: tuple[Any, ...] | None) -> Model:
    """A whole module saved by `torch.save`: unpickling runs the file's code, as torch.load says."""
    if inputs is None:
        raise UsageError("holds no example inputs", where=source, hint="give --model_input FILE.pt")
    try:
        module = torch.load(source, weights_only=False)
    except Exception as error:
        raise UsageError("not a readable torch file", where=source, why=str(error)) from error
    if not isinstance(module, torch.nn.Module):
        raise UsageError(
            f"holds a {type(module).__name__}, not a module",
            where=source,
            hint="save the module itself, or write a model file with ModelUnderTest",
        )
    data = Path(source).read_bytes()
    return Model(Path(source).stem, _digest({}, data), inputs, module=_ready(module))


def _from_torchvision(source: str, inputs: tuple[Any, ...] | None) -> Model:
    name = source.removeprefix(TORCHVISION)
    try:
        from torchvision import models
    except ImportError as error:
        raise EnvironmentError_(
            f"cannot load {source}",
            why="torchvision is not installed",
            hint="pip install torchvision, or --model mobilenet_v2, which needs none",
        ) from error
    if name not in models.list_models():
        near = get_close_matches(name, models.list_models(), n=1)
        raise UsageError(
            f"torchvision has no model {name!r}",
            where="--model",
            hint=f"did you mean {near[0]}?" if near else "",
        )
    torch.manual_seed(0)
    module = models.get_model(name, weights=None).eval()
    example = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    return Model(name, _digest(module.state_dict(), b""), inputs or (example,), module=module)


def _ready(module: torch.nn.Module) -> torch.nn.Module:
    """`module` in eval mode, without the guards that `ExportedProgram.module()` adds.

    Arm's passes cannot read the guards; an exported module has its mode fixed and refuses `eval`.
    """
    if not isinstance(module, torch.fx.GraphModule):
        return module.eval()
    if hasattr(module, "_guards_fn"):
        for node in list(module.graph.nodes):
            if node.op == "call_module" and node.target == "_guards_fn":
                module.graph.erase_node(node)
        delattr(module, "_guards_fn")
        module.recompile()
    with contextlib.suppress(NotImplementedError):
        module.eval()
    return module


def _load_inputs(path: str) -> tuple[Any, ...]:
    if not Path(path).is_file():
        raise UsageError(f"no such file: {path}", where="--model_input")
    return load_tensors(Path(path))


def load_tensors(path: Path) -> tuple[Any, ...]:
    """The tensor, or tuple or list of tensors, that `torch.save` wrote to `path`.

    Raises:
        UsageError: not such a file.
    """
    try:
        return _as_tuple(torch.load(path, weights_only=True), str(path))
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            "not a readable .pt file of tensors", where=str(path), why=str(error).splitlines()[0]
        ) from error


def _as_tuple(value: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (tuple, list)):
        return tuple(value)
    raise UsageError(
        f"holds a {type(value).__name__}, not tensors",
        where=where,
        hint="save a tensor or a tuple of tensors",
    )


def _digest(state: Mapping[str, Any], source: bytes) -> str:
    """SHA-256 over the source and every parameter and buffer, by name, dtype, shape and bytes."""
    digest = hashlib.sha256(source)
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            flat = value.detach().cpu().contiguous().reshape(-1)
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
