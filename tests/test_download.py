"""fetch and fetch_member against a small server on this machine: whole, resumed, refused, side by side."""

from __future__ import annotations

import hashlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from metagrad.data import cache_folder, fetch, fetch_member

ROOT = Path(__file__).resolve().parent.parent
BODY = bytes(range(256)) * 1200  # 307 200 bytes
SHA256 = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves `server.body` under any path but /missing; the server's fields say how well."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.requests.append((self.path, wanted))
        if self.path == "/missing":
            self.send_error(404)
            return
        body, start = server.body, 0
        if wanted and server.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if server.heeds_if_range and self.headers.get("If-Range") != server.etag:
                start = 0
            elif start >= len(body):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if server.etag:
            self.send_header("ETag", server.etag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = len(body) if server.cut_at is None else max(start, server.cut_at)
        for at in range(start, end, 16_384):
            self.wfile.write(body[at : min(at + 16_384, end)])
            time.sleep(server.pause)
        self.close_connection = True

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *arguments: None  # a client that is killed
    server.body, server.etag, server.requests = BODY, '"one"', []
    server.ranges, server.heeds_if_range, server.cut_at, server.pause = True, True, None, 0.0
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def broken_off(server, folder, cut_at=100_000):
    """Leave a part file of `cut_at` bytes, as a broken connection does."""
    server.cut_at = cut_at
    with pytest.raises(ConnectionError):
        fetch(server.url + "/data.bin", folder=folder, progress=False)
    server.cut_at = None
    server.requests.clear()
    assert (folder / "data.bin.part").stat().st_size == cut_at


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_downloaded_once_and_then_used_without_the_network(server, tmp_path, capfd):
    md5, sha1 = hashlib.md5(BODY).hexdigest(), hashlib.sha1(BODY).hexdigest()
    sums = {"sha256": SHA256.upper(), "md5": md5, "sha1": sha1}
    for _ in range(2):
        path = fetch(server.url + "/data.bin", folder=tmp_path, size=len(BODY), **sums)
        assert path == tmp_path / "data.bin" and path.read_bytes() == BODY
    assert server.requests == [("/data.bin", None)]
    assert names(tmp_path) == ["data.bin"]
    assert "data.bin" in capfd.readouterr().err  # the progress bar


def test_progress_false_prints_nothing(server, tmp_path, capfd):
    fetch(server.url + "/data.bin", folder=tmp_path, progress=False)
    assert capfd.readouterr() == ("", "")


def test_the_cache_folder_is_metagrad_home_or_in_the_home_folder(server, tmp_path, monkeypatch):
    monkeypatch.setenv("METAGRAD_HOME", str(tmp_path / "deep" / "cache"))
    assert fetch(server.url + "/a%20b.bin?x=1", progress=False) == tmp_path / "deep" / "cache" / "a b.bin"
    monkeypatch.delenv("METAGRAD_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "metagrad"


def test_letters_beyond_ascii_in_the_url(server, tmp_path):
    assert fetch(server.url + "/西游记.txt", folder=tmp_path, progress=False).name == "西游记.txt"
    assert server.requests == [("/%E8%A5%BF%E6%B8%B8%E8%AE%B0.txt", None)]


def test_a_wrong_sum_or_size_is_refused_and_the_download_deleted(server, tmp_path):
    wrong = "0" * 64
    with pytest.raises(ValueError, match=f"sha256 sum {SHA256} instead of {wrong}; it was deleted"):
        fetch(server.url + "/data.bin", sha256=wrong, folder=tmp_path, progress=False)
    with pytest.raises(ValueError, match="is 307200 bytes long instead of 5"):
        fetch(server.url + "/data.bin", size=5, folder=tmp_path, progress=False)
    assert names(tmp_path) == []


def test_a_cached_file_with_a_wrong_sum_is_named_and_kept(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"by hand")
    with pytest.raises(ValueError, match=r"data\.bin exists but has the sha256 sum .* delete it"):
        fetch(server.url + "/data.bin", sha256=SHA256, folder=tmp_path, progress=False)
    assert (tmp_path / "data.bin").read_bytes() == b"by hand" and server.requests == []


def test_a_truncated_body_is_an_error_and_the_next_call_goes_on(server, tmp_path):
    server.cut_at = 100_000
    with pytest.raises(ConnectionError, match=r"after 100000 of 307200 bytes; .* by hand at .*data\.bin"):
        fetch(server.url + "/data.bin", folder=tmp_path, progress=False)
    assert names(tmp_path) == ["data.bin.part", "data.bin.part.tag"]
    server.cut_at = None
    path = fetch(server.url + "/data.bin", sha256=SHA256, folder=tmp_path, progress=False)
    assert path.read_bytes() == BODY
    assert server.requests[1:] == [("/data.bin", "bytes=100000-")]
    assert names(tmp_path) == ["data.bin"]


def test_a_server_that_cannot_resume_sends_the_whole_file(server, tmp_path):
    server.ranges = False
    broken_off(server, tmp_path)
    assert fetch(server.url + "/data.bin", folder=tmp_path, progress=False).read_bytes() == BODY
    assert server.requests == [("/data.bin", "bytes=100000-")]


@pytest.mark.parametrize("heeds_if_range", [True, False])
def test_a_file_that_changed_on_the_server_is_begun_anew(server, tmp_path, heeds_if_range):
    broken_off(server, tmp_path)
    server.body, server.etag, server.heeds_if_range = BODY[::-1], '"two"', heeds_if_range
    assert fetch(server.url + "/data.bin", folder=tmp_path, progress=False).read_bytes() == BODY[::-1]


def test_a_file_that_became_shorter_is_begun_anew(server, tmp_path):
    broken_off(server, tmp_path)
    server.body, server.heeds_if_range = b"short", False
    assert fetch(server.url + "/data.bin", folder=tmp_path, progress=False).read_bytes() == b"short"
    assert server.requests == [("/data.bin", "bytes=100000-"), ("/data.bin", None)]  # 416, then all of it


@pytest.mark.parametrize("case", ["no version", "another url"])
def test_a_piece_of_unknown_origin_is_not_continued(server, tmp_path, case):
    if case == "no version":
        server.etag = None
    broken_off(server, tmp_path)
    other = "/data.bin" if case == "no version" else "/elsewhere/data.bin"
    assert fetch(server.url + other, folder=tmp_path, progress=False).read_bytes() == BODY
    assert server.requests == [(other, None)]


def test_a_bad_piece_under_a_right_sum_is_replaced_by_a_whole_download(server, tmp_path):
    broken_off(server, tmp_path)
    (tmp_path / "data.bin.part").write_bytes(b"\0" * 100_000)
    path = fetch(server.url + "/data.bin", sha256=SHA256, folder=tmp_path, progress=False)
    assert path.read_bytes() == BODY
    assert server.requests == [("/data.bin", "bytes=100000-"), ("/data.bin", None)]


def test_what_the_server_refuses_or_no_network_is_one_sentence(server, tmp_path):
    with pytest.raises(ConnectionError, match=r"/missing: the server says 404 Not Found; .*by hand at"):
        fetch(server.url + "/missing", folder=tmp_path, progress=False)
    with socket.create_server(("127.0.0.1", 0)) as closed_soon:
        port = closed_soon.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"cannot be reached .*\(.*refused.*\); .*by hand at"):
        fetch(f"http://127.0.0.1:{port}/data.bin", folder=tmp_path, progress=False)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("ftp://example.org/x", {}, "starts with http"),
        ("http://example.org/", {}, "not a plain file name: pass name="),
        ("http://example.org/%2e%2e", {}, "not a plain file name"),
        ("http://example.org/..%2fx", {}, "not a plain file name"),
        ("http://example.org/x", {"name": "../x"}, "not a plain file name"),
        ("http://example.org/x", {"sha256": "abc"}, "a sha256 sum is 64 hex digits, got 'abc'"),
        ("http://example.org/x", {"md5": "z" * 32}, "a md5 sum is 32 hex digits"),
    ],
)
def test_bad_arguments_are_refused_before_the_network(url, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fetch(url, folder=tmp_path, **options)


def start_fetch(server, folder) -> subprocess.Popen:
    program = (
        "import sys; from metagrad.data import fetch\n"
        "path = fetch(sys.argv[1], sha256=sys.argv[2], folder=sys.argv[3], progress=False)\n"
        "print(path.stat().st_size)\n"
    )
    arguments = [sys.executable, "-c", program, server.url + "/data.bin", SHA256, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)


def wait_until(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_download_is_resumed(server, tmp_path):
    server.pause = 0.1
    part = tmp_path / "data.bin.part"
    process = start_fetch(server, tmp_path)
    wait_until(lambda: part.exists() and part.stat().st_size > 50_000)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert "data.bin" not in names(tmp_path)
    have = part.stat().st_size
    server.pause = 0.0
    path = fetch(server.url + "/data.bin", sha256=SHA256, folder=tmp_path, progress=False)
    assert path.read_bytes() == BODY
    assert server.requests[1:] == [("/data.bin", f"bytes={have}-")]
    assert names(tmp_path) == ["data.bin"]


def test_two_processes_fetch_at_once_and_one_of_them_downloads(server, tmp_path):
    server.pause = 0.05
    processes = [start_fetch(server, tmp_path) for _ in range(3)]
    sizes = set()
    while any(process.poll() is None for process in processes):
        if (tmp_path / "data.bin").exists():
            sizes.add((tmp_path / "data.bin").stat().st_size)
        time.sleep(0.005)
    assert [process.communicate()[0] for process in processes] == ["307200\n"] * 3
    assert sizes <= {len(BODY)}  # never half a file under the real name
    assert len(server.requests) == 1
    assert names(tmp_path) == ["data.bin"]


# ── members of archives ──────────────────────────────────────────────────────────────────────────────


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_one_member_is_extracted_beside_the_archive_once(server, tmp_path):
    server.body = zipped(**{"ptb/train.txt": b"a b c\n" * 1000, "ptb/valid.txt": b"d"})
    path = fetch_member(server.url + "/ptb.zip", "ptb/train.txt", folder=tmp_path, progress=False)
    assert path == tmp_path / "ptb.zip.members" / "ptb" / "train.txt"
    assert path.read_bytes() == b"a b c\n" * 1000
    inode = path.stat().st_ino
    assert fetch_member(server.url + "/ptb.zip", "ptb/train.txt", folder=tmp_path, progress=False) == path
    assert path.stat().st_ino == inode and len(server.requests) == 1
    path.write_bytes(b"half")
    fetch_member(server.url + "/ptb.zip", "ptb/train.txt", folder=tmp_path, progress=False)
    assert path.stat().st_size == 6000
    assert names(path.parent) == ["train.txt"]


@pytest.mark.parametrize("member", ["../evil", "/etc/evil", "a/../../evil", "..\\evil", "C:evil", ""])
def test_a_member_that_leads_out_of_the_folder_is_refused(server, tmp_path, member):
    server.body = zipped(**{member or "x": b"evil"})
    with pytest.raises(ValueError, match="not a plain path inside an archive"):
        fetch_member(server.url + "/a.zip", member, folder=tmp_path / "cache", progress=False)
    assert not list(tmp_path.rglob("evil"))


def test_an_archive_that_cannot_give_the_member_says_so(server, tmp_path):
    server.body = zipped(**{"one.txt": b"1", "folder/": b""})
    for member in ("two.txt", "folder/"):
        with pytest.raises(ValueError, match=rf"no file '{member}'; it holds one\.txt, folder/"):
            fetch_member(server.url + "/a.zip", member, folder=tmp_path, progress=False)
    with pytest.raises(ValueError, match="cannot be read from .* as a zip archive"):
        server.body = BODY
        fetch_member(server.url + "/b.zip", "x", folder=tmp_path, progress=False)


def test_a_damaged_member_leaves_nothing_behind_under_its_name(server, tmp_path):
    content = os.urandom(5000)
    whole = zipped(**{"x": content})
    at = len(whole) // 2
    server.body = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    with pytest.raises(ValueError, match="as a zip archive"):
        fetch_member(server.url + "/a.zip", "x", folder=tmp_path, progress=False)
    assert not (tmp_path / "a.zip.members" / "x").exists()
