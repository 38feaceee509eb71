"""Assembles the record of a verification, whether of an attempt or of a user's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import __version__
from ..attempt import Record, now
from ..building import host_facts
from ..sandbox.host_environment import redacted_variables
from ..verify.pyramid import status_of

if TYPE_CHECKING:
    from ..attempt import Sizes
    from ..sandbox import HostEnvironment
    from ..task import Task
    from ..verify.pyramid import Judgement

_UNTRACKED_KEPT = 200


def new_record(of: Task | str, host: HostEnvironment, **identity: Any) -> Record:
    """A record of what was judged: a task, or what has only a name; `identity` are fields."""
    of_task = (
        {"task": of, "task_digest": ""}
        if isinstance(of, str)
        else {"task": of.name, "domain": of.domain, "task_digest": of.digest}
    )
    fields = {"finished": now(), **of_task, **identity}
    return Record(
        reb_version=__version__,
        host=host_facts(host),
        stage_variables=redacted_variables(host.variables),
        **fields,
    )


def judged(record: Record, judgement: Judgement, sizes: Sizes) -> Record:
    """The record with what verification says."""
    interpreter = judgement.subject.interpreter
    return record.model_copy(
        update={
            "status": status_of(judgement),
            "source_digest": judgement.subject.snapshot.digest,
            "python": interpreter.executable if interpreter else record.python,
            "python_version": interpreter.version if interpreter else None,
            "results": judgement.results,
            "audit": judgement.audit,
            "findings": judgement.findings,
            "untracked": judgement.untracked[:_UNTRACKED_KEPT],
            "sizes": sizes,
        }
    )
