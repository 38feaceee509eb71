"""What NVIDIA's driver says of GPUs and of the processes on them, by NVML; only queries."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of the field that counts what all NVLinks of a GPU have carried.
_ALL_LINKS = 0xFFFFFFFF
_KIB = 1024


class NvmlError(Exception):
    """NVML cannot be used, or a query failed; the text says which and why."""


class NotFoundError(NvmlError):
    """What was asked for is not there, such as a sample before the first."""


@dataclass(frozen=True)
class Slice:
    """A MIG slice of a card, which programs see as a GPU of its own."""

    number: int  #: among the card's
    uuid: str  #: such as MIG-…
    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Card:
    """One GPU as the driver shows it."""

    index: int  #: in the order of the PCI bus
    uuid: str
    name: str
    architecture: str  #: such as sm_90
    memory_bytes: int
    free_bytes: int
    persistent: bool | None = None  #: persistence mode; None: the driver does not say
    sliced: bool = False  #: whether it is cut into MIG slices
    slices: tuple[Slice, ...] = ()  #: those that are made
    amiss: tuple[str, ...] = ()  #: what the driver says is wrong with it, in words


@dataclass(frozen=True)
class Traffic:
    """What the NVLinks of a GPU have carried since the driver was loaded."""

    sent_bytes: int
    received_bytes: int


@dataclass(frozen=True)
class Busy:
    """How much a process has used a GPU in the driver's newest sample."""

    pid: int  #: as this process's namespace shows it
    at_us: int  #: the driver's clock
    percent: int  #: of the time in which a kernel of it ran


@contextmanager
def nvml() -> Iterator[Nvml]:
    """NVML, as long as the context is open.

    Raises:
        NvmlError: there is no driver, or it does not answer.
    """
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlError(f"NVML: {error}") from error
    try:
        yield Nvml(pynvml)
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


class Nvml:
    """The queries that are made here. Each raises NvmlError where the driver refuses it."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def driver(self) -> str:
        """The driver's version, such as 580.95.05."""
        return str(self._ask("nvmlSystemGetDriverVersion"))

    def cuda(self) -> tuple[int, int]:
        """The newest CUDA that the driver supports: major and minor version."""
        version = int(self._ask("nvmlSystemGetCudaDriverVersion_v2"))
        return version // 1000, version % 1000 // 10

    def cards(self) -> list[Card]:
        """Every GPU that the driver shows and that answers."""
        return self.survey()[0]

    def survey(self) -> tuple[list[Card], list[str]]:
        """(the GPUs that answer, what those say that do not, as by a fault of the card)."""
        cards, silent = [], []
        for index in range(int(self._ask("nvmlDeviceGetCount"))):
            try:
                cards.append(self._card(index))
            except NvmlError as error:
                silent.append(f"GPU {index} does not answer: {error}")
        return cards, silent

    def processes(self, uuid: str) -> dict[int, int]:
        """Bytes of the GPU's memory by process, of those with a CUDA context on it.

        0 where the driver does not say how many. Ids are those of this process's namespace.
        """
        found = self._ask("nvmlDeviceGetComputeRunningProcesses", self._handle(uuid))
        return {int(one.pid): int(one.usedGpuMemory or 0) for one in found}

    def busy(self, uuid: str, since_us: int) -> list[Busy]:
        """The driver's samples of processes newer than `since_us`; none before the first."""
        try:
            found = self._ask("nvmlDeviceGetProcessUtilization", self._handle(uuid), since_us)
        except NotFoundError:
            return []
        return [Busy(int(one.pid), int(one.timeStamp), int(one.smUtil)) for one in found]

    def traffic(self, uuid: str) -> Traffic | None:
        """What its NVLinks have carried; None where it has none, or the driver does not count."""
        library = self._library
        wanted = [
            (library.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS),
            (library.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS),
        ]
        try:
            sent, received = self._ask("nvmlDeviceGetFieldValues", self._handle(uuid), wanted)
        except NvmlError:
            return None
        if sent.nvmlReturn or received.nvmlReturn:
            return None
        return Traffic(int(sent.value.ullVal) * _KIB, int(received.value.ullVal) * _KIB)

    def linked(self, one: str, other: str) -> str:
        """How two GPUs are linked, in words: by NVLink, or over which part of the host."""
        library = self._library
        handles = self._handle(one), self._handle(other)
        with suppress(NvmlError):
            if (
                self._ask("nvmlDeviceGetP2PStatus", *handles, library.NVML_P2P_CAPS_INDEX_NVLINK)
                == 0
            ):
                return "NVLink"
        levels = {
            library.NVML_TOPOLOGY_INTERNAL: "on one board",
            library.NVML_TOPOLOGY_SINGLE: "one PCIe switch",
            library.NVML_TOPOLOGY_MULTIPLE: "several PCIe switches",
            library.NVML_TOPOLOGY_HOSTBRIDGE: "a PCIe host bridge",
            library.NVML_TOPOLOGY_NODE: "one NUMA node",
            library.NVML_TOPOLOGY_SYSTEM: "between NUMA nodes",
        }
        with suppress(NvmlError):
            return levels.get(self._ask("nvmlDeviceGetTopologyCommonAncestor", *handles), "unknown")
        return "unknown"

    def _card(self, index: int) -> Card:
        handle = self._ask("nvmlDeviceGetHandleByIndex", index)
        major, minor = self._ask("nvmlDeviceGetCudaComputeCapability", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        persistent, sliced = None, False
        with suppress(NvmlError):
            persistent = bool(self._ask("nvmlDeviceGetPersistenceMode", handle))
        with suppress(NvmlError):
            sliced = bool(self._ask("nvmlDeviceGetMigMode", handle)[0])
        return Card(
            index=index,
            uuid=str(self._ask("nvmlDeviceGetUUID", handle)),
            name=str(self._ask("nvmlDeviceGetName", handle)),
            architecture=f"sm_{major}{minor}",
            memory_bytes=int(memory.total),
            free_bytes=int(memory.free),
            persistent=persistent,
            sliced=sliced,
            slices=tuple(self._slices(handle)) if sliced else (),
            amiss=tuple(self._amiss(handle)),
        )

    def _slices(self, handle: Any) -> Iterator[Slice]:
        try:
            most = int(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle))
        except NvmlError:
            return
        for number in range(most):
            try:
                one = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
                uuid = str(self._ask("nvmlDeviceGetUUID", one))
                name = str(self._ask("nvmlDeviceGetName", one))
                memory_bytes = int(self._ask("nvmlDeviceGetMemoryInfo", one).total)
            except NvmlError:
                continue  # the numbers of slices that are not made give gaps
            yield Slice(number, uuid, name, memory_bytes)

    def _amiss(self, handle: Any) -> Iterator[str]:
        """What is wrong with a card that answers all the same."""
        library = self._library
        with suppress(NvmlError):
            mode = self._ask("nvmlDeviceGetComputeMode", handle)
            if mode == library.NVML_COMPUTEMODE_PROHIBITED:
                yield "its compute mode allows no program"
            elif mode == library.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS:
                yield "its compute mode allows one process at a time"
        with suppress(NvmlError):
            kinds = library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
            errors = int(self._ask("nvmlDeviceGetTotalEccErrors", handle, *kinds))
            if errors:
                yield f"{errors} memory errors that were not corrected since the driver was loaded"
        with suppress(NvmlError):
            _, _, pending, failed = self._ask("nvmlDeviceGetRemappedRows", handle)
            if failed:
                yield "a broken row of its memory could not be replaced"
            elif pending:
                yield "broken rows of its memory are replaced at its next reset"

    def _handle(self, uuid: str) -> Any:
        return self._ask("nvmlDeviceGetHandleByUUID", uuid)

    def _ask(self, query: str, *given: Any) -> Any:
        try:
            return getattr(self._library, query)(*given)
        except self._library.NVMLError_NotFound as error:
            raise NotFoundError(f"{query}: {error}") from error
        except (self._library.NVMLError, AttributeError) as error:
            raise NvmlError(f"{query}: {error}") from error
