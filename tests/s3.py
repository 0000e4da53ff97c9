"""A server that speaks S3 for the tests, in this process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
from moto.server import ThreadedMotoServer

KEY = {"accessKeyId": "AKIAEXAMPLE", "secretAccessKey": "s3cret-key-of-the-bucket"}


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server without a bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


async def make_bucket(url: str, name: str = "reports") -> None:
    """Everything there was is gone, and there is an empty bucket."""
    scope = f"{KEY['accessKeyId']}/20260101/us-east-1/s3/aws4_request"
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/moto-api/reset"):
            pass
        headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}"}
        async with session.put(f"{url}/{name}", headers=headers) as made:
            assert made.status == 200
