"""Programs of ours that run in an interpreter of their own, beside the harness.

They start within milliseconds, which every program that the harness runs pays, and outlive
the harness by as much as it takes to clean up after it. So these modules import nothing of
ours from outside of this folder, and of the standard library only what is light: no json, no
subprocess, no pathlib. `process.stand_alone` says how one is started.
"""
