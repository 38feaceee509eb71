"""What lies in a box, as facts: each module's `examine(order)` answers one kind of question.

They run in the box by the harness's own Python, import nothing of the package, and judge
nothing. One changes something, in the layer of a stage: `bytecode`.
"""
