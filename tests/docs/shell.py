"""The shell in which the commands of a page are run, one after the other, as a reader would."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TIMEOUT = 120  # seconds, for one command


@dataclass(frozen=True)
class CommandResult:
    """How a command ended, and all that it wrote."""

    code: int
    output: str


@dataclass(frozen=True)
class Shell:
    """One bash: what a command exports, or leaves running, is there for the next one."""

    start: list[str]  # the words that start bash
    folder: Path
    environment: dict[str, str]
    given: IO[str]
    codes: int  # a file descriptor from which each exit code can be read,
    theirs: int  # and bash's end of it

    def run(self, text: str) -> CommandResult:
        """Run it to its end; AssertionError after TIMEOUT seconds."""
        step, output = self.folder / ".step", self.folder / ".output"
        step.write_text(text + "\n")
        quiet = f"> {output} 2>&1 < /dev/null {self.theirs}>&-"
        self.given.write(f". {step} {quiet}; echo $? >&{self.theirs}\n")
        self.given.flush()
        ready, _, _ = select.select([self.codes], [], [], TIMEOUT)
        code = os.read(self.codes, 100) if ready else b""
        assert code, f"no end within {TIMEOUT} s, or the shell's own:\n{output.read_text()}"
        return CommandResult(int(code), output.read_text())

    def run_until_it_speaks(self, text: str) -> CommandResult:
        """Run a command that goes on until Ctrl-C; send it Ctrl-C when it has written a line."""
        # Tests that are started in the background may ignore Ctrl-C, and so may what they start.
        words = ["env", "--default-signal=INT", *self.start, "-c", f"exec {text}"]
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()

        return CommandResult(process.returncode, first + rest)


@contextlib.contextmanager
def shell(folder: Path, environment: dict[str, str], netns: str | None = None) -> Iterator[Shell]:
    """Run a bash in a folder and a network namespace; what it leaves running ends with it."""
    start = [*(["nsenter", f"--net=/run/netns/{netns}"] if netns else []), "bash"]
    codes, theirs = os.pipe()
    process = subprocess.Popen(
        [*start, "-o", "pipefail"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        text=True,
        pass_fds=(theirs,),
        start_new_session=True,
    )
    os.close(theirs)
    assert process.stdin is not None
    try:
        yield Shell(start, folder, environment, process.stdin, codes, theirs)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        os.close(codes)
