"""An external runner: takes runs of one pool over HTTP, does them, and reports. ROPEWALK_TOKEN=… runner.py URL POOL"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request

URL, POOL = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {os.environ['ROPEWALK_TOKEN']}", "Content-Type": "application/json"}


def post(path, **body):
    request = urllib.request.Request(f"{URL}/api/v1/workflow/runs/{path}", json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def lease():
    try:
        return post("lease", pool=POOL, runnerId="example", waitSeconds=30)["runs"]
    except urllib.error.HTTPError as refusal:
        if refusal.code not in (401, 403):
            raise
        remedy = f"set ROPEWALK_TOKEN to the token of a key with the role runner and the pool {POOL}"
        sys.exit(f"{URL} gives no runs of pool {POOL}: {json.load(refusal)['detail']}; {remedy}")


def stay_alive(run, done):
    while not done.wait(30) and not post(f"{run['runId']}/heartbeat", leaseToken=run["leaseToken"])["stop"]:
        print("still at it:", run["runId"])


while True:
    for run in lease():
        threading.Thread(target=stay_alive, args=(run, done := threading.Event())).start()
        output = {"length": len(json.dumps(run["inputs"]))}  # the work goes here
        done.set()
        post(f"{run['runId']}/complete", leaseToken=run["leaseToken"], output=output)
