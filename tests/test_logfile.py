"""A log keeps head and tail, whatever is written to it, and can be read at any moment."""

from hypothesis import given, settings
from hypothesis import strategies as st

from researchenvbench.logfile import LogFile


def gap(dropped):
    return f"\n[… {dropped:>16} bytes of output left out here …]\n".encode()


def test_below_the_limit_nothing_is_changed(tmp_path):
    with LogFile(tmp_path / "log", limit_bytes=1000) as log:
        log.write(b"a" * 600)
        log.write(b"b" * 400)
    assert (tmp_path / "log").read_bytes() == b"a" * 600 + b"b" * 400
    assert log.dropped_bytes == 0


@settings(deadline=None, max_examples=60)
@given(sizes=st.lists(st.integers(0, 3000), max_size=20), before=st.integers(0, 50))
def test_head_and_tail_are_what_was_written(tmp_path_factory, sizes, before):
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes(b"-" * before)
    written = b""
    with LogFile(path, limit_bytes=1000, append=True) as log:
        for number, size in enumerate(sizes):
            chunk = bytes((number * 7 + index) % 251 for index in range(size))
            log.write(chunk)
            written += chunk
            # Whoever looks now finds the newest at the end.
            assert path.read_bytes().endswith(written[-250:])
    content = path.read_bytes()
    assert content[:before] == b"-" * before
    content = content[before:]
    assert len(content) <= 1000
    assert log.received_bytes == len(written)
    if log.dropped_bytes == 0:
        assert content == written
    else:
        head, tail = content.split(gap(log.dropped_bytes))
        assert len(head) == 500
        assert written.startswith(head)
        assert written.endswith(tail)
        assert len(head) + len(tail) + log.dropped_bytes == len(written)
