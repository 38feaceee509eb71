import datasets
from datasets import load_dataset
