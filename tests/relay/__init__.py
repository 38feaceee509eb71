"""The relay, against a scripted model server on 127.0.0.1."""
