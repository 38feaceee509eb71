"""Does a framework see the GPUs and compute on each? Runs in the judged environment.

Stand-alone, Python 3.6 and newer: `device.py FRAMEWORK SEED ANSWER.json`. On every device it
multiplies two small integer matrices drawn from SEED, which the harness draws at run time,
and writes the products; the harness compares them with its own. Only the answer file counts:
whatever is printed is for people.
"""

import json
import random
import sys
from typing import Any

SIZE = 8


def matrices(seed: str) -> "list[list[list[float]]]":
    """Two matrices of small integers, exact in every floating-point type."""
    source = random.Random(seed)  # noqa: S311  # not a secret
    return [
        [[float(source.randint(-8, 8)) for _ in range(SIZE)] for _ in range(SIZE)] for _ in range(2)
    ]


def ask_torch(seed: str) -> "dict[str, Any]":
    """What torch says and computes."""
    import torch

    left, right = matrices(seed)
    answer: dict[str, Any] = {
        "version": str(torch.__version__),
        "cuda": torch.version.cuda,
        "architectures": list(torch.cuda.get_arch_list()),
        "devices": [],
        "libraries": {},
    }
    if torch.cuda.is_available():
        answer["libraries"]["cudnn"] = torch.backends.cudnn.version()
        nccl = getattr(torch.cuda, "nccl", None)
        if nccl is not None:
            answer["libraries"]["nccl"] = ".".join(str(part) for part in nccl.version())
        for index in range(torch.cuda.device_count()):
            device = torch.device("cuda", index)
            product: list[list[float]] = []
            error = ""
            try:
                found = torch.tensor(left, device=device) @ torch.tensor(right, device=device)
                product = found.cpu().tolist()
            except RuntimeError as problem:  # such as no code for this card
                error = str(problem).strip().splitlines()[0][:2000]
            major, minor = torch.cuda.get_device_capability(index)
            answer["devices"].append(
                {
                    "name": torch.cuda.get_device_name(index),
                    "architecture": f"sm_{major}{minor}",
                    "product": product,
                    "error": error,
                }
            )
    return answer


def ask_jax(seed: str) -> "dict[str, Any]":
    """What jax says and computes."""
    import jax
    import jax.numpy as jnp

    left, right = matrices(seed)
    answer: dict[str, Any] = {"version": str(jax.__version__), "devices": [], "libraries": {}}
    for device in jax.devices():
        if device.platform not in ("gpu", "cuda"):
            continue
        product = jnp.dot(
            jax.device_put(jnp.array(left), device), jax.device_put(jnp.array(right), device)
        )
        answer["devices"].append({"name": device.device_kind, "product": product.tolist()})
    return answer


def ask_tensorflow(seed: str) -> "dict[str, Any]":
    """What tensorflow says and computes."""
    import tensorflow as tf

    left, right = matrices(seed)
    build = dict(tf.sysconfig.get_build_info())
    answer: dict[str, Any] = {
        "version": str(tf.__version__),
        "cuda": build.get("cuda_version"),
        "libraries": {"cudnn": build.get("cudnn_version")},
        "devices": [],
    }
    for index, device in enumerate(tf.config.list_physical_devices("GPU")):
        with tf.device(f"/GPU:{index}"):
            product = tf.linalg.matmul(tf.constant(left), tf.constant(right))
        answer["devices"].append({"name": device.name, "product": product.numpy().tolist()})
    return answer


def main(framework: str, seed: str, path: str) -> None:
    """Ask one framework and write its answer."""
    ask = {"torch": ask_torch, "jax": ask_jax, "tensorflow": ask_tensorflow}[framework]
    answer = ask(seed)
    answer["seed"] = seed
    with open(path, "w") as stream:  # noqa: PTH123
        json.dump(answer, stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
