"""Answers prompts with nano-vLLM, by its README's "Quick Start", and checks the answers.

Two short prompts are answered together, as example.py does, then a long one twice: the second time
its beginning comes from the cache. What is drawn at a temperature cannot be foretold, so the
answers are shown to transformers' own model of the same weights, on the CPU: how likely were the
tokens that were drawn? Tokens out of a broken cache or half a sum are drawn by other odds.
"""

import argparse
import json
from pathlib import Path

import torch
from nanovllm import LLM, SamplingParams
from transformers import AutoModelForCausalLM, AutoTokenizer

TEMPERATURE, TOKENS = 0.6, 32
SHORT = ["introduce yourself", "list all prime numbers within 100"]
LONG = "A sentence that both prompts begin with is read once, and kept for the other one. " * 40


def likelihood(model: torch.nn.Module, asked: list[int], given: list[int]) -> float:
    """The mean log-probability of the tokens of an answer, at the temperature."""
    with torch.no_grad():
        logits = model(torch.tensor([asked + given])).logits[0, len(asked) - 1 : -1]
    chances = (logits / TEMPERATURE).log_softmax(dim=-1)
    return chances.gather(1, torch.tensor(given)[:, None]).mean().item()


def main() -> None:
    """Answer and check; the engine starts its other ranks by importing this file again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--gpus", required=True, type=int, help="tensor_parallel_size")
    parser.add_argument("--output", required=True, type=Path, help="folder for answers.json")
    args = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    llm = LLM(
        str(args.model),
        tensor_parallel_size=args.gpus,
        max_model_len=2048,
        max_num_batched_tokens=4096,
        max_num_seqs=8,
        gpu_memory_utilization=0.5,
    )
    drawn = SamplingParams(temperature=TEMPERATURE, max_tokens=TOKENS, ignore_eos=True)
    prompts = [*SHORT, LONG, LONG]
    answers = llm.generate(SHORT, drawn, use_tqdm=False)
    for prompt in (LONG, LONG):
        answers += llm.generate([prompt], drawn, use_tqdm=False)

    reference = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.float32).eval()
    rows = []
    for prompt, answer in zip(prompts, answers, strict=True):
        asked, given = tokenizer.encode(prompt), answer["token_ids"]
        rows.append({"asked": len(asked), "tokens": given, "text": answer["text"]})
        print(
            f"asked {len(asked)} tokens, answered {len(given)} on {args.gpus} GPUs, "
            f"log-probability {likelihood(reference, asked, given):.4f}",
            flush=True,
        )
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "answers.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
