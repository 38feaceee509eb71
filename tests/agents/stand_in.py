"""A little agent of a command line: asks the model, runs the commands that it answers with.

    python3 stand_in.py ADDRESS MODEL TASKFILE      its token is in STAND_IN_TOKEN

Standard library only, since it runs in boxes. Each step is a line of JSON on its output.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request


def main():
    address, model, task = sys.argv[1:4]
    with open(task, encoding="utf-8") as stream:
        messages = [{"role": "user", "content": stream.read()}]
    while True:
        answer = ask(address, model, messages)
        results = []
        for part in answer["content"]:
            if part["type"] == "text":
                print(json.dumps({"said": part["text"]}), flush=True)
            elif part["type"] == "tool_use":
                results.append(use(part))
        if not results:
            return 0
        messages += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": results},
        ]


def ask(address, model, messages):
    body = {"model": model, "max_tokens": 1000, "messages": messages, "stream": False}
    request = urllib.request.Request(
        f"{address}/v1/messages",
        json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "x-api-key": os.environ["STAND_IN_TOKEN"],
            "anthropic-version": "2023-06-01",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=600) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        print(json.dumps({"error": error.code, "body": error.read().decode()}), flush=True)
        sys.exit(1)
    except (OSError, ValueError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        sys.exit(1)


def use(part):
    given = part["input"]
    if part["name"] == "crash":
        os.kill(os.getpid(), 11)
    if part["name"] == "sleep":
        time.sleep(given["seconds"])
    done = subprocess.run(
        ["sh", "-c", given.get("command", "true")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    print(json.dumps({"ran": given, "status": done.returncode, "printed": text}), flush=True)
    return {"type": "tool_result", "tool_use_id": part["id"], "content": text}


if __name__ == "__main__":
    sys.exit(main())
