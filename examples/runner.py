"""An external runner: takes runs of one pool over HTTP, does them, and reports. ROPEWALK_TOKEN=… runner.py URL POOL"""

import json
import os
import sys
import threading
import urllib.request

URL, POOL = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {os.environ['ROPEWALK_TOKEN']}", "Content-Type": "application/json"}


def post(path, **body):
    request = urllib.request.Request(f"{URL}/api/v1/workflow/runs/{path}", json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def stay_alive(run, done):
    while not done.wait(30) and not post(f"{run['runId']}/heartbeat", leaseToken=run["leaseToken"])["stop"]:
        print("still at it:", run["runId"])


while True:
    for run in post("lease", pool=POOL, runnerId="example", waitSeconds=30)["runs"]:
        threading.Thread(target=stay_alive, args=(run, done := threading.Event())).start()
        output = {"length": len(json.dumps(run["inputs"]))}  # the work goes here
        done.set()
        post(f"{run['runId']}/complete", leaseToken=run["leaseToken"], output=output)
