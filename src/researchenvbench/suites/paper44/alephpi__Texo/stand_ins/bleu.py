"""Makes a metric that the evaluate library loads by the name `bleu`: BLEU, computed anew.

Called as `python bleu.py OUT --seed N`. OUT gets `bleu.py`, which has the class, the inputs and
the result of the hub's metric of that name, with corpus BLEU as Papineni et al. (2002) define
it. Nothing in it is drawn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

METRIC = '''"""Corpus BLEU (Papineni et al., 2002), in the form that the evaluate library loads."""

import math
from collections import Counter

import datasets
import evaluate


def _ngrams(tokens, order):
    return Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))


class Bleu(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description="predictions: texts; references: a text or texts for each",
            features=[
                datasets.Features({"predictions": text, "references": datasets.Sequence(text)}),
                datasets.Features({"predictions": text, "references": text}),
            ],
        )

    def _compute(self, predictions, references, tokenizer=str.split, max_order=4, smooth=False):
        matches, possible = [0] * max_order, [0] * max_order
        length = reference_length = 0
        for prediction, texts in zip(predictions, references):
            texts = [texts] if isinstance(texts, str) else texts
            tokens, targets = tokenizer(prediction), [tokenizer(text) for text in texts]
            length += len(tokens)
            reference_length += min(map(len, targets))
            for order in range(1, max_order + 1):
                counts, allowed = _ngrams(tokens, order), Counter()
                for target in targets:
                    allowed |= _ngrams(target, order)
                matches[order - 1] += sum((counts & allowed).values())
                possible[order - 1] += max(0, len(tokens) - order + 1)
        more = 1 if smooth else 0
        precisions = [
            (found + more) / (count + more) if count + more else 0.0
            for found, count in zip(matches, possible)
        ]
        ratio = length / reference_length if reference_length else 0.0
        penalty = 1.0 if ratio > 1 else math.exp(1 - 1 / ratio) if ratio else 0.0
        mean = 0.0
        if min(precisions) > 0:
            mean = math.exp(sum(map(math.log, precisions)) / max_order)
        return {
            "bleu": mean * penalty,
            "precisions": precisions,
            "brevity_penalty": penalty,
            "length_ratio": ratio,
            "translation_length": length,
            "reference_length": reference_length,
        }
'''


def main() -> None:
    """Write the metric."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--seed", type=int, default=0, help="without effect")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    (arguments.out / "bleu.py").write_text(METRIC)


if __name__ == "__main__":
    main()
