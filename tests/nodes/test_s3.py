"""`s3.*` against a server that speaks S3, and against ones that do not."""

import hashlib

import aiohttp
import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes.base import Facilities, NodeFailure, Registry
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import failure_of
from ropewalk.nodes.files import File, as_value
from tests.s3 import KEY, make_bucket

from .conftest import context_of

SECRET = KEY["secretAccessKey"]


class Kept:
    """The one credential of these tests."""

    def __init__(self):
        self.values = {}
        self.hosts = ()

    async def get(self, workspace, name):
        return Credential(name, "aws", {**KEY, "region": "us-east-1", **self.values}, self.hosts, secrets=(SECRET,))


class Blobs:
    """Files as a store would keep them, in parts."""

    def __init__(self):
        self.content = {}

    async def read(self, file):
        content = self.content[file.hash]
        for at in range(0, len(content), 100_000):
            yield content[at : at + 100_000]

    async def write(self, chunks, name, type):  # noqa: A002 -- what a file calls it
        content = b"".join([chunk async for chunk in chunks])
        file = File(hashlib.sha256(content).hexdigest(), len(content), name, type)
        self.content[file.hash] = content
        return file


@pytest.fixture
def kept(facilities, s3):
    facilities.credentials = Kept()
    facilities.credentials.values["endpoint"] = s3
    facilities.files = Blobs()
    return facilities.credentials


@pytest.fixture
def store(run, kept):
    """Runs a node on the bucket."""

    async def run_node(name, **inputs):
        return (await run(f"s3.{name}", {"bucket": "reports", **inputs}, get_credentials=lambda: "store")).value

    return run_node


@pytest.fixture
async def bucket(s3):
    """An empty bucket."""
    await make_bucket(s3)


@pytest.fixture
def failure(store):
    async def fail(name, **inputs):
        with pytest.raises((NodeFailure, BaseExceptionGroup)) as caught:
            await store(name, **inputs)
        return failure_of(caught.value)

    return fail


async def test_what_is_written_is_read_as_text_and_as_json(store, bucket):
    put = await store("put", key="a/ü b+c.txt", text="hello 🙂")
    await store("put", key="v.json", value={"total": 12.5})

    read = await store("get", key="a/ü b+c.txt", readAs="text")

    assert put["size"] == len("hello 🙂".encode())
    assert (read["content"], read["type"], read["etag"]) == ("hello 🙂", "text/plain; charset=utf-8", put["etag"])
    assert (await store("get", key="v.json", readAs="json"))["content"] == {"total": 12.5}


async def test_a_file_goes_to_the_bucket_and_comes_back_as_a_stream(store, bucket, facilities):
    content = bytes(range(256)) * 10_000

    async def chunks():
        yield content

    file = await facilities.files.write(chunks(), "may.bin", "application/octet-stream")
    await store("put", key="may.bin", file=as_value(file))

    read = await store("get", key="may.bin")

    assert read["content"]["$file"]["hash"] == file.hash
    assert read["content"]["$file"]["name"] == "may.bin"
    assert read["size"] == len(content)


async def test_keys_are_listed_by_prefix_and_page_after_page(store, bucket):
    for at in range(7):
        await store("put", key=f"in/{at} +.csv", text=str(at))
    await store("put", key="in/old/1.csv", text="")
    await store("put", key="out/x", text="")

    all_ = await store("list", prefix="in/")
    first = await store("list", prefix="in/", limit=3)
    rest = await store("list", prefix="in/", continuation=first["continuation"])
    folder = await store("list", prefix="in/", delimiter="/")

    assert [each["key"] for each in all_["objects"]] == [*(f"in/{at} +.csv" for at in range(7)), "in/old/1.csv"]
    assert (all_["isTruncated"], all_["continuation"], all_["objects"][0]["size"]) == (False, None, 1)
    assert (len(first["objects"]), first["isTruncated"], len(rest["objects"])) == (3, True, 5)
    assert (len(folder["objects"]), folder["prefixes"]) == (7, ["in/old/"])


async def test_objects_are_removed_also_those_that_are_not_there(store, bucket):
    await store("put", key="a", text="")
    await store("put", key="b", text="")

    assert await store("delete", keys=["a", "b", "c"]) == {"deleted": ["a", "b", "c"]}
    assert await store("delete", key="a") == {"deleted": ["a"]}
    assert (await store("list"))["objects"] == []


async def test_a_link_reads_and_another_writes_without_a_login(store, bucket, s3):
    await store("put", key="a b.txt", text="hello")
    read = await store("presign", key="a b.txt", expires="15m")
    write = await store("presign", key="new.txt", method="PUT")

    async with aiohttp.ClientSession() as session:
        async with session.get(read["url"]) as answer:
            assert await answer.text() == "hello"
        async with session.put(write["url"], data=b"from outside") as answer:
            assert answer.status == 200

    assert read["expiresAt"] == "2027-01-15T08:15:00Z"
    assert "X-Amz-Expires=900" in read["url"]
    assert SECRET not in read["url"]
    assert (await store("get", key="new.txt", readAs="text"))["content"] == "from outside"


async def test_a_link_is_signed_as_amazon_says(kept, registry, facilities):
    kept.values = {
        "accessKeyId": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "endpoint": "https://s3.amazonaws.com", "pathStyle": False,
    }  # fmt: skip
    node_type = registry.get("s3.presign")
    given = node_type.accept({"bucket": "examplebucket", "key": "test.txt", "expires": "24h"})
    context = context_of(facilities, get_credentials=lambda: "store", now=1_369_353_600_000_000)

    url = (await node_type.run(given, context)).value["url"]

    # The example of "Authenticating Requests: Using Query Parameters" in the reference of S3.
    assert url.startswith("https://examplebucket.s3.amazonaws.com/test.txt?")
    assert url.endswith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


@pytest.mark.parametrize(
    ("name", "inputs", "word"),
    [
        ("get", {"key": "nowhere"}, "NoSuchKey"),
        ("get", {"bucket": "no-such-bucket", "key": "x"}, "NoSuchBucket"),
        ("put", {"bucket": "no-such-bucket", "key": "x", "text": ""}, "NoSuchBucket"),
        ("list", {"bucket": "no-such-bucket"}, "NoSuchBucket"),
    ],
)
async def test_what_is_not_there_is_a_permanent_failure_in_the_stores_word(failure, bucket, name, inputs, word):
    error = await failure(name, **inputs)

    assert (error.type, error.status) == (ErrorType.PERMANENT, 404)
    assert word in error.message


@pytest.mark.parametrize(("status", "kind"), [(403, ErrorType.PERMANENT), (503, ErrorType.TRANSIENT)])
async def test_a_refusal_is_classified_and_tells_no_secret(failure, kept, site, status, kind):
    kept.values["endpoint"] = site.url
    said = f"<Error><Code>SlowDown</Code><Message>{SECRET}</Message></Error>"
    site.answer("/reports/x", status=status, text=said, content_type="application/xml")

    error = await failure("get", key="x", timeout=5)

    assert (error.type, error.status) == (kind, status)
    assert "SlowDown" in error.message
    assert SECRET not in error.message


async def test_a_store_that_leads_elsewhere_is_not_followed(failure, kept, site, other_site):
    kept.values["endpoint"] = site.url
    other_site.answer("/reports/x", text="INTERNAL")
    site.redirect("/reports/x", f"{other_site.url}/reports/x", 307)

    error = await failure("get", key="x", readAs="text")

    assert (error.type, error.status) == (ErrorType.PERMANENT, 307)
    assert other_site.requests == []


@pytest.mark.parametrize("said", ["", "no xml", "<ListBucketResult><Contents/></ListBucketResult>", "<html/>",
                                  "<!DOCTYPE x [<!ENTITY a 'b'>]><ListBucketResult/>"])  # fmt: skip
async def test_a_list_that_is_none_is_a_permanent_failure(failure, kept, site, said):
    kept.values["endpoint"] = site.url
    site.answer("/reports/", text=said, content_type="application/xml")

    error = await failure("list")

    assert error.type is ErrorType.PERMANENT
    assert "no list of objects" in error.message


async def test_a_list_that_never_ends_is_given_up(failure, kept, site):
    page = "<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>"
    kept.values["endpoint"] = site.url
    site.answer("/reports/", text=f"<ListBucketResult>{page}</ListBucketResult>", content_type="application/xml")

    error = await failure("list")

    assert error.type is ErrorType.PERMANENT
    assert "again and again" in error.message


async def test_a_store_that_says_nothing_is_given_up_in_time(failure, kept, peer):
    silent = await peer(None)
    kept.values["endpoint"] = f"http://127.0.0.1:{silent.port}"

    error = await failure("get", key="x", timeout=0.2)

    assert error.type is ErrorType.TIMEOUT


async def test_an_answer_that_is_cut_short_is_no_object(failure, kept, peer):
    short = await peer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
    kept.values["endpoint"] = f"http://127.0.0.1:{short.port}"

    error = await failure("get", key="x")

    assert error.type is ErrorType.TRANSIENT


async def test_an_object_that_is_larger_than_a_value_is_refused(failure, kept, peer):
    huge = await peer(b"HTTP/1.1 200 OK\r\nContent-Length: 70000000\r\n\r\n" + b"x" * 70_000_000)
    kept.values["endpoint"] = f"http://127.0.0.1:{huge.port}"

    error = await failure("get", key="x", readAs="text")

    assert error.type is ErrorType.PERMANENT


async def test_a_private_address_is_refused_where_it_is_not_allowed(registry, kept, site):
    guarded = Facilities()
    guarded.credentials = kept
    kept.values["endpoint"] = site.url
    node_type = registry.get("s3.get")
    context = context_of(guarded, get_credentials=lambda: "store")

    with pytest.raises(NodeFailure, match="is not on the public internet"):
        await node_type.run(node_type.accept({"bucket": "reports", "key": "x"}), context)

    assert site.requests == []
    await guarded.close()


async def test_a_credential_is_for_its_hosts_alone(failure, kept):
    kept.hosts = ("s3.example.org",)

    error = await failure("get", key="x")

    assert error.type is ErrorType.PERMANENT
    assert "s3.example.org" in error.message


async def test_a_temporary_key_makes_no_links(failure, kept):
    kept.values["sessionToken"] = "a-session-token"

    error = await failure("presign", key="x")

    assert "a temporary key makes no links" in error.message


@pytest.mark.parametrize(
    ("type_", "with_", "said"),
    [
        ("s3.get", {"bucket": "evil.example.org/x?", "key": "x"}, "bucket"),
        ("s3.get", {"bucket": "reports", "key": "../other/x"}, "no part that is"),
        ("s3.get", {"bucket": "reports", "key": "a\nb"}, "no control characters"),
        ("s3.put", {"bucket": "reports", "key": "x"}, "give one of file, text and value"),
        ("s3.put", {"bucket": "reports", "key": "x", "text": "", "value": 1}, "give one of file, text and value"),
        ("s3.delete", {"bucket": "reports"}, "give key or keys"),
        ("s3.presign", {"bucket": "reports", "key": "x", "expires": "8d"}, "1w|7d"),
        ("s3.list", {"bucket": "reports", "limit": 0}, "limit"),
    ],
)
def test_what_no_store_could_do_is_refused_when_the_workflow_is_saved(type_, with_, said):
    document = {"ropewalk": 1, "name": "x", "nodes": [{"id": "q", "type": type_, "with": with_}]}

    with pytest.raises(InvalidDefinition, match=said):
        parse_definition(document, Registry.builtin().infos())
