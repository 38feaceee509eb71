from datasets import prepare
