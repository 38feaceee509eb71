"""Makes a small RenderFormer with random weights: OUT/config.json and OUT/model.safetensors.

    python weights.py OUT --seed 0

The names and shapes are those that the class RenderFormer of the repository makes from this
configuration. Loading it is not strict, so a name that were missing here would go unseen.
Drawn are whole numbers: torch's normal ones differ between processors.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

STEPS = 1 << 12
WIDTH, HIDDEN, HEADS = 128, 192, 2
LAYERS, VIEW_LAYERS = 2, 4
REGISTERS, CHANNELS, TEXTURE, PATCH = 16, 13, 32, 8
POINT_FREQUENCIES, NORMAL_FREQUENCIES = 6, 6
FEATURES, FEATURE_CHANNELS = 16, (8, 8, 16, 16)

CONFIG = {
    "activation": "swiglu",
    "bias": False,
    "dim_feedforward": HIDDEN,
    "dpt_features": FEATURES,
    "dpt_out_channels": list(FEATURE_CHANNELS),
    "dpt_out_layers": None,
    "dropout": 0.0,
    "include_alpha": False,
    "latent_dim": WIDTH,
    "norm_first": True,
    "norm_type": "rms_norm",
    "num_heads": HEADS,
    "num_layers": LAYERS,
    "num_register_tokens": REGISTERS,
    "patch_size": PATCH,
    "pe_type": "rope",
    "qk_norm": True,
    "rope_double_max_freq": False,
    "rope_type": "triangle",
    "texture_channels": CHANNELS,
    "texture_encode_patch_size": TEXTURE,
    "texture_encoder_norm_type": "rms_norm",
    "turn_to_cam_coord": True,
    "use_dpt_decoder": True,
    "use_ldr": False,
    "use_vn_encoder": True,
    "vdir_num_freqs": 0,
    "vdir_pe_type": "nerf",
    "vertex_pe_num_freqs": POINT_FREQUENCIES,
    "view_indep_qk_norm": True,
    "view_transformer_ffn_hidden_dim": HIDDEN,
    "view_transformer_include_self_attn": True,
    "view_transformer_latent_dim": WIDTH,
    "view_transformer_n_heads": HEADS,
    "view_transformer_n_layers": VIEW_LAYERS,
    "view_transformer_use_swin_attn": False,
    "vn_encoder_norm_type": "rms_norm",
    "vn_pe_num_freqs": NORMAL_FREQUENCIES,
}


class Weights(dict[str, torch.Tensor]):
    """Tensors by name, drawn in the order in which they are asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = np.random.default_rng(seed)

    def _draw(self, *shape: int, spread: float = 1.0) -> torch.Tensor:
        """Numbers with this standard deviation."""
        whole = self._random.integers(-STEPS, STEPS + 1, shape)
        return torch.from_numpy((whole * (math.sqrt(3) * spread / STEPS)).astype(np.float32))

    def token(self, name: str, *shape: int) -> None:
        """A learned token."""
        self[name] = self._draw(*shape)

    def norm(self, *names: str) -> None:
        """Normalizations, which begin as one."""
        for name in names:
            self[f"{name}.weight"] = torch.ones(WIDTH)

    def linear(self, name: str, out: int, into: int, *, bias: bool = False) -> None:
        """A matrix that keeps the size of what passes it."""
        self[f"{name}.weight"] = self._draw(out, into, spread=1 / math.sqrt(into))
        if bias:
            self[f"{name}.bias"] = self._draw(out, spread=0.1)

    def convolution(self, name: str, out: int, into: int, size: int, *, bias: bool = True) -> None:
        """A square convolution."""
        self[f"{name}.weight"] = self._draw(
            out, into, size, size, spread=1 / (size * math.sqrt(into))
        )
        if bias:
            self[f"{name}.bias"] = self._draw(out, spread=0.1)

    def frequencies(self, name: str, count: int) -> None:
        """The frequencies of positions, which are not learned."""
        self[name] = torch.tensor([(count - 1) ** (at / (count - 1)) for at in range(count)])

    def self_attention(self, name: str) -> None:
        """Attention whose three inputs are one."""
        self.linear(f"{name}.in_proj", 3 * WIDTH, WIDTH)
        self.linear(f"{name}.out_proj", WIDTH, WIDTH)
        self.norm(f"{name}.q_norm", f"{name}.k_norm")

    def feed_forward(self, name: str) -> None:
        """A gated layer."""
        self.linear(f"{name}.w1", HIDDEN, WIDTH)
        self.linear(f"{name}.w2", WIDTH, HIDDEN)
        self.linear(f"{name}.w3", HIDDEN, WIDTH)


def draw(seed: int) -> dict[str, torch.Tensor]:
    """All weights of the model."""
    weights = Weights(seed)
    weights.token("tri_token", 1, 1, WIDTH)
    weights.token("reg_tokens", 1, REGISTERS, WIDTH)
    weights.linear("vn_encoding_proj", WIDTH, 9 * (2 * NORMAL_FREQUENCIES + 1), bias=True)
    weights.linear("texture_encoder", WIDTH, CHANNELS * TEXTURE * TEXTURE, bias=True)
    weights.norm("vn_encoder_norm", "texture_encoder_norm")
    for layer in range(LAYERS):
        at = f"transformer.layers.{layer}"
        weights.self_attention(f"{at}.multihead_attn")
        weights.feed_forward(f"{at}.ffn")
        weights.norm(f"{at}.query_norm", f"{at}.ffn_norm")
    weights.frequencies("transformer.rope_emb.freqs", POINT_FREQUENCIES // 2)

    view = "view_transformer"
    weights.token(f"{view}.ray_map_patch_token", 1, 1, WIDTH)
    weights.linear(f"{view}.ray_map_encoder", WIDTH, 3 * PATCH * PATCH, bias=True)
    weights.norm(f"{view}.ray_map_encoder_norm")
    for layer in range(VIEW_LAYERS):
        at = f"{view}.transformer.layers.{layer}"
        for part in ("q", "k", "v", "out"):
            weights.linear(f"{at}.multihead_attn.{part}_proj", WIDTH, WIDTH)
        weights.norm(f"{at}.multihead_attn.q_norm", f"{at}.multihead_attn.k_norm")
        weights.self_attention(f"{at}.self_attn")
        weights.feed_forward(f"{at}.ffn")
        names = ("query_norm", "kv_norm", "self_attn_norm", "ffn_norm")
        weights.norm(*(f"{at}.{name}" for name in names))
    weights.frequencies(f"{view}.transformer.rope_emb.freqs", POINT_FREQUENCIES // 2)

    image = f"{view}.out_dpt"
    first, second, _, fourth = FEATURE_CHANNELS
    for number, channels in enumerate(FEATURE_CHANNELS):
        weights.convolution(f"{image}.projects.{number}", channels, WIDTH, 1)
        layer = f"{image}.scratch.layer{number + 1}_rn"
        weights.convolution(layer, FEATURES, channels, 3, bias=False)
    weights.convolution(f"{image}.resize_layers.0", first, first, 4)
    weights.convolution(f"{image}.resize_layers.1", second, second, 2)
    weights.convolution(f"{image}.resize_layers.3", fourth, fourth, 3)
    for number in range(1, 5):
        at = f"{image}.scratch.refinenet{number}"
        weights.convolution(f"{at}.out_conv", FEATURES, FEATURES, 1)
        # The deepest of the four has nothing to be joined with.
        for unit in (2,) if number == 4 else (1, 2):
            weights.convolution(f"{at}.resConvUnit{unit}.conv1", FEATURES, FEATURES, 3)
            weights.convolution(f"{at}.resConvUnit{unit}.conv2", FEATURES, FEATURES, 3)
    out = f"{image}.scratch"
    weights.convolution(f"{out}.output_conv1", FEATURES // 2, FEATURES, 3)
    weights.convolution(f"{out}.output_conv2.0", 32, FEATURES // 2, 3)
    weights.convolution(f"{out}.output_conv2.2", 3, 32, 1)
    # A logarithm of light: small and mostly above zero, so that the picture is neither black
    # nor overexposed.
    weights[f"{out}.output_conv2.2.weight"] *= 0.02
    weights[f"{out}.output_conv2.2.bias"] = torch.full((3,), 0.15)
    return dict(weights)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    save_file(draw(arguments.seed), arguments.out / "model.safetensors")
    text = json.dumps(CONFIG, indent=2, sort_keys=True) + "\n"
    (arguments.out / "config.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
