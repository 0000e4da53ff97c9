"""An external runner: takes runs of one pool over HTTP, does them, and reports. ROPEWALK_TOKEN=… runner.py URL POOL"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

if len(sys.argv) != 3 or "ROPEWALK_TOKEN" not in os.environ:
    sys.exit("usage: ROPEWALK_TOKEN=… runner.py URL POOL")
URL, POOL = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {os.environ['ROPEWALK_TOKEN']}", "Content-Type": "application/json"}
TRY_AGAIN = (429, 502, 503, 504)
REMEDY = f"; set ROPEWALK_TOKEN to the token of a key with the role runner and the pool {POOL}"


def post(path, **body):
    """What the server answers; one that is away or busy is asked again, for as long as it takes."""
    request = urllib.request.Request(f"{URL}/api/v1/workflow/runs/{path}", json.dumps(body).encode(), HEADERS)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if refusal.code not in TRY_AGAIN:
                raise
            trouble, pause = refusal, int(refusal.headers.get("Retry-After", 5))
        except OSError as absence:
            trouble, pause = absence, 5
        print(f"{trouble}; asking again in {pause} s")
        time.sleep(pause)


def why(refusal):
    try:
        return json.load(refusal)["detail"]
    except (ValueError, KeyError):
        return str(refusal)  # something in between has answered


def lease():
    try:
        return post("lease", pool=POOL, runnerId="example", waitSeconds=30)["runs"]
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{URL} gives no runs of pool {POOL}: {why(refusal)}{REMEDY if refusal.code in (401, 403) else ''}")


def report(run, word, **more):
    """None if the run is another's by now: its lease has ended, or it was called off."""
    try:
        return post(f"{run['runId']}/{word}", leaseToken=run["leaseToken"], **more)
    except urllib.error.HTTPError as refusal:
        print(f"{run['runId']}: {word} was refused: {why(refusal)}")
        return None


def stay_alive(run, done):
    while not done.wait(30) and (answer := report(run, "heartbeat")) and not answer["stop"]:
        print("still at it:", run["runId"])


while True:
    for run in lease():
        threading.Thread(target=stay_alive, args=(run, done := threading.Event())).start()
        output = {"length": len(json.dumps(run["inputs"]))}  # the work goes here
        done.set()
        report(run, "complete", output=output)
