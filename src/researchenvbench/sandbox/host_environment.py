"""What of the host's environment reaches programs in a box, and why.

Everything is scrubbed but for three things: the host's own PATH less active environments;
what installs need here, which is the package index with its certificates and the proxy; and
a declared list of variables without which numerical programs crash, or put a GPU out of
service, on some hosts. The list stands in every record.

pip's settings may come from variables and from four files; uv reads none of them, so they
are translated. Addresses may hold a password: `redacted` is what may be printed or stored.
"""

from __future__ import annotations

import configparser
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ..errors import HostError
from . import HostEnvironment
from .local.ending import MARKER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Layout

#: Communication between GPUs: a host may forbid what would harm it (multicast, for one).
VARIABLE_PREFIXES = ("NCCL_", "NVSHMEM_", "TORCH_SYMM_MEM_")
#: Numerical libraries choose code by the processor's model and crash where a virtual machine
#: shows one that it is not. Nothing that merely makes programs faster is in the list.
VARIABLE_NAMES = (
    "ATEN_CPU_CAPABILITY",  # torch
    "BLIS_ARCH_TYPE",
    "DNNL_MAX_CPU_ISA",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "NVPL_BLAS_DEBUG_CPU_TYPE",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
)

_DEFAULT_PATH = HostEnvironment().path
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
#: Settings of pip that a box must not inherit: they would change where or what it installs.
_NOT_INHERITED = frozenset(
    {
        "config-file",
        "cache-dir",
        "target",
        "prefix",
        "root",
        "user",
        "python",
        "log",
        "require-virtualenv",
        "src",
        "build",
        "requirement",
        "editable",
        "report",
        "dry-run",
    }
)
#: Options of which pip takes several values, separated by white space.
_LISTS = frozenset({"extra-index-url", "find-links", "constraint", "trusted-host"})
_PATHS = frozenset({"find-links", "constraint", "cert", "client-cert"})
_PASSWORD = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@]+@")
_SECRET_NAME = re.compile(r"(PASSWORD|TOKEN|SECRET|API_?KEY)", re.IGNORECASE)


def host_environment(environ: Mapping[str, str] | None = None) -> HostEnvironment:
    """What this host, or the given environment of one, hands to boxes.

    Raises:
        HostError: a configuration file of pip cannot be read.
    """
    environ = os.environ if environ is None else environ
    return HostEnvironment(
        variables=_declared(environ), installs=_installs(environ), path=_path(environ)
    )


def base_environment(layout: Layout, host: HostEnvironment, *, installs: bool) -> dict[str, str]:
    """The environment of a program in a box, before the prefix, the report and the task.

    Args:
        layout: Of the box in which it will run.
        host: What the host hands to it.
        installs: Whether it gets the settings by which packages are installed, and the
            proxy: while building, and in a stage that has a network.
    """
    return {
        "PATH": host.path,
        **variables_of(layout, "reb"),
        MARKER: str(layout.root),
        **host.variables,
        **(host.installs if installs else {}),
    }


def variables_of(layout: Layout, user: str) -> dict[str, str]:
    """What every program in a box is told of it, whatever kind of box it is."""
    return {
        "HOME": str(layout.home),
        "USER": user,
        "LOGNAME": user,
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "TERM": "dumb",
        "TMPDIR": str(layout.tmp),
        "XDG_CACHE_HOME": str(layout.cache),
        "XDG_CONFIG_HOME": str(layout.home / ".config"),
        "XDG_DATA_HOME": str(layout.home / ".local" / "share"),
        "XDG_STATE_HOME": str(layout.home / ".local" / "state"),
        "PYTHONUNBUFFERED": "1",  # what a killed program printed last is in the log
    }


def redacted(text: str) -> str:
    """The text with the user and password of every address replaced."""
    return _PASSWORD.sub(r"\g<scheme>***@", text)


def redacted_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables as they may be printed or stored."""
    return {
        name: "***" if _SECRET_NAME.search(name) else redacted(value)
        for name, value in variables.items()
    }


# --- path and declared variables -------------------------------------------------------


def _declared(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(environ.items())
        if name.startswith(VARIABLE_PREFIXES) or name in VARIABLE_NAMES
    }


def _path(environ: Mapping[str, str]) -> str:
    """The host's PATH less active environments and folders that anybody can write to."""
    active = [
        Path(environ[name]) / "bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(name)
    ]
    kept: list[str] = []
    for entry in environ.get("PATH", _DEFAULT_PATH).split(os.pathsep):
        folder = Path(entry)
        if (
            entry
            and folder.is_absolute()
            and entry not in kept
            and folder not in active
            and not (folder.parent / "pyvenv.cfg").exists()
            and not _anybody_writes(folder)
        ):
            kept.append(entry)
    return os.pathsep.join(kept) or _DEFAULT_PATH


def _anybody_writes(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


# --- installs --------------------------------------------------------------------------


def _installs(environ: Mapping[str, str]) -> dict[str, str]:
    pip = _pip_settings(environ)
    found: dict[str, str] = {}
    for name in _CERTIFICATES:
        if environ.get(name):
            found[name] = _absolute(environ[name], Path.cwd())
    for name in _PROXIES:
        for spelling in (name, name.upper()):
            if environ.get(spelling):
                found[spelling] = environ[spelling]
    if "cert" in pip:
        found.setdefault("SSL_CERT_FILE", pip["cert"])
    rust = Path(environ.get("RUSTUP_HOME") or Path(environ.get("HOME", "/")) / ".rustup")
    if (rust / "settings.toml").exists():
        # The compilers that its `cargo` on PATH stands for; a box has another home.
        found["RUSTUP_HOME"] = str(rust)
    found.update({_variable(option): value for option, value in pip.items()})
    # A box must not read the files again: what they say is here, made absolute.
    found["PIP_CONFIG_FILE"] = os.devnull
    found["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    found.update(_for_uv(pip))
    found.update(
        {
            name: value
            for name, value in environ.items()
            if name.startswith("UV_") and name not in _UV_NOT_INHERITED
        }
    )
    return found


#: Settings of uv that name places of the host, or the project that happens to be active.
_UV_NOT_INHERITED = frozenset(
    {
        "UV_CACHE_DIR",
        "UV_PROJECT",
        "UV_PROJECT_ENVIRONMENT",
        "UV_WORKING_DIR",
        "UV_WORKING_DIRECTORY",
        "UV_PYTHON",
        "UV_SYSTEM_PYTHON",
        "UV_TOOL_DIR",
        "UV_TOOL_BIN_DIR",
        "UV_PYTHON_INSTALL_DIR",
        "UV_PYTHON_BIN_DIR",
        "UV_INSTALL_DIR",
        "UV_ENV_FILE",
        "UV_TARGET",
        "UV_PREFIX",
        "UV",
    }
)


def _variable(option: str) -> str:
    return "PIP_" + option.upper().replace("-", "_")


def _pip_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's options as it would see them here: files in its order, then variables.

    The order and the sections are those of pip's documentation, "Configuration".
    """
    # What any file says of `install` beats what any says globally.
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for file in _pip_files(environ):
        for section, options in _from_file(file).items():
            sections[section].update(options)
    settings = sections["global"] | sections["install"]
    for name, value in environ.items():
        if name.startswith("PIP_") and value:
            option = name.removeprefix("PIP_").lower().replace("_", "-")
            settings[option] = _absolute_all(option, value, Path.cwd())
    return {
        option: value
        for option, value in sorted(settings.items())
        if option not in _NOT_INHERITED and value
    }


def _pip_files(environ: Mapping[str, str]) -> list[Path]:
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    folders = environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    files = [Path(folder) / "pip" / "pip.conf" for folder in folders.split(os.pathsep) if folder]
    files.append(Path("/etc/pip.conf"))
    home = environ.get("HOME")
    if home and not (chosen and Path(chosen).exists()):
        files.append(Path(home) / ".pip" / "pip.conf")
        config = environ.get("XDG_CONFIG_HOME") or str(Path(home) / ".config")
        files.append(Path(config) / "pip" / "pip.conf")
    if environ.get("VIRTUAL_ENV"):
        files.append(Path(environ["VIRTUAL_ENV"]) / "pip.conf")
    if chosen:
        files.append(Path(chosen))
    return files


def _from_file(file: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise HostError(
            f"{file}: pip's configuration cannot be read: {error}",
            advice="mend it, or name another one by PIP_CONFIG_FILE (/dev/null for none)",
        ) from error
    found: dict[str, dict[str, str]] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            options = {name.replace("_", "-"): value for name, value in parser.items(section)}
            found[section] = {
                name: _absolute_all(name, value, file.parent) for name, value in options.items()
            }
    return found


def _absolute_all(option: str, value: str, relative_to: Path) -> str:
    values = value.split() if option in _LISTS else [value.strip()]
    if option in _PATHS:
        values = [_absolute(item, relative_to) for item in values]
    return " ".join(values)


def _absolute(value: str, relative_to: Path) -> str:
    """A path made absolute; an address stays as it is."""
    if "://" in value or value.startswith("file:"):
        return value
    return str(relative_to / Path(value).expanduser())


def _for_uv(pip: Mapping[str, str]) -> dict[str, str]:
    """The same settings in uv's words."""
    translated: dict[str, str] = {}
    indexes = [url for url in pip.get("extra-index-url", "").split() if _may_exist(url)]
    if pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        # uv has no variable for it; an index without a package is the same.
        translated["UV_DEFAULT_INDEX"] = "file:///nonexistent"
    elif indexes or "index-url" in pip:
        if "index-url" in pip:
            translated["UV_DEFAULT_INDEX"] = pip["index-url"]
        if indexes:
            translated["UV_INDEX"] = " ".join(indexes)
            # pip takes the best version of all indexes; uv by default that of the first.
            translated["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if "find-links" in pip:
        # pip passes over a folder that does not exist; uv gives up.
        links = [link for link in pip["find-links"].split() if _may_exist(link)]
        if links:
            translated["UV_FIND_LINKS"] = ",".join(links)
    if "constraint" in pip:
        translated["UV_CONSTRAINT"] = pip["constraint"]
    if "trusted-host" in pip:
        translated["UV_INSECURE_HOST"] = pip["trusted-host"]
    if "timeout" in pip or "default-timeout" in pip:
        translated["UV_HTTP_TIMEOUT"] = pip.get("timeout") or pip["default-timeout"]
    return translated


def _may_exist(link: str) -> bool:
    """Not a folder of this host that is absent."""
    path = link.removeprefix("file://") if link.startswith("file://") else link
    return not path.startswith("/") or Path(unquote(path)).exists()
