"""Detects events among messages with the repository's BERT detector.

    python detect.py REPOSITORY MODEL DATA FOLDER

The steps are those of the README's example: load the data set, preprocess, fit, detect, evaluate.
The modules are taken one by one, since the package cannot be imported where file names have a case:
its `detector/__init__.py` asks for `hypersed`, and the file is `Hypersed.py`. Each module finds the
others itself, from the folder `SocialED`. FOLDER gets detected.csv, what was found against what is,
and embeddings.npz.
"""

import sys
from pathlib import Path

import numpy as np

repository, model, data, folder = (Path(argument) for argument in sys.argv[1:])
sys.path.insert(0, str(repository / "SocialED" / "detector"))
from bert import BERT  # noqa: E402
from dataset.dataloader import Event2012  # noqa: E402

dataset = Event2012()
# Where it looks before it asks a forge for the data.
dataset.default_root_path = str(data)

detector = BERT(dataset, model_name=str(model), max_length=64)
print(f"the model is on {next(detector.model.parameters()).device}")
detector.preprocess()
detector.fit()
truths, predictions = detector.detection()
detector.evaluate(truths, predictions)

found = detector.test_df.assign(predicted=predictions)
found[["tweet_id", "event_id", "predicted"]].to_csv(folder / "detected.csv", index=False)
np.savez(folder / "embeddings.npz", test=np.stack(list(detector.test_df["bert_embedding"])))
