"""Gradients."""


def gradients(points, errors):
    """Of the mean squared error, with respect to slope and offset."""
    count = len(errors)
    return (
        2 * sum(error * x for error, (x, _) in zip(errors, points)) / count,
        2 * sum(errors) / count,
    )
