"""Small stand-alone programs that run inside of a box, some by the judged interpreter.

They import nothing of the project, so that each can be copied in as a single file.
"""
