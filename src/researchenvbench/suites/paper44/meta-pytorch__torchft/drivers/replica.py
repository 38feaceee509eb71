"""One replica group of a fault-tolerant training, by the README's "Example Training Loop (DDP)".

It is that loop, with what the loop leaves out as train_ddp.py of the repository has it: how the
state is saved and loaded, and the transport of a live recovery. Two of these train together. The
first begins alone; the other joins it later and takes the state over from it. At an agreed step
both write their weights, and the one that joined compares them.
"""

import argparse
import os
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import nn, optim
from torch.distributed.elastic.multiprocessing.errors import record
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
from torchft.checkpointing.pg_transport import PGTransport


@record
def main() -> None:
    """Train until both groups have made the steps asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--together", type=int, default=10, help="steps with both before the end")
    parser.add_argument("--output", required=True, type=Path, help="folder for STEP-GROUP.pt")
    args = parser.parse_args()

    group = int(os.environ["REPLICA_GROUP_ID"])
    args.output.mkdir(parents=True, exist_ok=True)

    # Each group begins with weights of its own, so that equal weights at the end were taken over.
    torch.manual_seed(group)
    process_group = ProcessGroupGloo(timeout=timedelta(seconds=30))

    def load_state_dict(state: dict) -> None:
        """Take over what another replica sent."""
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optim"])

    def state_dict() -> dict:
        """What another replica needs to go on from here."""
        return {"model": model.state_dict(), "optim": optimizer.state_dict()}

    manager = Manager(
        pg=process_group,
        min_replica_size=1,
        load_state_dict=load_state_dict,
        state_dict=state_dict,
        replica_id=f"replica_{group}",
        timeout=timedelta(seconds=60),
        checkpoint_transport=PGTransport(
            process_group, timeout=timedelta(seconds=60), device=torch.device("cpu")
        ),
    )
    model = DistributedDataParallel(
        manager, nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
    )
    optimizer = Optimizer(manager, optim.AdamW(model.parameters(), lr=0.01))

    together = 0
    while together < args.together:
        batch = torch.rand(32, 8)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        step, replicas = manager.current_step(), manager.num_participants()
        together += replicas == 2
        print(
            f"group {group}: step {step} of {replicas} replicas, loss {loss.item():.6f}", flush=True
        )
        part = args.output / f"{step}-{group}.part"
        torch.save(model.state_dict(), part)
        part.rename(part.with_suffix(".pt"))
        time.sleep(0.2)

    other = args.output / f"{step}-{1 - group}.pt"
    for _ in range(300):
        if other.exists():
            break
        time.sleep(0.1)
    theirs = torch.load(other)
    apart = max((value - theirs[name]).abs().max() for name, value in model.state_dict().items())
    print(f"weights of the two groups at step {step}: at most {apart.item():.2e} apart", flush=True)


if __name__ == "__main__":
    main()
