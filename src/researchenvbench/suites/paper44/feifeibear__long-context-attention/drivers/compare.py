"""Attention over a text that is spread over the GPUs, compared with the same on one, by torchrun.

It takes the steps of the README's "Usage", as test/test_hybrid_attn.py of the repository does:
it makes the groups, gives each rank its share of the text, and calls LongContextAttention. Where
that test compares with flash_attn, it compares with `attention_ref` of test/test_utils.py, in
float32 on the whole text. Only the forward pass: the torch back-ends have no backward.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from test_utils import attention_ref
from yunchang import EXTRACT_FUNC_DICT, LongContextAttention, set_seq_parallel_pg
from yunchang.kernels import AttnType

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--layouts", required=True, nargs="+", help="ULYSSES:IMPLEMENTATION")
parser.add_argument("--backends", required=True, nargs="+", help="values of AttnType")
parser.add_argument("--seqlen", type=int, default=2048)
parser.add_argument("--output", required=True, type=Path, help="folder for RANK.pt")
args = parser.parse_args()


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """How far `found` is from `expected`, by the norm of the latter."""
    return ((found.float() - expected.float()).norm() / expected.float().norm()).item()


def share(whole: torch.Tensor, implementation: str, ring: int, ulysses: int) -> torch.Tensor:
    """The part of a whole text that this rank holds."""
    extract = EXTRACT_FUNC_DICT[implementation]
    part = extract(whole, dist.get_rank(), world_size=dist.get_world_size(), rd=ring, ud=ulysses)
    return part.detach().clone()


dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)

torch.manual_seed(0)
q, k, v = torch.randn(3, 1, args.seqlen, 16, 64, dtype=torch.float16, device=device)
for tensor in (q, k, v):
    dist.broadcast(tensor, src=0)
whole, _ = attention_ref(q, k, v, causal=True)

kept = {}
for layout in args.layouts:
    degree, implementation = layout.split(":")
    ulysses = int(degree)
    ring = world // ulysses
    set_seq_parallel_pg(ulysses, ring, rank, world)

    expected, shifted, *parts = (
        share(text, implementation, ring, ulysses)
        for text in (whole, whole.roll(1, dims=1), q, k, v)
    )
    for backend in args.backends:
        attention = LongContextAttention(
            ring_impl_type=implementation, attn_type=AttnType.from_string(backend)
        )
        with torch.no_grad():
            found = attention(*parts, causal=True)
        kept[f"{layout}:{backend}"] = found.cpu()
        print(
            f"{backend}, ulysses {ulysses} x ring {ring}, {implementation}, rank {rank}: "
            f"{tuple(found.shape)} on {found.device.type}, error {relative(found, expected):.6f}, "
            f"against a text shifted by one {relative(found, shifted):.6f}",
            flush=True,
        )
        dist.barrier()

args.output.mkdir(parents=True, exist_ok=True)
torch.save(kept, args.output / f"{rank}.pt")
dist.destroy_process_group()
