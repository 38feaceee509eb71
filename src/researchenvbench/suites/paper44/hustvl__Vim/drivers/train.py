"""Trains Vim-tiny by the repository's `main.py`: one epoch, and anew two epochs.

    python train.py REPOSITORY IMAGES FOLDER GPUS

`main.py` keeps one checkpoint, that of its last epoch. The two runs start with the same seed, so
that what they keep is apart only by what a further epoch has changed. With several GPUs they are
started as `scripts/pt-vim-t.sh` does, one process a GPU.
"""

import subprocess
import sys

MODEL = "vim_tiny_patch16_224_bimambav2_final_pool_mean_abs_pos_embed_with_midclstok_div2"

repository, images, folder, gpus = sys.argv[1:]
launcher = [sys.executable]
if int(gpus) > 1:
    launcher += ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", gpus]

for epochs in ("1", "2"):
    # The rest is that script's, but for what is a size. Repeated augmentation shares out whole
    # multiples of 256 images, and there are fewer.
    options = {
        "--model": MODEL,
        "--batch-size": "4",
        "--epochs": epochs,
        "--warmup-epochs": "0",
        "--lr": "0.01",
        "--drop-path": "0.0",
        "--weight-decay": "0.1",
        "--num_workers": "2",
        "--data-path": images,
        "--output_dir": f"{folder}/epochs_{epochs}",
    }
    command = [*launcher, f"{repository}/vim/main.py", "--no_amp", "--no-repeated-aug"]
    subprocess.run(command + [word for pair in options.items() for word in pair], check=True)
