"""Programs of ours that run in an interpreter of their own, beside the harness.

They import nothing of ours from outside of this folder. `process.stand_alone` says how one is
started.

supervise, execute, namespaces, orders, tree, holder, interactive
    start with every program that the harness runs, within milliseconds, and outlive it by as
    much as it takes to clean up. Of the standard library they import only what is light: no
    json, no subprocess, no pathlib.
attendant, examine, files and look/
    look at files of a box, once a question, and may import what they need.
listener
    makes a socket in the network of a box, once, and may as well.
"""
