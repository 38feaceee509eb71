"""Holds the namespaces of one stage box open, and the mounts within them.

It makes the namespaces, lays a writable layer over each folder that a stage must not change,
brings up the loopback interface, says which process to join, and waits. When its control
pipe closes, because the box was closed or the harness has died, it ends, and the kernel
takes with it every process and mount of the box. Programs enter by joining its namespaces.

It answers `{"pid": …}`, or `{"step": …, "why": …}` for what could not be done, so that the
caller can do without it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import struct

from .orders import answer, read_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

# Numbers of <linux/sched.h>, <linux/mount.h>, <linux/prctl.h>, <sys/socket.h>, <net/if.h> and
# <linux/sockios.h>, the same on all machines but for SOCK_DGRAM on MIPS.
_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_RDONLY, _MS_REMOUNT = 1, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_AF_INET, _SOCK_DGRAM = 2, 2
_IFF_UP = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


class StepError(Exception):
    """A step that this host does not allow."""

    def __init__(self, step: str, why: str, number: int = 0) -> None:
        super().__init__(step, why, number)
        self.step, self.why, self.number = step, why, number


def _checked(step: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise StepError(step, os.strerror(number), number)


def _mount(
    step: str, source: bytes, target: str, kind: bytes | None, flags: int, data: bytes | None = None
) -> None:
    _checked(step, _libc.mount(source, os.fsencode(target), kind, ctypes.c_ulong(flags), data))


def _unshare(order: dict[str, Any]) -> None:
    if order["user"]:
        uid, gid = os.geteuid(), os.getegid()
        _checked("user", _libc.unshare(_CLONE_NEWUSER))
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            try:
                with open(f"/proc/self/{name}", "w") as stream:
                    stream.write(text)
            except OSError as error:
                raise StepError("user", f"{name}: {error.strerror}") from error
    _checked("mounts", _libc.unshare(_CLONE_NEWNS))
    for name, flag in (("ipc", _CLONE_NEWIPC), ("network", _CLONE_NEWNET), ("pid", _CLONE_NEWPID)):
        if order[name]:
            _checked(name, _libc.unshare(flag))


def _layer_over(order: dict[str, Any]) -> None:
    """Put a writable layer over each folder, its changes kept elsewhere."""
    if order["memory"]:
        _mount("memory", b"tmpfs", order["memory"], b"tmpfs", _MS_NOSUID | _MS_NODEV)
    for overlay in order["overlays"]:
        handles = []
        options = []
        for option in ("lowerdir", "upperdir", "workdir"):
            path = overlay[option]
            if option != "lowerdir":
                os.makedirs(path, exist_ok=True)
            handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            handles.append(handle)
            # By number, since a path may hold the comma and the colon that separate options.
            options.append(f"{option}=/proc/self/fd/{handle}")
        if order["user"]:
            # Without privileges overlay keeps its marks in user.* attributes.
            variants = ["userxattr,volatile", "userxattr", ""]
        else:
            variants = ["redirect_dir=on,volatile", "redirect_dir=on", ""]
        for variant in variants:
            data = ",".join([*options, *([variant] if variant else [])]).encode()
            try:
                _mount("overlay", b"reb", overlay["lowerdir"], b"overlay", 0, data)
                break
            except StepError:
                if not variant:
                    raise
        for handle in handles:
            os.close(handle)


def _bind(order: dict[str, Any]) -> None:
    for source, target in order["binds"]:
        _mount("bind", os.fsencode(source), target, None, _MS_BIND | _MS_REC)
    for source, target in order["read_only"]:
        _mount("read-only", os.fsencode(source), target, None, _MS_BIND | _MS_REC)
        # Without privileges, what the mount beneath forbids must stay forbidden.
        kept = os.statvfs(target).f_flag & (_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept
        _mount("read-only", b"none", target, None, flags)
    if order["ipc"] and os.path.isdir("/dev/shm"):  # noqa: S108 - the kernel's own place
        _mount("ipc", b"tmpfs", "/dev/shm", b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777")  # noqa: S108 - the kernel's own place


def bring_up_loopback() -> None:
    """Bring up the loopback interface of this process's network namespace, if it is down.

    Raises:
        StepError: this process may not.
    """
    # Python's own socket module takes longer to import than all the rest together.
    handle = _libc.socket(_AF_INET, _SOCK_DGRAM, 0)
    if handle < 0:
        number = ctypes.get_errno()
        raise StepError("network", os.strerror(number), number)
    try:
        said = fcntl.ioctl(handle, _SIOCGIFFLAGS, struct.pack("16sh22x", b"lo", 0))
        flags = struct.unpack("16sh22x", said)[1]
        if not flags & _IFF_UP:  # to set what is set takes a right all the same
            fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
    except OSError as error:
        raise StepError("network", f"loopback: {error.strerror}") from error
    finally:
        os.close(handle)


def _make(order: dict[str, Any]) -> int:
    """Mount everything; returns the id by which the harness knows this process."""
    _mount("mounts", b"none", "/", None, _MS_REC | _MS_PRIVATE)
    _layer_over(order)
    _bind(order)
    # Still the harness's /proc, which gives this process the harness's number of it.
    pid = int(os.readlink("/proc/self"))
    if order["pid"]:
        _mount("pid", b"proc", "/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    if order["network"]:
        bring_up_loopback()
    return pid


def _hold(order: dict[str, Any], control: int, status: int) -> NoReturn:
    """Make the box, answer, and wait for the control pipe to close."""
    try:
        made: dict[str, object] = {"pid": _make(order)}
    except StepError as error:
        made = {"step": error.step, "why": error.why, "errno": error.number}
    except OSError as error:
        made = {"step": "folders", "why": str(error), "errno": error.errno}
    answer(status, made)
    os.close(status)
    if "pid" in made:
        # As the first process of its namespace it inherits orphans; nobody asks for their end.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.chdir("/")
        while os.read(control, 4096):
            pass
    os._exit(0)


def main(arguments: list[str]) -> NoReturn:
    """Run as a program, with the numbers of the control and the status pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        hold_open(int(arguments[0]), int(arguments[1]))
    finally:
        os._exit(0)  # also where no order came


def hold_open(control: int, status: int) -> None:
    """Carry out the order that comes by `control`; answer to `status`."""
    order = read_order(control)
    try:
        _unshare(order)
    except StepError as error:
        answer(status, {"step": error.step, "why": error.why, "errno": error.number})
        return
    if not order["pid"]:
        _hold(order, control, status)
    child = os.fork()
    if child == 0:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        _hold(order, control, status)
    os.close(control)
    os.close(status)
    os.waitpid(child, 0)
