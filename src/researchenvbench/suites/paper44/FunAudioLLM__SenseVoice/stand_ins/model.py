"""A random SenseVoiceSmall of five layers and 64 numbers a frame, with a tokenizer of its ids.

    python model.py OUT --seed 0

OUT becomes a folder as the hub has it: configuration, weights, normalisation, tokenizer. The
code knows the tokens of languages, emotions and events by number, so there are as many tokens
as in the original, 25055, and these are at their places; the others are invented words.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import string
from pathlib import Path

import numpy as np
import torch
from sentencepiece import sentencepiece_model_pb2

WIDTH, INNER, HEADS, BLOCKS, TAIL, KERNEL = 64, 128, 4, 3, 2, 11
MELS, STACKED, SKIPPED, QUERIES, TOKENS = 80, 7, 6, 16, 25055
STEPS = 2**15
MODEL, WORDS = "model.pt", "chn_jpn_yue_eng_ko_spectok.bpe.model"
FIRST = ("<unk>", "<s>", "</s>")
MARKED = {
    24884: "zh", 24885: "en", 24888: "yue", 24892: "ja", 24896: "ko", 24992: "nospeech",
    24993: "Speech", 25001: "HAPPY", 25002: "SAD", 25003: "ANGRY", 25004: "NEUTRAL",
    25009: "EMO_UNKNOWN", 25016: "withitn", 25017: "woitn",
}  # fmt: skip


def words() -> bytes:
    """The tokenizer: a unigram model of sentencepiece."""
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    made = sentencepiece_model_pb2.ModelProto()
    letters = ["\u2581", *string.ascii_lowercase, "'", ",", "."]
    for number in range(TOKENS):
        kind = kinds.NORMAL
        if number < len(FIRST):
            text, kind = FIRST[number], kinds.CONTROL if number else kinds.UNKNOWN
        elif number in MARKED:
            text, kind = f"<|{MARKED[number]}|>", kinds.USER_DEFINED
        elif number < len(FIRST) + len(letters):
            text = letters[number - len(FIRST)]
        else:
            text = f"\u2581w{number}"
        made.pieces.add(piece=text, score=-float(number), type=kind)
    made.trainer_spec.vocab_size = TOKENS
    made.trainer_spec.model_type = 1
    made.normalizer_spec.name = "identity"
    made.normalizer_spec.add_dummy_prefix = False
    made.normalizer_spec.remove_extra_whitespaces = False
    return made.SerializeToString(deterministic=True)


def weights(seed: int) -> dict[str, torch.Tensor]:
    """The parameters by their names."""
    random = np.random.default_rng(seed)
    state: dict[str, torch.Tensor] = {}

    def draw(name: str, *shape: int, columns: int) -> None:
        # Whole numbers, which every processor draws alike, to a variance of 1 / columns.
        whole = random.integers(-STEPS, STEPS + 1, shape)
        numbers = (whole * (math.sqrt(3 / columns) / STEPS)).astype(np.float32)
        state[name] = torch.from_numpy(numbers)

    def layer(name: str, rows: int, columns: int) -> None:
        draw(f"{name}.weight", rows, columns, columns=columns)
        state[f"{name}.bias"] = torch.zeros(rows)

    def norm(name: str, width: int) -> None:
        state[f"{name}.weight"] = torch.ones(width)
        state[f"{name}.bias"] = torch.zeros(width)

    def block(name: str, width: int) -> None:
        layer(f"{name}.self_attn.linear_out", WIDTH, WIDTH)
        layer(f"{name}.self_attn.linear_q_k_v", 3 * WIDTH, width)
        draw(f"{name}.self_attn.fsmn_block.weight", WIDTH, 1, KERNEL, columns=KERNEL)
        layer(f"{name}.feed_forward.w_1", INNER, WIDTH)
        layer(f"{name}.feed_forward.w_2", WIDTH, INNER)
        norm(f"{name}.norm1", width)
        norm(f"{name}.norm2", WIDTH)

    block("encoder.encoders0.0", MELS * STACKED)
    for number in range(BLOCKS - 1):
        block(f"encoder.encoders.{number}", WIDTH)
    for number in range(TAIL):
        block(f"encoder.tp_encoders.{number}", WIDTH)
    norm("encoder.after_norm", WIDTH)
    norm("encoder.tp_norm", WIDTH)
    layer("ctc.ctc_lo", TOKENS, WIDTH)
    draw("embed.weight", QUERIES, MELS * STACKED, columns=1)
    return state


def configuration() -> dict[str, object]:
    """What the original says of itself, with other sizes."""
    return {
        "encoder": "SenseVoiceEncoderSmall",
        "encoder_conf": {
            "output_size": WIDTH,
            "attention_heads": HEADS,
            "linear_units": INNER,
            "num_blocks": BLOCKS,
            "tp_blocks": TAIL,
            "dropout_rate": 0.1,
            "positional_dropout_rate": 0.1,
            "attention_dropout_rate": 0.1,
            "input_layer": "pe",
            "pos_enc_class": "SinusoidalPositionEncoder",
            "normalize_before": True,
            "kernel_size": KERNEL,
            "sanm_shfit": 0,
            "selfattention_layer_type": "sanm",
        },
        "model": "SenseVoiceSmall",
        "model_conf": {"length_normalized_loss": True, "sos": 1, "eos": 2, "ignore_id": -1},
        "tokenizer": "SentencepiecesTokenizer",
        "tokenizer_conf": {"bpemodel": None, "unk_symbol": "<unk>", "split_with_space": True},
        "frontend": "WavFrontend",
        "frontend_conf": {
            "fs": 16000,
            "window": "hamming",
            "n_mels": MELS,
            "frame_length": 25,
            "frame_shift": 10,
            "lfr_m": STACKED,
            "lfr_n": SKIPPED,
            "cmvn_file": None,
        },
        "dataset": "SenseVoiceCTCDataset",
        "dataset_conf": {
            "index_ds": "IndexDSJsonl",
            "batch_sampler": "BatchSampler",
            "data_split_num": 1,
            "batch_type": "token",
            "batch_size": 6000,
            "max_token_length": 2000,
            "min_token_length": 1,
            "shuffle": True,
            "num_workers": 0,
            "retry": 20,
        },
        "train_conf": {
            "accum_grad": 1,
            "grad_clip": 5,
            "max_epoch": 2,
            "keep_nbest_models": 10,
            "avg_nbest_model": 10,
            "log_interval": 1,
        },
        "optim": "adamw",
        "optim_conf": {"lr": 0.00002},
        "scheduler": "warmuplr",
        "scheduler_conf": {"warmup_steps": 25000},
    }


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    # Saved to a path, the archive would hold the name of the file.
    stream = io.BytesIO()
    torch.save({"state_dict": weights(arguments.seed)}, stream)
    width = MELS * STACKED
    shift, scale = " ".join(["-12.0"] * width), " ".join(["0.25"] * width)
    about = {
        "framework": "pytorch",
        "task": "auto-speech-recognition",
        "model": {"type": "funasr"},
        "file_path_metas": {
            "init_param": MODEL,
            "config": "config.yaml",
            "tokenizer_conf": {"bpemodel": WORDS},
            "frontend_conf": {"cmvn_file": "am.mvn"},
        },
    }

    arguments.out.mkdir(parents=True)
    (arguments.out / MODEL).write_bytes(stream.getvalue())
    (arguments.out / WORDS).write_bytes(words())
    (arguments.out / "am.mvn").write_text(
        f"<Nnet>\n<Splice> {width} {width}\n[ 0 ]\n<AddShift> {width} {width}\n"
        f"<LearnRateCoef> 0 [ {shift} ]\n<Rescale> {width} {width}\n"
        f"<LearnRateCoef> 0 [ {scale} ]\n</Nnet>\n",
        encoding="utf-8",
    )
    # JSON is YAML too.
    for name, content in (("config.yaml", configuration()), ("configuration.json", about)):
        text = json.dumps(content, indent=2) + "\n"
        (arguments.out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
