"""The page: one file, links to the logs, and nothing in it that a record could make run."""

from html.parser import HTMLParser

from result_samples import HOSTILE, build

from researchenvbench.network_use import NetworkUse
from researchenvbench.results.page import write_page


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.text, self.events = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for key, value in attrs if key in ("href", "src")]
        self.events += [key for key, _ in attrs if key.startswith("on")]

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def written(folder, entries):
    for entry in entries:
        for name in ("logs/cpu.log", "logs/build.log", "logs/C0.log"):
            path = entry.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("log\n")
    return Reader(write_page(folder, entries, suite="s", agent="x").read_text())


def test_it_shows_every_attempt_and_links_its_logs(folder, entries):
    page = written(folder, entries)
    for text in ("alpha", "no module named 'torch_ema' (exit 1)", "the job ended with -9",
                 "a tracked file was changed", "apt-get install libgl1", "prints a loss",
                 "gpu_count"):  # fmt: skip
        assert text in page.words
    files = [link for link in page.links if not link.startswith("#")]
    assert "./attempts/alpha--1/logs/cpu.log" in files
    assert all((folder / link).is_file() for link in files)


def test_it_says_what_a_build_reached(folder, entries):
    use = NetworkUse(policy="registries", refused=1, refused_hosts=(f"{HOSTILE}:443",))
    first = entries[0]
    made = build(network=use)
    entry = type(first)(
        first.task, 1, first.record.model_copy(update={"build": made}), first.folder
    )
    page = written(folder, [entry])
    assert "network registries; fetched 0 times, 0 B; 1 refused: <script>" in page.words
    assert "script" not in page.tags
    assert "network full" in written(folder, entries).words


def test_records_alone_are_enough(folder, entries):
    written(folder, entries)
    records = [entry.record for entry in entries if entry.record]
    page = Reader(write_page(folder, records).read_text())
    assert "./attempts/alpha--1/logs/cpu.log" in page.links


def test_nothing_in_a_record_becomes_markup(folder, hostile):
    page = written(folder, [hostile])
    assert "script" not in page.tags
    assert page.events == []
    assert all(link.startswith(("#", "./")) for link in page.links)
    assert not any("passwd" in link for link in page.links)
    assert "<script>alert(1)</script>" in page.words
    assert "{{ 7 * 7 }}" in page.words
    text = (folder / "index.html").read_text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert HOSTILE not in text


def test_it_needs_nothing_from_elsewhere(folder, entries):
    written(folder, entries)
    text = (folder / "index.html").read_text()
    assert "default-src 'none'" in text
    assert "http://" not in text
    assert "https://" not in text


def test_a_link_with_odd_characters_is_quoted(folder, entries):
    entry = entries[0]
    odd = folder / "attempts" / 'a"?#<b>--1'
    moved = type(entry)(entry.task, 1, entry.record, odd)
    page = written(folder, [moved])
    assert "./attempts/a%22%3F%23%3Cb%3E--1/logs/cpu.log" in page.links


def test_an_empty_run_has_a_page(folder):
    folder.mkdir(parents=True)
    assert "No attempt was begun" in Reader(write_page(folder, []).read_text()).words
