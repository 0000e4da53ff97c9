"""`file.*` in a real folder: whole files under one root, whatever a path or a link says."""

import os
import random

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.folder import UNFINISHED

LARGE = random.Random(5).randbytes(2_000_000)
OUTSIDE = ["../x", "/etc/passwd", "a/../../x", "..", ".", "", "a//b", "a/./b", "a/", "a\x00b", "a\nb", "x" * 256,
           "a/" * 40 + "b", f"{UNFINISHED}/x", f"{UNFINISHED}/../../x", "\ud800"]  # fmt: skip


@pytest.fixture
def root(facilities, tmp_path):
    """The folder of workspace w1, where workspaces have one."""
    (tmp_path / "root" / "w1").mkdir(parents=True)
    facilities.files_root = str(tmp_path / "root")
    return tmp_path / "root" / "w1"


@pytest.fixture
def do(run, root, files):
    async def do_it(type_name, path, **inputs):
        return (await run(type_name, {"path": path} | inputs)).value

    return do_it


@pytest.fixture
def failure(do):
    async def fail(*args, **inputs):
        with pytest.raises(NodeFailure) as caught:
            await do(*args, **inputs)
        return caught.value.error

    return fail


def unfinished(root):
    return os.listdir(root / UNFINISHED)


async def test_content_goes_to_the_folder_and_back(do, keep, content, root):
    value = await keep(LARGE, "l.bin")
    told = await do("file.write", "a/b/l.bin", file=value)
    back = await do("file.read", "a/b/l.bin")

    assert told == {"path": "a/b/l.bin", "size": len(LARGE), "written": True}
    assert (root / "a/b/l.bin").read_bytes() == LARGE
    assert (back["size"], back["file"]["$file"]["name"]) == (len(LARGE), "l.bin")
    assert await content(back["file"]) == LARGE
    assert unfinished(root) == []


async def test_text_is_written_and_read_as_utf8(do):
    await do("file.write", "ü.txt", text="Grüße\n")

    assert (await do("file.read", "ü.txt", **{"as": "text"}))["text"] == "Grüße\n"
    assert (await do("file.read", "ü.txt"))["file"]["$file"]["type"] == "text/plain"


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("kind", ["file.read", "file.write", "file.move", "file.delete"])
async def test_a_path_that_could_lead_elsewhere_is_refused(failure, kind, path):
    more = {"file.write": {"text": "x"}, "file.move": {"to": "x"}}.get(kind, {})

    assert (await failure(kind, path, **more)).type is ErrorType.PERMANENT


@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_target_that_could_lead_elsewhere_is_refused(do, failure, path):
    await do("file.write", "a", text="x")

    assert (await failure("file.move", "a", to=path)).type is ErrorType.PERMANENT


@pytest.mark.parametrize("kind", ["file.read", "file.write", "file.move", "file.list"])
async def test_no_link_is_followed(do, failure, root, tmp_path, kind):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("secret")
    (root / "folder").symlink_to(tmp_path / "secret")
    more = {"file.write": {"text": "x"}, "file.move": {"to": "x"}}.get(kind, {})

    error = await failure(kind, "folder" if kind == "file.list" else "folder/key", **more)

    assert error.type is ErrorType.PERMANENT
    assert (tmp_path / "secret" / "key").read_text() == "secret"


async def test_a_link_in_the_place_of_a_file_is_not_read_and_is_replaced(do, failure, root, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (root / "a").symlink_to(tmp_path / "secret")

    assert (await failure("file.read", "a")).type is ErrorType.PERMANENT
    assert (await do("file.list", ""))["files"] == []
    await do("file.write", "a", text="x")
    assert (root / "a").read_text() == "x"
    assert (tmp_path / "secret").read_text() == "secret"


async def test_a_pipe_holds_no_reader(failure, root):
    os.mkfifo(root / "pipe")

    assert "is no file" in (await failure("file.read", "pipe")).message


async def test_workspaces_have_folders_of_their_own(run, do, root, files):
    await do("file.write", "a", text="mine")

    theirs = (await run("file.list", {}, workspace="w2")).value
    odd = (await run("file.write", {"path": "a", "text": "x"}, workspace="../w1")).value

    assert theirs == {"files": [], "hasMore": False}
    assert odd["written"]
    assert (root / "a").read_text() == "mine"


async def test_without_a_root_it_says_how_to_set_one(run, files):
    with pytest.raises(NodeFailure, match=r"ROPEWALK_FILES_ROOT") as caught:
        await run("file.read", {"path": "a"})

    assert caught.value.error.type is ErrorType.PERMANENT


async def test_an_execution_that_is_bounded_by_a_share_has_no_folder(run, root, files):
    with pytest.raises(NodeFailure, match="out of reach"):
        await run("file.read", {"path": "a"}, get_bounds=lambda: ("Bob",))


async def test_what_is_there_is_replaced_kept_or_a_failure(do, failure, root):
    await do("file.write", "a", text="1")

    assert (await do("file.write", "a", text="2", ifExists="keep"))["written"] is False
    assert "other content" in (await failure("file.write", "a", text="2", ifExists="fail")).message
    assert (await do("file.write", "a", text="1", ifExists="fail"))["written"] is False
    assert (root / "a").read_text() == "1"
    await do("file.write", "a", text="2")
    assert (root / "a").read_text() == "2"
    assert unfinished(root) == []


async def test_a_write_that_fails_leaves_what_was_there(do, failure, root, keep):
    await do("file.write", "a", text="1")
    gone = {"$file": {"hash": "0" * 64, "size": 5, "name": "x", "type": "text/csv"}}

    assert "no content" in (await failure("file.write", "a", file=gone)).message
    assert (root / "a").read_text() == "1"
    assert unfinished(root) == []


async def test_a_folder_is_no_file(do, failure):
    await do("file.write", "a/b", text="1")

    assert [(await failure(kind, "a", **more)).type for kind, more in
            (("file.read", {}), ("file.write", {"text": "x"}), ("file.move", {"to": "c"}), ("file.delete", {}))
            ] == [ErrorType.PERMANENT] * 4  # fmt: skip


async def test_what_is_missing_is_named(do, failure):
    assert (await failure("file.read", "a/b")).message == "there is no file 'a/b' in the workspace's folder"
    assert "'a/b'" in (await failure("file.move", "a/b", to="c")).message
    assert await do("file.delete", "a/b") == {"deleted": False}
    assert "'a'" in (await failure("file.list", "a")).message


async def test_a_file_is_moved_at_once_and_replaces_only_if_told(do, failure, root):
    await do("file.write", "a", text="1")
    await do("file.write", "b", text="2")

    assert "already" in (await failure("file.move", "a", to="b")).message
    assert await do("file.move", "a", to="c/d") == {"path": "c/d"}
    assert await do("file.move", "c/d", to="b", ifExists="replace") == {"path": "b"}
    assert (root / "b").read_text() == "1"


async def test_a_move_that_is_repeated_after_a_crash_has_happened(do, run, root):
    await do("file.write", "a", text="1")
    await do("file.move", "a", to="b")

    assert (await run("file.move", {"path": "a", "to": "b"}, attempt=2)).value == {"path": "b"}


async def test_an_empty_folder_can_be_deleted(do, root):
    await do("file.write", "a/b", text="1")
    await do("file.delete", "a/b")

    assert await do("file.delete", "a") == {"deleted": True}
    assert not (root / "a").exists()


@pytest.mark.parametrize(
    ("path", "pattern", "found"),
    [
        ("", "*", ["x.txt"]),
        ("", "**", ["a/1.csv", "a/b/2.csv", "a/b/c/3.txt", "x.txt"]),
        ("", "**/*.csv", ["a/1.csv", "a/b/2.csv"]),
        ("", "a/*.csv", ["a/1.csv"]),
        ("", "*/b/**", ["a/b/2.csv", "a/b/c/3.txt"]),
        ("a/b", "?.csv", ["a/b/2.csv"]),
        ("a/", "**/[0-2].*", ["a/1.csv", "a/b/2.csv"]),
        ("", "**/c/**/3.txt", ["a/b/c/3.txt"]),
        ("", "nothing", []),
    ],
)
async def test_a_pattern_names_paths(do, path, pattern, found):
    for each in ("a/1.csv", "a/b/2.csv", "a/b/c/3.txt", "x.txt"):
        await do("file.write", each, text=each)

    listed = await do("file.list", path, pattern=pattern)

    assert [each["path"] for each in listed["files"]] == found
    assert not listed["hasMore"]


async def test_a_listing_is_bounded_and_says_that_there_is_more(do, root):
    for number in range(5):
        (root / f"{number}").write_text("x")

    listed = await do("file.list", "", limit=3)

    assert ([each["name"] for each in listed["files"]], listed["hasMore"]) == (["0", "1", "2"], True)
    assert (await do("file.list", "", limit=5))["hasMore"] is False


@pytest.mark.parametrize("pattern", ["../*", "/x", "a**", "", "a//b"])
async def test_a_pattern_that_is_none_is_refused(failure, pattern):
    assert (await failure("file.list", "", pattern=pattern)).type is ErrorType.PERMANENT


async def test_a_text_that_is_too_large_or_none_is_a_failure(do, failure, root):
    (root / "large").write_bytes(b"x" * (4 * 2**20 + 1))
    (root / "binary").write_bytes(b"\xff\xfe\x00")

    assert "larger" in (await failure("file.read", "large", **{"as": "text"})).message
    assert "UTF-8" in (await failure("file.read", "binary", **{"as": "text"})).message


def test_a_path_that_leads_out_is_refused_when_a_workflow_is_saved(registry):
    problems = registry.infos()["file.read"].problems_with({"path": "../x"})

    assert [problem.path for problem in problems] == [("path",)]
