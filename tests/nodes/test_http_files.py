"""`http.request` with files: sent as a body or a part, kept as an answer, and never in memory whole."""

import gzip
import hashlib

import pytest
from aiohttp import web

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.files import File, as_value

PDF = b"%PDF " + bytes(range(256)) * 20


class KeptFiles:
    """Files in memory, as the protocol of files says; the real ones are behind the engine's tests."""

    def __init__(self):
        self.content = {}
        self.largest = 0
        self.limit = 2**30

    def put(self, content, name="invoice.pdf", kind="application/pdf"):
        file = File(hashlib.sha256(content).hexdigest(), len(content), name, kind)
        self.content[file.hash] = content
        return as_value(file)

    async def read(self, file):
        if file.hash not in self.content:
            raise NodeFailure.permanent(f"there is no content of the file {file.name!r}")
        for at in range(0, file.size, 1000):
            yield self.content[file.hash][at : at + 1000]

    async def write(self, chunks, name, kind):
        content = bytearray()
        async for chunk in chunks:
            self.largest = max(self.largest, len(chunk))
            content += chunk
            if len(content) > self.limit:
                raise NodeFailure.permanent("the file is larger than it may be")
        file = File(hashlib.sha256(content).hexdigest(), len(content), name, kind)
        self.content[file.hash] = bytes(content)
        return file


@pytest.fixture
def files(facilities):
    facilities.files = KeptFiles()
    return facilities.files


@pytest.fixture
def received(site):
    """Keeps the body of requests as bytes, and the parts of forms as aiohttp reads them."""
    got = {}

    async def keep(request):
        got["type"], got["length"] = request.headers["Content-Type"], request.headers.get("Content-Length")
        if request.content_type == "multipart/form-data":
            got["parts"] = [
                (part.name, part.filename, part.headers.get("Content-Type"), bytes(await part.read()))
                async for part in await request.multipart()
            ]
        else:
            got["body"] = await request.read()
        return web.json_response({"ok": True})

    site.handle = keep
    return got


@pytest.fixture
async def raw_site(received, site):
    """A server whose handler reads the body itself."""
    runner = web.ServerRunner(web.Server(site.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


async def test_a_file_is_streamed_as_the_body_with_its_type_and_length(run, raw_site, received, files):
    await run("http.request", {"url": raw_site, "method": "PUT", "file": files.put(PDF)})

    assert received == {"type": "application/pdf", "length": str(len(PDF)), "body": PDF}


async def test_files_are_parts_of_a_form_and_no_name_or_type_begins_another(run, raw_site, received, files):
    odd = files.put(b"a", 'b"\r\n.txt', "text/a\r\nX: y")
    fields = {"title": "grüß", "scan": files.put(PDF), "more": [odd, 7, None]}

    await run("http.request", {"url": raw_site, "method": "POST", "multipart": fields})

    assert received["parts"] == [
        ("title", None, None, "grüß".encode()),
        ("scan", "invoice.pdf", "application/pdf", PDF),
        ("more", "b%22%0D%0A.txt", "application/octet-stream", b"a"),
        ("more", None, None, b"7"),
    ]


async def test_a_file_goes_along_with_a_redirect_that_keeps_the_method(run, site, raw_site, received, files):
    async def away(request):
        await request.read()
        return web.Response(status=307, headers={"Location": raw_site})

    site.answers["/"] = away
    runner = web.ServerRunner(web.Server(away))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    await run(
        "http.request",
        {"url": f"http://127.0.0.1:{runner.addresses[0][1]}/", "method": "POST", "file": files.put(PDF)},
    )

    assert received["body"] == PDF
    await runner.cleanup()


@pytest.mark.parametrize(
    ("headers", "path", "name"),
    [
        ({"Content-Disposition": 'attachment; filename="r 1.pdf"'}, "/x", "r 1.pdf"),
        ({}, "/reports/r.pdf", "r.pdf"),
        ({}, "/", "file"),
    ],
)
async def test_an_answer_is_kept_as_a_file(site, request_, files, headers, path, name):
    site.answer(path, body=PDF, headers={"Content-Type": "application/pdf", **headers})

    output = await request_(path, responseType="file")

    assert output["body"] == as_value(File(hashlib.sha256(PDF).hexdigest(), len(PDF), name, "application/pdf"))
    assert files.content[hashlib.sha256(PDF).hexdigest()] == PDF


async def test_a_file_is_unfolded_in_small_pieces(site, request_, files):
    content = b"".join(bytes([number % 251]) * 150 for number in range(60_000))
    site.answer("/", body=gzip.compress(content), headers={"Content-Encoding": "gzip"})

    output = await request_(responseType="file")

    assert output["body"]["$file"]["size"] == len(content)
    assert files.content[output["body"]["$file"]["hash"]] == content
    assert files.largest <= 256 * 1024


async def test_an_answer_without_a_body_is_no_file(site, request_, files):
    site.answer("/", status=204)

    assert (await request_(method="DELETE", responseType="file"))["body"] is None


@pytest.mark.parametrize(
    ("body", "headers", "kind"),
    [
        (gzip.compress(bytes(2**22)), {"Content-Encoding": "gzip"}, ErrorType.PERMANENT),
        (gzip.compress(PDF)[:-20], {"Content-Encoding": "gzip"}, ErrorType.TRANSIENT),
        (bytes(2000), {}, ErrorType.PERMANENT),
    ],
    ids=["bomb", "cut", "too large"],
)
async def test_a_file_that_cannot_be_kept_is_a_failure(site, failure, files, body, headers, kind):
    files.limit = 1000 if not headers else files.limit
    site.answer("/", body=body, headers=headers)

    assert (await failure(responseType="file")).type is kind


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"file": {"a": 1}}, "with.file: is no file"),
        ({"multipart": {"a": {"b": 1}}}, "with.multipart.a: is no file"),
        ({"multipart": {"a": [{"$file": 1}]}}, "$file: is no file"),
        ({"file": as_value(File("0" * 64, 3, "gone.txt", "text/plain"))}, "there is no content of the file 'gone.txt'"),
        ({"file": {"$file": {}}, "text": "a"}, "with: give at most one of body,"),
    ],
)
async def test_what_is_no_file_is_a_permanent_failure(site, failure, files, inputs, said):
    site.answer("/")

    error = await failure(method="POST", **inputs)

    assert error.type is ErrorType.PERMANENT
    assert error.message.startswith(said)


async def test_files_without_a_store_are_a_permanent_failure(site, failure):
    site.answer("/")

    assert "files are not kept" in (await failure(responseType="file")).message
