"""What the driver can do by itself: a kernel on each GPU, and copies between each two.

It speaks to `libcuda` alone, so that it needs no framework and no compiler, and nothing of a
judged environment. Each line of its output is one JSON object, written before and after each
step: a step that hangs is the last that was begun.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: x -> x * factor + element, `rounds` times, in 32-bit integers: any other answer is wrong.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry turn(.param .u64 values, .param .u32 factor, .param .u32 rounds)
{
    .reg .pred %done;
    .reg .b32 %x, %a, %n, %i, %block, %size, %thread;
    .reg .b64 %at, %step;
    ld.param.u64 %at, [values];
    ld.param.u32 %a, [factor];
    ld.param.u32 %n, [rounds];
    cvta.to.global.u64 %at, %at;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %i, %block, %size, %thread;
    mul.wide.u32 %step, %i, 4;
    add.u64 %at, %at, %step;
    ld.global.u32 %x, [%at];
again:
    mad.lo.u32 %x, %x, %a, %i;
    sub.u32 %n, %n, 1;
    setp.ne.u32 %done, %n, 0;
    @%done bra again;
    st.global.u32 [%at], %x;
    ret;
}
"""
BLOCKS, THREADS, ROUNDS, FACTOR = 64, 256, 64, 1664525
SIZE = BLOCKS * THREADS
COPY_BYTES = 32 * 1024 * 1024


class FailedError(Exception):
    """A call of the driver did not do what was asked; the text is for people."""


class Driver:
    """The calls that are made here, each of which must succeed."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise FailedError(f"no driver: {error}") from error

    def call(self, name: str, *given: Any) -> None:
        """Call a function; the answer is in what was given.

        Raises:
            FailedError: it is not there, or says that it did not work.
        """
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise FailedError(f"the driver has no {name}") from error
        status = function(*given)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            said = (text.value or b"").decode(errors="replace")
            raise FailedError(f"{name}: {said or 'error'} ({status})")


class Device:
    """One GPU as this process numbers it, with a context and the kernel."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver, self.number = driver, number
        handle = ctypes.c_int()
        driver.call("cuDeviceGet", ctypes.byref(handle), number)
        uuid = (ctypes.c_ubyte * 16)()
        driver.call("cuDeviceGetUuid_v2", ctypes.byref(uuid), handle)
        digits = bytes(uuid).hex()
        parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
        self.uuid = "GPU-" + "-".join(parts)
        self.context = ctypes.c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), handle)
        self.use()
        module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.kernel = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"turn")
        self.handle = handle

    def use(self) -> None:
        """Have the calls that follow be for this GPU."""
        self.driver.call("cuCtxSetCurrent", self.context)

    def allocate(self, size_bytes: int) -> ctypes.c_uint64:
        """Memory on this GPU."""
        self.use()
        place = ctypes.c_uint64()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size_bytes))
        return place

    def launch(self, values: ctypes.c_uint64, rounds: int) -> None:
        """Start the kernel, and do not wait for its end."""
        self.use()
        given = [values, ctypes.c_uint32(FACTOR), ctypes.c_uint32(rounds)]
        places = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in given]
        pointers = (ctypes.c_void_p * len(given))(*places)
        shape = (BLOCKS, 1, 1, THREADS, 1, 1, 0)
        self.driver.call("cuLaunchKernel", self.kernel, *shape, None, pointers, None)

    def wait(self) -> None:
        """Wait until all that was started here has ended."""
        self.use()
        self.driver.call("cuCtxSynchronize")

    def write(self, place: ctypes.c_uint64, content: bytes) -> None:
        """Copy from the host."""
        self.use()
        self.driver.call("cuMemcpyHtoD_v2", place, content, ctypes.c_size_t(len(content)))

    def read(self, place: ctypes.c_uint64, size_bytes: int) -> bytes:
        """Copy to the host."""
        self.use()
        content = ctypes.create_string_buffer(size_bytes)
        self.driver.call("cuMemcpyDtoH_v2", content, place, ctypes.c_size_t(size_bytes))
        return content.raw


def turned(start: int, element: int, rounds: int) -> int:
    """What the kernel makes of one value."""
    value = start
    for _ in range(rounds):
        value = (value * FACTOR + element) & 0xFFFFFFFF
    return value


def compute(device: Device, seed: int) -> str:
    """Run the kernel once and compare every element that it made.

    Raises:
        FailedError: it did not run, or an element is wrong.
    """
    start = [(seed + 7 * element) & 0xFFFFFFFF for element in range(SIZE)]
    place = device.allocate(4 * SIZE)
    device.write(place, b"".join(value.to_bytes(4, "little") for value in start))
    device.launch(place, ROUNDS)
    device.wait()
    made = device.read(place, 4 * SIZE)
    for element in range(SIZE):
        found = int.from_bytes(made[4 * element : 4 * element + 4], "little")
        if found != turned(start[element], element, ROUNDS):
            raise FailedError(f"computes a wrong value for element {element}")
    return f"{SIZE} values"


def keep_busy(device: Device, seconds: float) -> int:
    """Launch kernels for so long; how many."""
    place = device.allocate(4 * SIZE)
    until, launches = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for _ in range(20):
            device.launch(place, 200_000)
            launches += 1
        device.wait()
    return launches


def copy_between(one: Device, other: Device, seed: int) -> str:
    """Copy from one GPU to another, directly where the driver allows that; how it went.

    Raises:
        FailedError: it did not work, or another content arrived.
    """
    driver = one.driver
    can = ctypes.c_int()
    driver.call("cuDeviceCanAccessPeer", ctypes.byref(can), one.handle, other.handle)
    if can.value:
        other.use()
        status = driver.library.cuCtxEnablePeerAccess(one.context, 0)
        if status not in (0, 704):  # it is enabled already
            raise FailedError(f"cuCtxEnablePeerAccess: error {status}")
    piece = bytes((seed * 31 + number * 17) & 0xFF for number in range(4096))
    content = piece * (COPY_BYTES // len(piece))
    source, target = one.allocate(COPY_BYTES), other.allocate(COPY_BYTES)
    one.write(source, content)
    other.write(target, bytes(COPY_BYTES))
    size = ctypes.c_size_t(COPY_BYTES)
    began = time.monotonic()
    driver.call("cuMemcpyPeer", target, other.context, source, one.context, size)
    other.wait()
    seconds = time.monotonic() - began
    if other.read(target, COPY_BYTES) != content:
        raise FailedError("another content arrives than was sent")
    way = "directly" if can.value else "through the host"
    return f"{way}, {COPY_BYTES / max(seconds, 1e-9) / 1e9:.1f} GB/s"


def _say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def _step(name: str, on: list[str], do: Any) -> Any:
    """Do one step, and say that it began, and how it ended."""
    _say(step=name, on=on)
    began = time.monotonic()
    try:
        found = do()
    except FailedError as error:
        _say(step=name, on=on, failed=str(error), seconds=time.monotonic() - began)
        return None
    words = found if isinstance(found, str | int) else None
    _say(step=name, on=on, done=words, seconds=time.monotonic() - began)
    return found


def main(arguments: list[str]) -> None:
    """Run as a program: a number drawn by the caller, and for how many seconds to stay busy."""
    seed, busy_s = int(arguments[0]), float(arguments[1])
    driver = _step("driver", [], Driver)
    if driver is None or _step("initialise", [], lambda: driver.call("cuInit", 0) or "yes") is None:
        return
    count = ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    devices = []
    for number in range(count.value):
        device = _step("context", [str(number)], lambda n=number: Device(driver, n))
        if device is None:
            continue
        _say(step="uuid", on=[str(number)], done=device.uuid)
        if _step("kernel", [device.uuid], lambda d=device: compute(d, seed)):
            devices.append(device)
    for one in devices:
        for other in devices:
            if one is not other:
                _step(
                    "copy",
                    [one.uuid, other.uuid],
                    lambda a=one, b=other: copy_between(a, b, seed),
                )
    if busy_s:
        for device in devices:
            _step("busy", [device.uuid], lambda d=device: keep_busy(d, busy_s))
    _say(step="end", on=[], done="yes")
