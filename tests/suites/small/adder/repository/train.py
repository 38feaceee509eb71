"""The entry point: writes a falling loss and a product."""

import json
import os
import sys
import time

import adder

steps = int(sys.argv[sys.argv.index("--steps") + 1])
for step in range(1, steps + 1):
    print(f"step {step} loss {adder.add(1, 1) / step}", flush=True)
    time.sleep(float(os.environ.get("ADDER_SLEEP_S", "0")))
with open("result.json", "w") as stream:
    json.dump({"sum": adder.add(2, 3)}, stream)
