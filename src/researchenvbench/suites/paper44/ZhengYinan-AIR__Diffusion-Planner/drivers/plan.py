"""Plans the way of a car through prepared scenes, with and without guidance against collisions.

    python plan.py PLANNER SCENES FOLDER DEVICE

PLANNER holds args.json and model.pth, SCENES what `data_process.py` writes. It is what
`DiffusionPlanner` of the repository does between two steps of a simulation, without the simulator:
its configuration, network, weights and normalization, by the same calls. Each scene gives
FOLDER/NAME.npz with the ways of all cars (10 neighbours after the planned one): x, y in metres,
cosine and sine of the heading, for 80 steps of 0.1 s.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from diffusion_planner.model.diffusion_planner import Diffusion_Planner
from diffusion_planner.model.guidance.guidance_wrapper import GuidanceWrapper
from diffusion_planner.utils.config import Config

planner, scenes, folder = (Path(argument) for argument in sys.argv[1:4])
device = sys.argv[4]
FUTURES = ("ego_agent_future", "neighbor_agents_future")


def load(guidance_fn: GuidanceWrapper | None) -> tuple[Config, Diffusion_Planner]:
    """The planner, as `DiffusionPlanner.__init__` and `initialize` make it."""
    config = Config(planner / "args.json", guidance_fn)
    model = Diffusion_Planner(config)
    weights = torch.load(planner / "model.pth", map_location=device)["ema_state_dict"]
    model.load_state_dict({name.removeprefix("module."): value for name, value in weights.items()})
    return config, model.eval().to(device)


def plan(config: Config, model: Diffusion_Planner, scene: dict[str, np.ndarray]) -> np.ndarray:
    """The ways, as `compute_planner_trajectory` asks for them."""
    inputs = {
        name: torch.as_tensor(values).unsqueeze(0).to(device)
        for name, values in scene.items()
        if name not in FUTURES
    }
    torch.manual_seed(0)
    _, outputs = model(config.observation_normalizer(inputs))
    return outputs["prediction"][0].detach().cpu().numpy()


free, guided = load(None), load(GuidanceWrapper())
print(f"planning on {next(guided[1].parameters()).device}")
for name in json.loads((scenes / "train_list.json").read_text())[:4]:
    with np.load(scenes / name) as scene:
        data = dict(scene)
    ways = {"free": plan(*free, data), "guided": plan(*guided, data)}
    apart = np.abs(ways["free"][0] - ways["guided"][0]).max()
    end = ways["free"][0, -1, :2]
    print(f"{name}: ends at {end[0]:.3f} {end[1]:.3f} m; guidance moves it by {apart:.6f}")
    np.savez(folder / name, **ways, driven=data["ego_agent_future"])
