"""Takes the command line and the variables of NexAU, and works as little as can be.

    nexau chat AGENT.yaml --query TASK

Asks the model for a command until it asks for none, over OpenAI's Chat Completions.
"""

import argparse
import json
import os
import subprocess
import sys
import urllib.request


def main():
    parser = argparse.ArgumentParser(prog="nexau")
    chat = parser.add_subparsers(dest="command", required=True).add_parser("chat")
    chat.add_argument("agent")
    chat.add_argument("--query", required=True)
    given = parser.parse_args()
    # Its own file names these, and it stops where one is not set.
    for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_HOST"):
        os.environ[name]
    if os.environ["LLM_API_TYPE"] != "openai_chat_completion":
        return 2
    messages = [{"role": "user", "content": given.query}]
    while True:
        said = ask(messages)
        messages.append(said)
        if not said.get("tool_calls"):
            return 0
        for call in said["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            done = subprocess.run(
                ["sh", "-c", command], capture_output=True, text=True, check=False
            )
            print(done.stdout, flush=True)
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": done.stdout or "-"}
            )


def ask(messages):
    tool = {"type": "function", "function": {"name": "run_shell_command", "parameters": {}}}
    body = {"model": os.environ["LLM_MODEL"], "messages": messages, "tools": [tool]}
    request = urllib.request.Request(
        os.environ["LLM_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "authorization": f"Bearer {os.environ['LLM_API_KEY']}",
        },
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return json.loads(answer.read())["choices"][0]["message"]


if __name__ == "__main__":
    sys.exit(main())
