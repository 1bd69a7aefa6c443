"""Started by root, the embedded PostgreSQL runs as an unprivileged user that cannot write others' files."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.engines.embedded import engines
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.privilege import CAP_DAC_READ_SEARCH, unprivileged
from holdfast.engines.errors import OperatorError

IS_ROOT = os.geteuid() == 0


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Path]:
    """A folder that only its owner may pass, as a home of root is."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


def status_of(process_id: int) -> dict[str, str]:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_in_a_private_folder_it_may_pass_and_read_but_not_write(private: Path) -> None:
    async with engines(private / "data"):
        status = status_of(int((DataFolder(private / "data").run / "postgres.pid").read_text()))

    is_root = status["Uid"].split()[1] == "0"
    capabilities = {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")}
    assert not is_root
    assert not IS_ROOT or status["NoNewPrivs"] == "1"
    if IS_ROOT:
        assert capabilities == {1 << CAP_DAC_READ_SEARCH}


def test_a_program_that_only_root_may_run_is_refused(private: Path, tmp_path: Path) -> None:
    """It would need the capability to write every file, and would have it for as long as it runs."""
    program = private / "postgres"
    shutil.copy("/bin/true", program)
    program.chmod(0o700)

    if not IS_ROOT:
        assert unprivileged(program, tmp_path) is None
        return
    with pytest.raises(OperatorError, match="chmod"):
        unprivileged(program, tmp_path)
