"""Does jax compute by itself? Small known-good cases, beside an entry point that failed.

Stand-alone, Python 3.9 and newer: `jax_canaries.py SEED DEVICES ANSWER [PLATFORM]`. Inputs are
drawn from SEED, answers are computed by numpy in float64 and compared by relative norm; NaN never
passes. With several devices, a sum over all of them is a case too. ANSWER gets a JSON object
a line as each case begins and ends, as `canaries.py` writes it. They never decide a verdict.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: How far an answer may be off, as a part of its norm: float32 may be computed in TF32.
FLOAT32, BFLOAT16 = 5e-3, 3e-2


def say(path: str, **facts: Any) -> None:
    """Add a line to the answer."""
    with open(path, "a") as stream:  # noqa: PTH123
        stream.write(json.dumps(facts) + "\n")


def off(found: Any, expected: Any) -> float:
    """The relative norm of the difference; infinite where anything is not finite."""
    import numpy as np

    found = np.asarray(found).astype(np.float64)
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.linalg.norm(found - expected) / max(float(np.linalg.norm(expected)), 1e-12))


def drawn(seed: int, kind: Any, *shape: int) -> tuple[Any, Any]:
    """(numbers of a normal distribution as the kind holds them, the same in float64)."""
    import numpy as np

    held = np.random.default_rng(seed).standard_normal(shape).astype(kind)
    return held, held.astype(np.float64)


def matrix_product(device: Any, seed: int, kind: Any) -> float:
    """A product of two matrices."""
    import jax

    (left, exact_left), (right, exact_right) = (
        drawn(seed, kind, 384, 512),
        drawn(seed + 1, kind, 512, 256),
    )
    found = jax.jit(lambda a, b: a @ b)(jax.device_put(left, device), jax.device_put(right, device))
    return off(found, exact_left @ exact_right)


def convolution(device: Any, seed: int, kind: Any) -> float:
    """A convolution: cuDNN."""
    import jax
    import numpy as np

    image, exact_image = drawn(seed, kind, 2, 8, 32, 32)
    weight, exact_weight = drawn(seed + 1, kind, 16, 8, 3, 3)
    found = jax.lax.conv(
        jax.device_put(image, device), jax.device_put(weight, device), (1, 1), "VALID"
    )
    windows = np.lib.stride_tricks.sliding_window_view(exact_image, (3, 3), axis=(2, 3))
    return off(found, np.einsum("nchwij,ocij->nohw", windows, exact_weight))


def sum_over_all(devices: list[Any], seed: int) -> float:
    """A sum of parts of which each device holds one."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    parts, exact = drawn(seed, np.float32, len(devices), 4096)
    where = NamedSharding(Mesh(np.array(devices), ("parts",)), PartitionSpec("parts"))
    found = jax.jit(lambda every: every.sum(axis=0))(jax.device_put(parts, where))
    return off(found, exact.sum(axis=0))


def attempt(path: str, name: str, tolerance: float, case: Callable[[], float]) -> None:
    """Run a case and write how it went."""
    say(path, name=name, begun=True)
    began = time.time()
    try:
        error = case()
    except Exception as problem:  # noqa: BLE001  # whatever it is, is the answer
        words = f"{type(problem).__name__}: {problem}".strip().splitlines()[0][:300]
        say(path, name=name, passed=False, said=words, seconds=time.time() - began)
        return
    said = "" if error <= tolerance else f"wrong by {error:.3g} of its norm"
    say(path, name=name, passed=error <= tolerance, said=said, seconds=time.time() - began)


def main(seed: int, count: int, path: str, platform: str = "gpu") -> None:
    """All canaries of that many devices; on `cpu` they show that they themselves are right."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    import numpy as np

    devices = list(jax.devices(platform))[:count]
    kinds = (("float32", np.float32, FLOAT32), ("bfloat16", np.dtype(jnp.bfloat16), BFLOAT16))
    for number, device in enumerate(devices):
        where = f", device {number}" if count > 1 else ""
        for title, case in (("matrix product", matrix_product), ("convolution", convolution)):
            for kind_name, kind, tolerance in kinds:
                attempt(
                    path,
                    f"jax: {title}, {kind_name}{where}",
                    tolerance,
                    lambda c=case, d=device, k=kind: c(d, seed, k),  # type: ignore[misc]
                )
    if count > 1:
        attempt(path, "jax: sum over all devices", FLOAT32, lambda: sum_over_all(devices, seed))
    say(path, name="end")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
