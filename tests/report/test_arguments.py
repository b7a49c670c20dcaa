# SPDX-License-Identifier: Apache-2.0
"""The command line's manners: suggestions, one line per error, exit codes."""

from __future__ import annotations

import pytest

from report.arguments import Parser, guarded, numbers_by_name
from report.errors import EXIT_CODES, ArmdeployError, CompileError, PlatformTimeout, UsageError


def fail_with(error: BaseException) -> int:
    def body() -> int:
        raise error

    return guarded("armdeploy", body)


def test_a_misspelt_option_is_refused_with_the_nearest_one() -> None:
    parser = Parser(prog="armdeploy run")
    parser.add_argument("--platform")
    with pytest.raises(UsageError, match="did you mean --platform"):
        parser.parse_args(["--plattform=host"])


def test_abbreviations_are_refused() -> None:
    parser = Parser(prog="armdeploy run")
    parser.add_argument("--platform")
    with pytest.raises(UsageError):
        parser.parse_args(["--plat", "host"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("bad"), 2),
        (CompileError("bad"), 4),
        (PlatformTimeout("late"), 7),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("x\ny"), 1),
    ],
)
def test_errors_are_one_line_and_have_their_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture
) -> None:
    assert fail_with(error) == code
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and code in EXIT_CODES


def test_the_one_line_has_what_where_why_and_hint() -> None:
    error = ArmdeployError("what\n", where="where", why="why", hint="hint")
    assert error.one_line() == "where: what: why; hint"


def test_numbers_by_name() -> None:
    assert numbers_by_name(["3", "a=b=4.5"], "--x", "N") == {"": 3, "a=b": 4.5}
    for word in ("fast", "-5", "a=", "nan", "inf", ""):
        with pytest.raises(UsageError, match=f"--x: {word!r} is not N"):
            numbers_by_name([word], "--x", "N")
    with pytest.raises(UsageError, match="'a=2' is the second for a"):
        numbers_by_name(["a=1", "a=2"], "--x", "N")
    with pytest.raises(UsageError, match="'3' is not NAME=N"):
        numbers_by_name(["3"], "--x", "NAME=N", named=True)
