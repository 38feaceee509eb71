"""Makes a Kokoro model with random weights: OUT/kokoro-v1_0.pth and OUT/config.json.

    python weights.py OUT --seed 0

The class is the real one, and says which weights there are. What it has at random is drawn again,
as whole numbers: torch's own random numbers differ between processors. Its decoder's widths are
fixed in its code, so the file is not tiny: depths are cut instead, and numbers are kept in half
precision, which loading turns back. A symbol lasts a few frames only (`max_dur`), so that speech
is short.
"""

import argparse
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from kokoro import KModel

# The symbols and their numbers are those of the repository's api/src/models/v1_0/config.json:
# the model speaks by number, and symbols that are not here are left out of the speech. Each is
# given by its code point.
SYMBOLS = """
3b:1 3a:2 2c:3 2e:4 21:5 3f:6 2014:9 2026:10 22:11 28:12 29:13 201c:14 201d:15 20:16 303:17
2a3:18 2a5:19 2a6:20 2a8:21 1d5d:22 ab67:23 41:24 49:25 4f:31 51:33 53:35 54:36 57:39 59:41
1d4a:42 61:43 62:44 63:45 64:46 65:47 66:48 68:50 69:51 6a:52 6b:53 6c:54 6d:55 6e:56 6f:57
70:58 71:59 72:60 73:61 74:62 75:63 76:64 77:65 78:66 79:67 7a:68 251:69 250:70 252:71 e6:72
3b2:75 254:76 255:77 e7:78 256:80 f0:81 2a4:82 259:83 25a:85 25b:86 25c:87 25f:90 261:92 265:99
268:101 26a:102 29d:103 26f:110 270:111 14b:112 273:113 272:114 274:115 f8:116 278:118 3b8:119
153:120 279:123 27e:125 27b:126 281:128 27d:129 282:130 283:131 288:132 2a7:133 28a:135 28b:136
28c:138 263:139 264:140 3c7:142 28e:143 292:147 294:148 2c8:156 2cc:157 2d0:158 2b0:162 2b2:164
2193:169 2192:171 2197:172 2198:173 1d7b:177
"""
VOCABULARY = {
    chr(int(point, 16)): int(number)
    for point, number in (pair.split(":") for pair in SYMBOLS.split())
}
CONFIG = {
    "istftnet": {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]],
        "resblock_kernel_sizes": [3],
        "upsample_initial_channel": 512,
    },
    "dim_in": 64,
    "dropout": 0.2,
    "hidden_dim": 512,
    "max_conv_dim": 512,
    "max_dur": 6,
    "multispeaker": True,
    "n_layer": 1,
    "n_mels": 80,
    "n_token": 178,
    "style_dim": 128,
    "text_encoder_kernel_size": 5,
    "plbert": {
        "hidden_size": 64,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "max_position_embeddings": 512,
        "num_hidden_layers": 1,
        "dropout": 0.1,
    },
    "vocab": VOCABULARY,
}
#: What the published file holds: the weights of each of these parts under its name.
PARTS = ("bert", "bert_encoder", "predictor", "decoder", "text_encoder")
STEPS = 1 << 12


def drawn(name: str, tensor: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
    """A tensor of that shape in half precision; zeros and ones stay what they are."""
    if not tensor.is_floating_point():
        return tensor
    if bool((tensor == 0).all() or (tensor == 1).all()):
        return tensor.half()
    if name.endswith("weight_g"):  # the length of the vectors in `weight_v`, as drawn below
        return torch.full_like(tensor, math.sqrt(1 / 3)).half()
    whole = random.integers(-STEPS, STEPS + 1, tuple(tensor.shape))
    into = tensor[0].numel() if tensor.dim() > 1 else tensor.numel()
    # As torch's own layers begin: to a third of the variance that keeps the size of what passes.
    return torch.from_numpy((whole / (STEPS * math.sqrt(into))).astype(np.float16))


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        # The class wants a file of weights; from one without any it keeps its own random ones.
        nothing = Path(folder) / "nothing.pth"
        torch.save({}, nothing)
        model = KModel(repo_id="hexgrad/Kokoro-82M", config=CONFIG, model=str(nothing))
    arguments.out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(arguments.seed)
    weights = {
        part: {
            name: drawn(name, tensor, random)
            for name, tensor in getattr(model, part).state_dict().items()
        }
        for part in PARTS
    }
    torch.save(weights, arguments.out / "kokoro-v1_0.pth")
    text = json.dumps(CONFIG, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    (arguments.out / "config.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
