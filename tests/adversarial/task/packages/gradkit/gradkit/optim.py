"""Optimizers."""


class GradientDescent:
    """Goes down by a fixed rate."""

    def __init__(self, rate):
        self.rate = rate

    def step(self, parameters, gradients):
        """The parameters after one step."""
        return tuple(p - self.rate * g for p, g in zip(parameters, gradients))
