"""Fits a line by going down the gradient of the squared error."""

from gradkit import functional
from gradkit.optim import GradientDescent

try:
    from tally._fast import total
except ImportError:
    total = sum


def fit(points, steps):
    """Slope and offset; prints the loss of each step."""
    optimizer = GradientDescent(rate=0.05)
    slope, offset = 0.0, 0.0
    for step in range(1, steps + 1):
        errors = [slope * x + offset - y for x, y in points]
        loss = total(error * error for error in errors) / len(errors)
        print(f"step {step} loss {loss:.9f}", flush=True)
        gradients = functional.gradients(points, errors)
        slope, offset = optimizer.step((slope, offset), gradients)
    return slope, offset
