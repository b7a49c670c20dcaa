# SPDX-License-Identifier: Apache-2.0
"""The programs with the FVPs' names: command lines, firmware that ends in every way, wording, exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from fvp.frontend import options, parameters, wording
from fvp.frontend.models import MODELS
from fvp.frontend.session import main
from fvp.virtual import tools
from report.errors import UsageError
from tests.fvp.firmware import build, build_with_newlib
from tests.fvp.guest import needs_assembler, needs_qemu

BIN = Path(__file__).parents[2] / "fvp" / "bin"
SSE_320, SSE_310, SSE_300 = "FVP_Corstone_SSE-320", "FVP_Corstone_SSE-310", "FVP_Corstone_SSE-300_Ethos-U55"
CPU_320 = "mps4_board.subsystem.cpu0"


def needs_guest(test):  # type: ignore[no-untyped-def]
    """Skip without the emulator or the compiler."""
    return needs_qemu(needs_assembler(test))


def run(program: str, elf: Path, *arguments: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, standard output and error of a front end in this process."""
    code = main(program, ["-a", str(elf), "--timelimit", "20", *arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_every_model_has_its_program_and_version_says_what_it_is() -> None:
    assert {path.name for path in BIN.iterdir()} == set(MODELS)
    for path in BIN.iterdir():
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        assert (
            path.name in done.stdout
            and wording.OPEN_PLATFORM in done.stdout
            and "Fast Models" not in done.stdout
        )


def test_program_is_found_through_a_link_from_any_folder_whatever_python_is_told(tmp_path: Path) -> None:
    link = tmp_path / SSE_320
    link.symlink_to(BIN / SSE_320)
    (tmp_path / "numpy.py").write_text("raise SystemExit('shadowed')")
    environment = {"PATH": os.environ["PATH"], "PYTHONHOME": "/nowhere", "PYTHONPATH": str(tmp_path)}
    command = [str(link), "-C", "a.b=1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "no application" in done.stderr and "a.b is not known" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sta"], "unknown option --sta; did you mean --stat"),
        (["-Z"], "unknown option -Z"),
        (["-C"], "-C needs INST.PARAM=VALUE"),
        (["-C", "x"], "is no INSTANCE.PARAMETER=VALUE"),
        (["--data", "file"], "is no FILE@ADDRESS"),
        (["--data", "file@zz"], "is no FILE@ADDRESS"),
        (["--timelimit", "0"], "no positive number"),
        (["--stat=1"], "unknown option --stat=1"),
        (["a.axf", "-a", "b.axf"], "a second application"),
        (["-f", "/nowhere"], "cannot read /nowhere"),
        (["-a", "/nowhere.axf"], "cannot read the application"),
        ([], "no application"),
        (["-a", "x", "-C", "mps4_board.uart0.shutdown_on_eot=maybe"], "yes or no"),
        (["-a", __file__, "-C", "mps4_board.subsystem.ethosu.num_macs=100"], "there is no ethos-u85-100"),
    ],
)
def test_bad_command_line_is_one_line_and_exit_2(
    arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(SSE_320, arguments) == 2
    errors = [line for line in capfd.readouterr().err.splitlines() if "error:" in line]
    assert len(errors) == 1 and message in errors[0]


def test_options_in_every_form(tmp_path: Path) -> None:
    config = tmp_path / "fvp_config.txt"
    config.write_text("# Parameters:\ncpu0.semihosting-enable=0   # (bool) default\n\nethosu.num_macs=64\n")
    request = options.parse(
        ["--application=cpu0=a.axf", "-f", str(config), "-Ccpu0.semihosting-cwd=/x", "--stat", "-q",
         "-C", "ethosu.num_macs=32", "--data", "cpu0=m.pte@Normal:0x90000000", "--data=n.pte@16",
         "--simlimit", "24", "-Q", "1000"],
        MODELS[SSE_300],
    )  # fmt: skip
    assert request.application == Path("a.axf")
    assert request.data == [(Path("m.pte"), 0x9000_0000), (Path("n.pte"), 16)]
    assert request.flags == {"quiet", "stat"} and request.simulated_seconds == 24
    assert request.ignored == ["--quantum"]
    values = parameters.parse(request.assignments, MODELS[SSE_300])
    assert values.number("num_macs") == 32 and not values.flag("semihosting-enable")
    assert values.text("semihosting-cwd") == "/x" and not values.unknown


def test_what_executorch_and_the_evaluation_kit_pass_is_known() -> None:
    """The keys of run_corstone and of MLIA; values may be in quotes."""
    keys = [
        "mps4_board.subsystem.ethosu.num_macs=128",
        "mps4_board.visualisation.disable-visualisation=1",
        "vis_hdlcd.disable_visualisation=1",
        "mps4_board.telnetterminal0.start_telnet=0",
        "mps4_board.uart0.out_file='-'",
        "mps4_board.uart0.unbuffered_output=1",
        "mps4_board.uart0.shutdown_on_eot=1",
        "mps4_board.subsystem.cpu0.semihosting-enable=1",
        "mps4_board.subsystem.cpu0.semihosting-stack_base=0",
        "mps4_board.subsystem.cpu0.semihosting-heap_limit=0",
        "mps4_board.subsystem.cpu0.semihosting-cwd=/tmp",
        "mps4_board.subsystem.ethosu.extra_args='--fast'",
        "mps4_board.subsystem.cpu0.semihosting-cmd_line='executor_runner -m program.pte -o out -i i0.bin'",
    ]
    values = parameters.parse(keys, MODELS[SSE_320])
    assert not values.unknown
    assert values.text("semihosting-cmd_line") == "executor_runner -m program.pte -o out -i i0.bin"
    assert values.text("out_file") == "-" and values.text("extra_args") == "--fast"


def test_list_of_parameters_is_a_configuration_file(capfd: pytest.CaptureFixture[str]) -> None:
    for program, model in MODELS.items():
        assert main(program, ["-l"]) == 0
        assignments = parameters.config_file(capfd.readouterr().out)
        assert parameters.parse(assignments, model) == parameters.parse([], model)
        assert len(assignments) == len(parameters.table(model))


def test_configuration_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(UsageError, match=r"ethosu\.num_macs='many': a number is expected"):
        parameters.parse(["ethosu.num_macs=many"], MODELS[SSE_300])


HELLO = """
int main(void) {
  char line[80]; uint32_t block[2] = {(uint32_t)line, sizeof line};
  semihosting(0x15, block);
  print("hello "); print(line); print("\\n");
  return %d;
}
"""


@needs_guest
@pytest.mark.parametrize("program", sorted(MODELS))
def test_application_runs_on_every_board(
    program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = MODELS[program]
    elf = build(HELLO % 0, tmp_path, model.board)
    key = f"{model.cpu}.semihosting-cmd_line='app -i i0.bin'"
    code, out, err = run(program, elf, "-C", key, capfd=capfd)
    assert code == 0 and out.startswith("hello app -i i0.bin\n") and wording.STOPPED in out
    assert err == f"{program}: {wording.NOTICE}\n"


@needs_guest
@pytest.mark.parametrize("status", [0, 3])
def test_exit_code_is_the_applications(
    status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(SSE_320, build(HELLO % status, tmp_path), capfd=capfd)[0] == status


NEWLIB = """
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
int main(int argc, char **argv) {
  for (int i = 0; i < argc; i++) printf("[%s]", argv[i]);
  FILE *file = fopen("out-0.bin", "wb");
  for (int i = 0; i < 1000; i++) fwrite(&i, sizeof i, 1, file);
  fclose(file);
  file = fopen("out-0.bin", "rb");
  fseek(file, 4 * 999, SEEK_SET);
  int last; fread(&last, 4, 1, file);
  printf(" last %d malloc %d", last, malloc(100000) != NULL);
  file = fopen("../escape", "w");
  printf(" escape %d %d\\n", file != NULL, errno == EACCES);
  fprintf(stderr, "to stderr\\n");
  return 7;
}
"""


@needs_guest
def test_newlib_program_with_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    elf = build_with_newlib(NEWLIB, tmp_path)
    keys = [f"{CPU_320}.semihosting-cwd={cwd}", f"{CPU_320}.semihosting-cmd_line='run -m \"a b\"'"]
    keys += [f"{CPU_320}.semihosting-stack_base=0x30008000"]
    code, out, err = run(SSE_320, elf, *(part for key in keys for part in ("-C", key)), capfd=capfd)
    assert code == 7 and out.startswith("[run][-m][a b] last 999 malloc 1 escape 0 1\nto stderr\n")
    assert len((cwd / "out-0.bin").read_bytes()) == 4000 and not (tmp_path / "escape").exists()
    assert "'../escape' refused" in err


@needs_guest
def test_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    source = 'int main(void) { for (int i = 0; i < 20000; i++) print("line\\n"); return 0; }'
    elf = build(source, tmp_path)
    command = f"{BIN / SSE_320} -a {elf} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stdout == "line\n" and "Traceback" not in done.stderr


@needs_guest
def test_semihosting_switched_off_is_a_hard_fault(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    elf = build(HELLO % 0, tmp_path)
    code, out, err = run(SSE_320, elf, "-C", f"{CPU_320}.semihosting-enable=0", capfd=capfd)
    assert code == 5 and not out and "semihosting is not enabled" in err


UART = """
#define UART0 %#x
static void put(char c) { while (WORD(UART0 + 4) & 1) {} WORD(UART0) = c; }
int main(void) {
  for (const char *c = "one\\ntwo\\nEND\\nthree\\n\\x04" "four\\n"; *c; c++) put(*c);
  for (;;) {}
}
"""


@needs_guest
@pytest.mark.parametrize(
    ("keys", "text", "code"),
    [
        (["uart0.shutdown_on_eot=1"], "one\ntwo\nEND\nthree\n", 0),
        (["uart0.shutdown_tag=END"], "one\ntwo\nEND", 0),
        ([], "one\ntwo\nEND\nthree\n\x04four\n", 7),
    ],
)
def test_uart_ends_the_run_as_asked(
    keys: list[str], text: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    elf = build(UART % 0x4930_3000, tmp_path, "corstone-300")
    chosen = [part for key in keys for part in ("-C", f"mps3_board.{key}")]
    limits = [] if keys else ["--timelimit", "1"]
    done, out, _ = run(SSE_300, elf, *chosen, *limits, capfd=capfd)
    assert done == code and out.split("\nInfo:")[0].rstrip("\n") == text.rstrip("\n")
    assert (wording.TIME_LIMIT in out) == (code == 7)


@needs_guest
def test_uart_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    elf = build(UART % 0x5930_3000, tmp_path, "corstone-310")
    log = tmp_path / "uart.log"
    keys = ["-C", f"mps3_board.uart0.out_file={log}", "-C", "mps3_board.uart0.shutdown_on_eot=1"]
    code, out, _ = run(SSE_310, elf, *keys, "-q", capfd=capfd)
    assert code == 0 and not out and log.read_text() == "one\ntwo\nEND\nthree\n"


@needs_guest
def test_data_at_an_address_even_above_what_can_be_mapped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.bin").write_bytes(b"DATA")
    source = (
        "int main(void) { return WORD(0x60000010) == 0x41544144 && WORD(0x70000000) == 0x41544144 ? 0 : 1; }"
    )
    data = [f"--data={tmp_path}/a.bin@{address:#x}" for address in (0x9000_0010, 0x7000_0000)]
    elf = build(source, tmp_path)
    assert run(SSE_320, elf, *data, capfd=capfd)[0] == 0
    assert run(SSE_320, elf, f"--data={tmp_path}/a.bin@0x40000000", capfd=capfd)[0] == 2
    code, _, err = run(SSE_320, elf, f"--data={tmp_path}/a.bin@0x77fffffe", capfd=capfd)
    assert code == 2 and "4 bytes do not fit at 0x77fffffe" in err


WAIT = """
static volatile int ticks;
void systick(void) { ticks++; }
int main(void) {
  WORD(0xE0001004) = 0; WORD(0xE0001000) |= 1;
  WORD(0xE000E014) = 31999; WORD(0xE000E018) = 0; WORD(0xE000E010) = 7;
  while (ticks < 1000) __asm__ volatile("wfi");
  uint32_t cycles = WORD(0xE0001004);
  return cycles >= 1000 * 32000 && cycles < 1010 * 32000 ? 0 : 1;
}
"""


@needs_guest
def test_wait_for_interrupt_lets_virtual_time_pass(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    elf = build(WAIT, tmp_path)
    code, out, _ = run(SSE_320, elf, "--stat", capfd=capfd)
    assert code == 0
    seconds = re.search(r"^Simulated time\s+: (\d+\.\d{6})s$", out, re.MULTILINE)
    assert seconds and 1.0 <= float(seconds[1]) < 1.01
    assert f"--- {MODELS[SSE_320].instance} statistics: ---" in out and "n/a Inst" in out
    limits = {"--simlimit=0.5": wording.SIMULATED_TIME_LIMIT, "--cyclelimit=9000": wording.CYCLE_LIMIT}
    for limit, line in limits.items():
        code, out, _ = run(SSE_320, elf, limit, capfd=capfd)
        assert code == 0 and line in out


SUPERVISOR = """
static volatile uint32_t seen;
__attribute__((naked)) void svcall(void) {
  __asm__ volatile("ldr r1, [sp, #24]\\n ldrb r0, [r1, #-2]\\n ldr r2, =seen\\n"
                   "str r0, [r2]\\n bx lr\\n .ltorg");
}
int main(void) { __asm__ volatile("mov r7, #1\\n svc #77" ::: "r0", "r1", "r2", "r7"); return seen; }
"""


@needs_guest
def test_supervisor_call_is_an_exception_and_never_a_call_of_the_host(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(SSE_320, build(SUPERVISOR, tmp_path), capfd=capfd)[0] == 77


@needs_guest
def test_supervisor_call_in_unknown_code_ends_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    elf = build(SUPERVISOR, tmp_path)
    subprocess.run(["arm-none-eabi-strip", elf], check=True)
    code, _, err = run(SSE_320, elf, capfd=capfd)
    assert code == 5 and "supervisor call in code without mapping symbols" in err


FAULT = """
void %s(void) {
  print_word(WORD(0xE000ED28)); print_word(WORD(0xE000ED2C)); print_word(WORD(0xE000ED38));
  WORD(0xE000ED28) = 0xFFFFFFFF;
  print_word(WORD(0xE000ED28));
  leave(9);
}
int main(void) { %s return 0; }
"""
LOAD = "return WORD(0x44440008);"
IN_IT_BLOCK = """
  register uint32_t nowhere __asm__("r4") = 0x44440000;
  __asm__ volatile("cmp r0, r0\\n itttt eq\\n ldreq r1, [r4]\\n moveq r2, r2\\n moveq r2, r2\\n moveq r2, r2"
                   :: "r"(nowhere) : "r1", "r2");"""


@needs_guest
@pytest.mark.parametrize(
    ("handler", "body", "text"),
    [
        ("hard_fault", LOAD, "00008200 40000000 44440008 00000000"),
        ("bus_fault", f"WORD(0xE000ED24) = 1 << 17; {LOAD}", "00008200 00000000 44440008 00000000"),
        ("hard_fault", '__asm__ volatile("udf #1");', "00010000 40000000 00000000 00000000"),
        ("hard_fault", '__asm__ volatile("bkpt 1");', "00000000 80000000 00000000 00000000"),
        ("hard_fault", "((void (*)(void))0x44440001)();", "00000100 40000000 00000000 00000000"),
        ("hard_fault", IN_IT_BLOCK, "00008200 40000000 44440000 00000000"),
    ],
)
def test_fault_handler_sees_the_status_registers(
    handler: str, body: str, text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(SSE_320, build(FAULT % (handler, body), tmp_path), capfd=capfd)
    assert code == 9 and out.startswith(text) and ": CPU " in err


@needs_guest
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("int main(void) { return WORD(0x44440008); }", "no handler for exception 3"),
        (
            f"void hard_fault(void) {{ for (;;) {{}} }} int main(void) {{ {LOAD} }}",
            "no handler for exception 3",
        ),
        (
            f"void hard_fault(void) {{ {LOAD.replace('return ', '')} }} int main(void) {{ {LOAD} }}",
            "locks the CPU up",
        ),
        (
            'void hard_fault(void) { leave(0); } int main(void) { __asm__ volatile("mov sp, %0\\n push {r0}"'
            ' :: "r"(0x44440000)); return 0; }',
            "the stack pointer 0x44440000 is in no memory",
        ),
    ],
)
def test_fault_that_nobody_handles_is_decoded(
    source: str, reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(SSE_320, build(source, tmp_path), capfd=capfd)
    last = err.splitlines()[-1]
    assert code == 5 and reason in last and "BusFault, CFSR 0x00008200 PRECISERR BFARVALID" in last


@needs_guest
def test_application_of_another_board_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(SSE_320, build(HELLO % 0, tmp_path, "corstone-300"), capfd=capfd)
    assert code == 3 and "does not fit corstone-320" in err


@needs_guest
def test_missing_emulator_is_exit_3(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = build(HELLO % 0, tmp_path)
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(tmp_path / "absent"))
    code, _, err = run(SSE_320, elf, capfd=capfd)
    assert code == 3 and "no qemu-arm" in err


@needs_guest
def test_evaluation_kits_firmware_runs_a_program(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """MLIA's command line: model at 0x90000000, the log on standard output, the end at EOT."""
    image = tools.find_image("corstone-320")
    if image is None:
        pytest.skip("Arm's firmware is not installed (setup.sh)")
    program = Path(__file__).parents[1] / "data" / "fvp" / "layouts_u85_256.pte"
    keys = ["subsystem.ethosu.num_macs=256", "uart0.shutdown_on_eot=1", "uart0.out_file='-'"]
    chosen = [part for key in keys for part in ("-C", f"mps4_board.{key}")]
    code, out, _ = run(SSE_320, image, f"--data={program}@0x90000000", *chosen, capfd=capfd)
    assert code == 0 and "INFO - program terminating" in out and "<metrics>" in out
    started = time.perf_counter()
    code, out, _ = run(SSE_320, image, "--timelimit=0.2", *chosen, capfd=capfd)
    assert code in (0, 7) and time.perf_counter() - started < 5
