"""A random pipeline of the class of PixArt-alpha/PixArt-XL-2-1024-MS, with small dimensions.

    python pipeline.py OUT --seed 0

OUT becomes a folder as the hub has it: tokenizer, text encoder, transformer, decoder of images and
scheduler. The transformer works on 64 x 64 latent numbers, for images of 512 x 512 pixels: one of
the sizes for which the pipeline has tables. diffusers and transformers name the weights and write
the files; the numbers are drawn here, as whole ones, which every processor draws alike.
"""

from __future__ import annotations

import argparse
import io
import math
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from diffusers import (
    AutoencoderKL,
    DPMSolverMultistepScheduler,
    PixArtAlphaPipeline,
    PixArtTransformer2DModel,
)
from transformers import T5Config, T5EncoderModel, T5Tokenizer

WIDTH, LAYERS, HEADS, LATENT = 64, 4, 4, 64
STEPS = 2**15
TEXT = (
    "An astronaut in a jungle, in cold colours, muted and detailed.",
    "A lion in galaxies, spirals, nebulae, stars, smoke, iridescent.",
    "Nothing of this is drawn: the model that reads it was never taught.",
)


def draw(model: torch.nn.Module, random: np.random.Generator) -> None:
    """Fill the weights: ones for norms, zeros for biases, else a variance of 1 / inputs."""
    for name, tensor in sorted(model.state_dict().items()):
        if tensor.ndim < 2:
            filled = np.full(tensor.shape, float(name.endswith("weight")), np.float32)
        else:
            whole = random.integers(-STEPS, STEPS + 1, tuple(tensor.shape))
            scale = math.sqrt(3 / math.prod(tensor.shape[1:])) / STEPS
            filled = (whole * scale).astype(np.float32)
        tensor.copy_(torch.from_numpy(filled))


def words(folder: Path) -> T5Tokenizer:
    """The tokenizer, of pieces of a few sentences and all bytes."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=made, model_type="bpe", vocab_size=320,
        byte_fallback=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1,
        minloglevel=2,
    )  # fmt: skip
    file = folder / "spiece.model"
    file.write_bytes(made.getvalue())
    return T5Tokenizer(str(file), extra_ids=0, legacy=True)


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True)
    tokenizer = words(arguments.out)
    encoder = T5EncoderModel(
        T5Config(
            vocab_size=320, d_model=WIDTH, d_kv=16, d_ff=128, num_layers=2, num_heads=HEADS,
            feed_forward_proj="gated-gelu",
        )
    )  # fmt: skip
    transformer = PixArtTransformer2DModel(
        num_attention_heads=HEADS, attention_head_dim=WIDTH // HEADS, num_layers=LAYERS,
        cross_attention_dim=WIDTH, caption_channels=WIDTH, sample_size=LATENT, in_channels=4,
        out_channels=8, use_additional_conditions=False,
    )  # fmt: skip
    decoder = AutoencoderKL(
        block_out_channels=(16, 16, 32, 32), norm_num_groups=8, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1, sample_size=512,
    )  # fmt: skip
    random = np.random.default_rng(arguments.seed)
    with torch.no_grad():
        for model in (encoder, transformer, decoder):
            draw(model, random)
    PixArtAlphaPipeline(
        tokenizer=tokenizer, text_encoder=encoder, vae=decoder, transformer=transformer,
        scheduler=DPMSolverMultistepScheduler(),
    ).save_pretrained(arguments.out)  # fmt: skip
    (arguments.out / "spiece.model").unlink()


if __name__ == "__main__":
    main()
