# SPDX-License-Identifier: Apache-2.0
"""Quantise and dequantise kernels.

quantized_decomposed is compared with ExecuTorch's kernels; cortex_m with the host reference, which is what
Arm's firmware computes (tests/fvp/test_quantize_virtual.py).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from kernel_host import ROOT, SCALAR_TYPES, Argument, Out, ProgramBuilder, assert_same, check, run_ours

from fvp.host.kernels import dequantize_per_tensor, helium_quantize_per_tensor
from fvp.virtual.tools import find_qemu

LIMITS = {
    torch.int8: (-128, 127),
    torch.uint8: (0, 255),
    torch.int16: (-32768, 32767),
    torch.int32: (-(2**31), 2**31 - 1),
}
SCALES = (0.1, 1.0, 0.0078125, 3.7e-05)


def _hard(count: int, scale: float, widest: float = 6.0) -> torch.Tensor:
    """Multiples of half the scale (ties), their neighbours, values far out of range, zeros, infinities."""
    ties = ((np.arange(count) % 600 - 300) * (scale / 2)).astype(np.float32)
    rng = np.random.default_rng(1)
    wide = (rng.choice([-1, 1], count) * 10 ** rng.uniform(-6, widest, count)).astype(np.float32)
    up, down = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
    special = np.array([0.0, -0.0, np.inf, -np.inf], np.float32) if widest > 6 else np.zeros(4, np.float32)
    return torch.from_numpy(np.concatenate([ties, up, down, wide, special]))


def _code(dtype: torch.dtype, scale: float, zero_point: int) -> list[Argument]:
    return [scale, zero_point, *LIMITS[dtype], SCALAR_TYPES[dtype]]


@pytest.mark.parametrize("dtype", LIMITS)
def test_quantize_per_tensor(dtype: torch.dtype) -> None:
    builder, names = ProgramBuilder(), []
    for scale in SCALES:
        for zero_point in (0, 3) if dtype != torch.uint8 else (0, 128):
            x = _hard(613, scale)
            out = Out(tuple(x.shape), dtype)
            builder.call(
                "quantized_decomposed::quantize_per_tensor.out", x, *_code(dtype, scale, zero_point), out
            )
            names.append(f"{dtype} {scale} {zero_point}")
    check(builder, names)


def test_quantize_saturates_beyond_int64() -> None:
    """Where ExecuTorch's C++ is undefined, our kernel saturates."""
    x = torch.tensor([1e30, -1e30, float("inf"), -float("inf")])
    builder = ProgramBuilder()
    out = Out((4,), torch.int8)
    builder.call("quantized_decomposed::quantize_per_tensor.out", x, *_code(torch.int8, 0.1, 3), out)
    assert run_ours(builder).outputs[0].tolist() == [127, -128, 127, -128]


@pytest.mark.parametrize("dtype", LIMITS)
def test_dequantize_per_tensor(dtype: torch.dtype) -> None:
    builder, names = ProgramBuilder(), []
    low, high = LIMITS[dtype]
    codes = torch.from_numpy(np.random.default_rng(2).integers(low, high, 400, endpoint=True)).to(dtype)
    for scale in SCALES:
        for zero_point in (0, 3):
            out = Out((400,), torch.float32)
            arguments = [*_code(dtype, scale, zero_point), None]
            builder.call("quantized_decomposed::dequantize_per_tensor.out", codes, *arguments, out)
            names.append(f"{dtype} {scale} {zero_point}")
    check(builder, names)


def test_scale_and_zero_point_in_tensors() -> None:
    scale, zero_point = torch.tensor([0.05], dtype=torch.float64), torch.tensor([3])
    rest = [*LIMITS[torch.int8], SCALAR_TYPES[torch.int8]]
    builder = ProgramBuilder()
    x = _hard(100, 0.05)
    out = Out(tuple(x.shape), torch.int8)
    builder.call("quantized_decomposed::quantize_per_tensor.Tensor_out", x, scale, zero_point, *rest, out)
    codes = torch.arange(-128, 128).to(torch.int8)
    real = Out((256,), torch.float32)
    name = "quantized_decomposed::dequantize_per_tensor.Tensor_out"
    builder.call(name, codes, scale, zero_point, *rest, None, real)
    check(builder, ["quantize", "dequantize"])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_per_channel(axis: int) -> None:
    shape = (3, 4, 5)
    channels = shape[axis]
    scales = torch.linspace(0.01, 0.3, channels, dtype=torch.float64)
    zero_points = torch.arange(channels) - 2
    rest = [axis, *LIMITS[torch.int8], SCALAR_TYPES[torch.int8]]
    builder = ProgramBuilder()
    x = _hard(20, 0.1)[:60].reshape(shape) if axis else torch.randn(shape)
    builder.call(
        "quantized_decomposed::quantize_per_channel.out",
        x,
        scales,
        zero_points,
        *rest,
        Out(shape, torch.int8),
    )
    codes = torch.arange(60).reshape(shape).to(torch.int8)
    for offsets in (zero_points, None):
        name = "quantized_decomposed::dequantize_per_channel.out"
        builder.call(name, codes, scales, offsets, *rest, None, Out(shape, torch.float32))
    check(builder, ["quantize", "dequantize", "dequantize without zero points"])


def test_memory_order_is_kept() -> None:
    x = _hard(60, 0.1)[:120].reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    out = Out((2, 3, 4, 5), torch.int8, (0, 2, 3, 1))
    builder = ProgramBuilder()
    builder.call("quantized_decomposed::quantize_per_tensor.out", x, *_code(torch.int8, 0.1, 3), out)
    builder.call("cortex_m::quantize_per_tensor.out", x, *_code(torch.int8, 0.1, 3), out)
    run = run_ours(builder)
    assert run.status == 0, run.log
    expected = helium_quantize_per_tensor(x, 0.1, 3, -128, 127, 1)
    assert_same(run.outputs[1], expected, "cortex_m")
    plain = torch.clamp(torch.round(x * (torch.tensor(1.0) / torch.tensor(0.1))) + 3, -128, 127).to(
        torch.int8
    )
    assert_same(run.outputs[0], plain, "quantized_decomposed")


CORTEX_M = [(0.1, 3), (0.0078125, 0), (0.0235294122248888, -128), (3.7e-05, 12), (1.0, 127)]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
def test_cortex_m_equals_the_host_reference(dtype: torch.dtype) -> None:
    builder, expected = ProgramBuilder(), []
    for scale, zero_point in CORTEX_M:
        for count in (613, 16, 15, 1):
            x = _hard(count, scale, widest=38)
            out = Out(tuple(x.shape), dtype)
            builder.call("cortex_m::quantize_per_tensor.out", x, *_code(dtype, scale, zero_point), out)
            code = SCALAR_TYPES[dtype]
            expected.append(helium_quantize_per_tensor(x, scale, zero_point, *LIMITS[dtype], code))
    run = run_ours(builder)
    assert run.status == 0, run.log
    for k, (ours, theirs) in enumerate(zip(run.outputs, expected, strict=True)):
        assert_same(ours, theirs, f"call {k}")


def test_cortex_m_dequantize_equals_the_host_reference() -> None:
    builder, expected = ProgramBuilder(), []
    codes = torch.arange(-128, 128).to(torch.int8)
    for scale, zero_point in CORTEX_M:
        arguments = _code(torch.int8, scale, zero_point)
        builder.call("cortex_m::dequantize_per_tensor.out", codes, *arguments, Out((256,), torch.float32))
        expected.append(dequantize_per_tensor(codes, scale, zero_point, -128, 127, 1))
    run = run_ours(builder)
    for k, (ours, theirs) in enumerate(zip(run.outputs, expected, strict=True)):
        assert_same(ours, theirs, f"call {k}")


FLAGS = (
    "-std=c++17 -Os -fno-exceptions -fno-rtti -ffp-contract=off -fno-math-errno -ffunction-sections".split()
)


def _firmware(folder: Path) -> Path:
    """The kernel in a semihosted program for Cortex-M55, with Helium."""
    sources = [
        Path(__file__).parent / "kernel_host_project" / "quantize_device.cpp",
        *(ROOT / "runtime/kernels" / name for name in ("cortex_m_quantize.cpp", "args.cpp", "dtype.cpp")),
        *(ROOT / "runtime/core" / name for name in ("tensor.cpp", "error.cpp", "format.cpp", "arena.cpp")),
    ]
    elf = folder / "quantize.elf"
    compiler = ["arm-none-eabi-g++", "-mcpu=cortex-m55", "-mfloat-abi=hard", "-mthumb", *FLAGS, f"-I{ROOT}"]
    link = ["--specs=rdimon.specs", "-Wl,--gc-sections", "-Wl,-Ttext=0x10000"]
    done = subprocess.run(
        [*compiler, *map(str, sources), *link, "-o", str(elf)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return elf


@pytest.mark.skipif(shutil.which("arm-none-eabi-g++") is None, reason="no arm-none-eabi-g++")
@pytest.mark.skipif(find_qemu() is None, reason="no qemu-arm")
def test_helium_equals_the_host_reference(tmp_path: Path) -> None:
    """The vector code of the same kernel, on an emulated Cortex-M55."""
    elf = _firmware(tmp_path)
    for scale, zero_point in CORTEX_M:
        x = _hard(1000, scale, widest=38)
        (tmp_path / "in.bin").write_bytes(x.numpy().tobytes())
        command = [str(find_qemu()), "-cpu", "cortex-m55", str(elf), str(scale), str(zero_point)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        ours = torch.from_numpy(np.fromfile(tmp_path / "out.bin", np.int8))
        assert_same(ours, helium_quantize_per_tensor(x, scale, zero_point, -128, 127, 1), f"{scale}")


@pytest.mark.parametrize(
    ("operator", "arguments", "reason"),
    [
        ("cortex_m::quantize_per_tensor.out", (torch.zeros(2), 0.1, 0, -129, 127, 1), "beyond"),
        (
            "cortex_m::quantize_per_tensor.out",
            (torch.zeros(2, dtype=torch.int8), 0.1, 0, 0, 1, 1),
            "element type",
        ),
        ("quantized_decomposed::quantize_per_tensor.out", (torch.zeros(2), 0.1, 0, 5, -5, 1), "wrong order"),
        ("quantized_decomposed::quantize_per_tensor.out", (torch.arange(2), 0.1, 0, 0, 1, 1), "real type 4"),
    ],
)
def test_wrong_arguments_are_refused_with_a_reason(
    operator: str, arguments: tuple[Argument, ...], reason: str
) -> None:
    builder = ProgramBuilder()
    builder.call(operator, *arguments, Out((2,), torch.int8))
    run = run_ours(builder)
    assert run.status == 5
    assert operator in run.log
    assert reason in run.log
