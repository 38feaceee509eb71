"""A random model of the class of Mipha-3B (a SigLIP tower, a projector, a Phi), and a tokenizer.

    python model.py OUT --seed 0

OUT becomes a folder as the hub has it: configuration, weights, tokenizer, image processor. The
tower keeps three layers, since the features are those of the last but one.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

WIDTH, INNER, HEADS, LAYERS, TOKENS = 64, 128, 4, 2, 512
TOWER, TOWER_INNER, TOWER_LAYERS, SIDE, PATCH = 48, 96, 3, 56, 14
CONTEXT, STEPS, END = 1024, 2**15, "<|endoftext|>"
#: What the tokenizer is trained on. All bytes are in it from the start, so any text can be read.
TEXT = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions. USER: ASSISTANT: What is in "
    "the picture? Generate an image of a cat. Next, change its color. Please make the picture "
    "sharp again. <image_gen> </image_gen> <image_edit> </image_edit>"
)


def tokenizer() -> Tokenizer:
    """Byte-level BPE."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator([TEXT], trainer)
    return made


def weights(seed: int) -> dict[str, np.ndarray]:
    """The parameters by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, np.ndarray] = {}

    def draw(name: str, *shape: int, columns: int) -> None:
        # Whole numbers, which every processor draws alike, to a variance of 1 / columns.
        whole = random.integers(-STEPS, STEPS + 1, shape)
        state[name] = (whole * (math.sqrt(3 / columns) / STEPS)).astype(np.float32)

    def layer(name: str, rows: int, columns: int) -> None:
        draw(f"{name}.weight", rows, columns, columns=columns)
        state[f"{name}.bias"] = np.zeros(rows, np.float32)

    def norm(name: str, width: int) -> None:
        state[f"{name}.weight"] = np.ones(width, np.float32)
        state[f"{name}.bias"] = np.zeros(width, np.float32)

    def perceptron(name: str, width: int, inner: int) -> None:
        layer(f"{name}.fc1", inner, width)
        layer(f"{name}.fc2", width, inner)

    draw("model.embed_tokens.weight", TOKENS, WIDTH, columns=WIDTH)
    for number in range(LAYERS):
        block = f"model.layers.{number}"
        norm(f"{block}.input_layernorm", WIDTH)
        for part in ("q_proj", "k_proj", "v_proj", "dense"):
            layer(f"{block}.self_attn.{part}", WIDTH, WIDTH)
        perceptron(f"{block}.mlp", WIDTH, INNER)
    norm("model.final_layernorm", WIDTH)

    tower = "model.vision_tower.vision_model"
    draw(
        f"{tower}.embeddings.patch_embedding.weight",
        *(TOWER, 3, PATCH, PATCH),
        columns=3 * PATCH * PATCH,
    )
    state[f"{tower}.embeddings.patch_embedding.bias"] = np.zeros(TOWER, np.float32)
    places = (SIDE // PATCH) ** 2
    draw(f"{tower}.embeddings.position_embedding.weight", places, TOWER, columns=TOWER)
    for number in range(TOWER_LAYERS):
        block = f"{tower}.encoder.layers.{number}"
        norm(f"{block}.layer_norm1", TOWER)
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer(f"{block}.self_attn.{part}", TOWER, TOWER)
        norm(f"{block}.layer_norm2", TOWER)
        perceptron(f"{block}.mlp", TOWER, TOWER_INNER)
    norm(f"{tower}.post_layernorm", TOWER)
    draw(f"{tower}.head.probe", 1, 1, TOWER, columns=TOWER)
    draw(f"{tower}.head.attention.in_proj_weight", 3 * TOWER, TOWER, columns=TOWER)
    state[f"{tower}.head.attention.in_proj_bias"] = np.zeros(3 * TOWER, np.float32)
    layer(f"{tower}.head.attention.out_proj", TOWER, TOWER)
    norm(f"{tower}.head.layernorm", TOWER)
    perceptron(f"{tower}.head.mlp", TOWER, TOWER_INNER)

    layer("model.mm_projector.0", WIDTH, TOWER)
    layer("model.mm_projector.2", WIDTH, WIDTH)
    layer("lm_head", TOKENS, WIDTH)
    return state


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    words = tokenizer()
    end = words.token_to_id(END)
    vision = {
        "vision_tower": {
            "model_type": "mipha_vision_model",
            "vision_model_name_or_path": "google/siglip-so400m-patch14-384",
            "hidden_size": TOWER,
            "intermediate_size": TOWER_INNER,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": HEADS,
            "image_size": SIDE,
            "patch_size": PATCH,
            "hidden_act": "gelu_pytorch_tanh",
            "layer_norm_eps": 1e-06,
            "mm_vision_select_layer": -2,
            "mm_vision_select_feature": "patch",
        },
        "mm_projector": {
            "model_type": "mipha_projector",
            "mm_projector_type": "mlp2x_gelu",
            "mm_hidden_size": TOWER,
            "hidden_size": WIDTH,
        },
    }
    files = {
        "config": {
            "architectures": ["MiphaPhiForCausalLM"],
            "model_type": "mipha_phi",
            "vocab_size": TOKENS,
            "hidden_size": WIDTH,
            "intermediate_size": INNER,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "partial_rotary_factor": 0.5,
            "max_position_embeddings": CONTEXT,
            "hidden_act": "gelu_new",
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "bos_token_id": end,
            "eos_token_id": end,
            "vision_config": vision,
        },
        "generation_config": {"bos_token_id": end, "eos_token_id": end},
        "tokenizer_config": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            **{f"{key}_token": END for key in ("bos", "eos", "unk")},
        },
        "preprocessor_config": {
            "image_processor_type": "SiglipImageProcessor",
            "size": {"height": SIDE, "width": SIDE},
            "resample": 3,
            "do_resize": True,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5],
        },
    }

    arguments.out.mkdir(parents=True)
    for name, content in files.items():
        text = json.dumps(content, indent=2) + "\n"
        (arguments.out / f"{name}.json").write_text(text, encoding="utf-8")
    words.save(str(arguments.out / "tokenizer.json"))
    save_file(weights(arguments.seed), arguments.out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main()
