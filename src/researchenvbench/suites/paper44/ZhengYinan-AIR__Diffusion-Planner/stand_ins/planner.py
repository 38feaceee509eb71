"""Makes a planner's stand-in: random weights of the same network, narrower and less deep.

Called as `python planner.py OUT --seed N`. It writes what the original has: `args.json`, what the
training was asked for, and `model.pth`, with the averaged weights as they are named where the
training was spread over processes.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy
import torch

HIDDEN, HEADS, DEPTH = 48, 6, 1
PAST, FUTURE = 21, 80
STATIC_NUMBERS, LANE_POINTS, ROUTE_LANES = 10, 20, 25
# Widths that the code fixes: of what a mixer mixes for agents and lanes, and for the route.
TOKENS, CHANNELS = 64, 128
ROUTE_TOKENS, ROUTE_CHANNELS = 32, 64
TIME_WIDTH, WAY_WIDTH = 256, 512
STEPS = 1 << 20


def widened(values: list[float], numbers: int) -> list[float]:
    """The list, with zeros up to this length."""
    return values + [0.0] * (numbers - len(values))


PLACE = {"mean": [10, 0, 0, 0], "std": [20, 20, 1, 1]}
OBSERVATION = {
    "ego_current_state": {
        "mean": widened([10], 10),
        "std": [20, 20, 1, 1, 20, 20, 20, 20, 1, 1],
    },
    "neighbor_agents_past": {
        "mean": widened([10], 11),
        "std": [20, 20, 1, 1, 20, 20, 20, 20, 1, 1, 1],
    },
    "static_objects": {"mean": widened([10], 10), "std": [20, 20, 1, 1, 20, 20, 1, 1, 1, 1]},
    "lanes": {"mean": widened([10], 12), "std": [20] * 8 + [1] * 4},
    "lanes_speed_limit": {"mean": [0], "std": [20]},
    "route_lanes": {"mean": widened([10], 12), "std": [20] * 8 + [1] * 4},
    "route_lanes_speed_limit": {"mean": [0], "std": [20]},
}
PREDICTED = 10
ARGS = {
    "agent_num": 32,
    "agent_state_dim": 11,
    "decoder_depth": DEPTH,
    "decoder_drop_path_rate": 0.1,
    "device": "cpu",
    "diffusion_model_type": "x_start",
    "encoder_depth": DEPTH,
    "encoder_drop_path_rate": 0.1,
    "future_len": FUTURE,
    "hidden_dim": HIDDEN,
    "lane_len": LANE_POINTS,
    "lane_num": 70,
    "lane_state_dim": 12,
    "num_heads": HEADS,
    "observation_normalizer": OBSERVATION,
    "predicted_neighbor_num": PREDICTED,
    "route_len": LANE_POINTS,
    "route_num": ROUTE_LANES,
    "route_state_dim": 12,
    "state_normalizer": {name: [[values]] * (1 + PREDICTED) for name, values in PLACE.items()},
    "static_objects_num": 5,
    "static_objects_state_dim": STATIC_NUMBERS,
    "time_len": PAST,
}


class Weights(dict[str, torch.Tensor]):
    """Tensors by name, drawn in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = numpy.random.default_rng(seed)

    def draw(self, name: str, *shape: int, spread: float) -> None:
        """Numbers with this standard deviation."""
        whole = self._random.integers(-STEPS, STEPS + 1, shape)
        values = (whole * (math.sqrt(3) * spread / STEPS)).astype(numpy.float32)
        self[f"module.{name}"] = torch.from_numpy(values)

    def linear(self, name: str, out: int, into: int, *, joint: str = ".") -> None:
        """A matrix that keeps the size of what passes it, with its bias."""
        self.draw(f"{name}{joint}weight", out, into, spread=1 / math.sqrt(into))
        self.draw(f"{name}{joint}bias", out, spread=0.05)

    def norm(self, name: str, width: int) -> None:
        """A normalization, which begins as one."""
        self[f"module.{name}.weight"] = torch.ones(width)
        self[f"module.{name}.bias"] = torch.zeros(width)

    def mlp(self, name: str, into: int, within: int, out: int) -> None:
        """Two layers."""
        self.linear(f"{name}.fc1", within, into)
        self.linear(f"{name}.fc2", out, within)

    def mixer(self, name: str, tokens: int, channels: int) -> None:
        """A block that mixes channels, then tokens."""
        self.norm(f"{name}.norm1", channels)
        self.mlp(f"{name}.channels_mlp", channels, channels, channels)
        self.norm(f"{name}.norm2", channels)
        self.mlp(f"{name}.tokens_mlp", tokens, tokens, tokens)

    def attention(self, name: str) -> None:
        """Attention between tokens."""
        self.linear(f"{name}.in_proj", 3 * HIDDEN, HIDDEN, joint="_")
        self.linear(f"{name}.out_proj", HIDDEN, HIDDEN)

    def sequence(self, name: str, numbers: int, length: int, blocks: list[str]) -> None:
        """An encoder of sequences: of what neighbours did, of a lane's points, of the route's."""
        route = name.endswith("route_encoder")
        tokens, channels = (ROUTE_TOKENS, ROUTE_CHANNELS) if route else (TOKENS, CHANNELS)
        self.mlp(f"{name}.channel_pre_project", numbers, channels, channels)
        self.mlp(f"{name}.token_pre_project", length, tokens, tokens)
        for block in blocks:
            self.mixer(f"{name}.{block}", tokens, channels)
        self.norm(f"{name}.norm", channels)
        self.mlp(f"{name}.emb_project", channels, HIDDEN, HIDDEN)


def draw(seed: int) -> dict[str, torch.Tensor]:
    """All weights of the network."""
    weights = Weights(seed)
    blocks = [f"blocks.{number}" for number in range(DEPTH)]
    encoder = "encoder.encoder"
    weights.linear(f"{encoder}.neighbor_encoder.type_emb", CHANNELS, 3)
    weights.sequence(f"{encoder}.neighbor_encoder", 9, PAST, blocks)
    weights.mlp(f"{encoder}.static_encoder.projection", STATIC_NUMBERS, HIDDEN, HIDDEN)
    lanes = f"{encoder}.lane_encoder"
    weights.linear(f"{lanes}.speed_limit_emb", CHANNELS, 1)
    weights.draw(f"{lanes}.unknown_speed_emb.weight", 1, CHANNELS, spread=0.02)
    weights.linear(f"{lanes}.traffic_emb", CHANNELS, 4)
    weights.sequence(lanes, 8, LANE_POINTS, blocks)
    for block in blocks:
        at = f"{encoder}.fusion.{block}"
        weights.norm(f"{at}.norm1", HIDDEN)
        weights.attention(f"{at}.attn")
        weights.norm(f"{at}.norm2", HIDDEN)
        weights.mlp(f"{at}.mlp", HIDDEN, 4 * HIDDEN, HIDDEN)
    weights.norm(f"{encoder}.fusion.norm", HIDDEN)
    weights.linear(f"{encoder}.pos_emb", HIDDEN, 7)

    decoder = "decoder.decoder.dit"
    way = 4 * (1 + FUTURE)
    weights.sequence(f"{decoder}.route_encoder", 4, ROUTE_LANES * LANE_POINTS, ["Mixer"])
    weights.draw(f"{decoder}.agent_embedding.weight", 2, HIDDEN, spread=0.02)
    weights.mlp(f"{decoder}.preproj", way, WAY_WIDTH, HIDDEN)
    weights.linear(f"{decoder}.t_embedder.mlp.0", HIDDEN, TIME_WIDTH)
    weights.linear(f"{decoder}.t_embedder.mlp.2", HIDDEN, HIDDEN)
    for block in blocks:
        at = f"{decoder}.{block}"
        for number in range(1, 5):
            weights.norm(f"{at}.norm{number}", HIDDEN)
        weights.attention(f"{at}.attn")
        weights.attention(f"{at}.cross_attn")
        weights.mlp(f"{at}.mlp1", HIDDEN, 4 * HIDDEN, HIDDEN)
        weights.mlp(f"{at}.mlp2", HIDDEN, 4 * HIDDEN, HIDDEN)
        weights.linear(f"{at}.adaLN_modulation.1", 6 * HIDDEN, HIDDEN)
    last = f"{decoder}.final_layer"
    weights.norm(f"{last}.norm_final", HIDDEN)
    weights.norm(f"{last}.proj.0", HIDDEN)
    weights.linear(f"{last}.proj.1", 4 * HIDDEN, HIDDEN)
    weights.norm(f"{last}.proj.3", 4 * HIDDEN)
    weights.linear(f"{last}.proj.4", way, 4 * HIDDEN)
    weights.linear(f"{last}.adaLN_modulation.1", 2 * HIDDEN, HIDDEN)
    return dict(weights)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    text = json.dumps(ARGS, indent=2, sort_keys=True) + "\n"
    (arguments.out / "args.json").write_text(text, encoding="utf-8")
    torch.save({"ema_state_dict": draw(arguments.seed)}, arguments.out / "model.pth")


if __name__ == "__main__":
    main()
