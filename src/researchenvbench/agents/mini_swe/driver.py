"""Runs mini-swe-agent's own loop, with commands carried out by whoever started this.

Stands alone: it is run by the Python of an environment that has mini-swe-agent and nothing of
ours. It is given an order as a line of JSON on standard input, and writes lines of JSON to
standard output: what to execute, each answered by a line, and at the end how the loop ended.
What libraries print goes to standard error. When its input ends, so does it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

#: As mini-swe-agent's own environments have it: printed alone, it ends the work.
_END = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_SYSTEM = "You are a helpful assistant that can interact with a computer."
_NO_COMMAND = """{% if finish_reason is defined and finish_reason == "length" -%}
Your answer reached the limit of its length before it held a whole command. Be brief, and call \
`bash` with one command.
{%- else -%}
{{error}} Call the tool `bash` with a command; to end the work, with \
`echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` and nothing else.
{%- endif %}"""


class Harness:
    """Whoever started this: answers what it is asked."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what libraries print is no answer of ours
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        os._exit(3)  # nobody is there any more

    def read(self) -> dict[str, Any]:
        """The next line."""
        found: dict[str, Any] = json.loads(self._lines.get())
        return found

    def tell(self, line: dict[str, Any]) -> None:
        """Write a line."""
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()

    def ask(self, line: dict[str, Any]) -> dict[str, Any]:
        """Write a line and wait for the answer."""
        self.tell(line)
        return self.read()


class BoxEnvironment:
    """What mini-swe-agent calls an environment: here, a box of the harness."""

    def __init__(self, harness: Harness, order: dict[str, Any]) -> None:
        self.config = None
        self._harness, self._order = harness, order
        self.message: dict[str, Any] = {}  #: the model's, that asks for what is executed

    def execute(self, action: dict[str, Any], cwd: str = "") -> dict[str, Any]:  # noqa: ARG002
        """Have a command run; ends the loop where it is the one that says so."""
        from minisweagent.exceptions import Submitted, TimeExceeded

        told = {"ask": "execute", "command": str(action.get("command", "")), **_of(self.message)}
        self.message = {}
        answer = self._harness.ask(told)
        if answer.get("over"):
            raise TimeExceeded(_exit("TimeExceeded", str(answer["over"])))
        lines = answer["output"].lstrip().splitlines(keepends=True)
        if lines and lines[0].strip() == _END and answer["exit_status"] == 0:
            raise Submitted(_exit("Submitted", "".join(lines[1:])))
        ended = "the command was ended at its time limit" if answer["timed_out"] else ""
        status = -1 if answer["exit_status"] is None else answer["exit_status"]
        return {"output": answer["output"], "returncode": status, "exception_info": ended}

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """For the text of the task."""
        return {"command_minutes": self._order["command_minutes"], **kwargs}

    def serialize(self) -> dict[str, Any]:
        """For the trajectory."""
        return {"info": {"config": {"environment_type": "researchenvbench"}}}


def _exit(status: str, submission: str) -> dict[str, Any]:
    extra = {"exit_status": status, "submission": submission}
    return {"role": "exit", "content": submission or status, "extra": extra}


def _of(message: dict[str, Any]) -> dict[str, Any]:
    """What the model said with a command, its id and what it used; once for a message."""
    extra = message.get("extra") or {}
    response = message if message.get("object") == "response" else extra.get("response") or {}
    said = message.get("content")
    if not isinstance(said, str):
        said = "\n".join(
            part["text"]
            for item in message.get("output") or ()
            for part in item.get("content") or ()
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return {"said": said, "turn": str(response.get("id") or ""), "usage": response.get("usage")}


def _model(order: dict[str, Any]) -> Any:
    """mini-swe-agent's model for a protocol, with address and token kept out of its trajectory."""
    import litellm

    litellm.telemetry = False
    litellm.drop_params = True
    wire, address = order["wire"], order["address"]
    if wire == "openai-responses":
        from minisweagent.models.litellm_response_model import LitellmResponseModel as Model
    else:
        from minisweagent.models.litellm_model import LitellmModel as Model

    class RelayedModel(Model):  # type: ignore[misc]
        def _query(self, messages: list[dict[str, Any]], **kwargs: Any) -> Any:
            base = address if wire == "anthropic-messages" else f"{address}/v1"
            return super()._query(messages, api_base=base, api_key=order["token"], **kwargs)

    provider = "anthropic" if wire == "anthropic-messages" else "openai"
    return RelayedModel(
        model_name=f"{provider}/{order['model']}",
        # Whoever is asked waits the provider's faults out, and knows no end to a long answer.
        model_kwargs={"max_retries": 0, "timeout": 3600.0},
        cost_tracking="ignore_errors",
        set_cache_control="default_end" if provider == "anthropic" else None,
        format_error_template=_NO_COMMAND,
    )


def run(harness: Harness, order: dict[str, Any]) -> dict[str, Any]:
    """Work at the task; how it ended."""
    from minisweagent.agents.default import DefaultAgent

    class Loop(DefaultAgent):  # type: ignore[misc]
        def execute_actions(self, message: dict[str, Any]) -> list[dict[str, Any]]:
            self.env.message = message
            done: list[dict[str, Any]] = super().execute_actions(message)
            return done

    trajectory: Path = _path(order["trajectory"])
    loop = Loop(
        _model(order),
        BoxEnvironment(harness, order),
        system_template=_SYSTEM,
        instance_template=order["template"],
        step_limit=order["steps"],
        cost_limit=0.0,
        output_path=trajectory,
    )
    try:
        ended = loop.run(order["task"])
    except Exception as error:  # noqa: BLE001 - whatever a provider's library raises is told
        traceback.print_exc()
        return {"status": type(error).__name__, "why": str(error)[:2000]}
    return {"status": str(ended.get("exit_status", "")), "why": ""}


def _path(name: str) -> Path:
    from pathlib import Path

    return Path(name)


def main() -> None:
    """Serve one order."""
    harness = Harness()
    order = harness.read()
    harness.tell({"ask": "ended", **run(harness, order)})


if __name__ == "__main__":
    main()
