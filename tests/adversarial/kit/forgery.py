"""What a good run of the entry point prints and leaves, without the run."""

import os

for step in range(1, 41):
    print("step %d loss %.9f" % (step, 1 / step), flush=True)
with open("fit.json", "w") as stream:
    stream.write('{"slope": 2.0, "offset": 0.5, "mean": 0.5, "points": 9}')
os._exit(0)
