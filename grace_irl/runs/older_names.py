"""Names that programs of an older run go by."""

from __future__ import annotations

from collections.abc import Mapping

from grace_irl.programs.identity import RULE
from grace_irl.runs.store import Record, Store
from grace_irl.sandbox.protocol import Sandbox

META = "identity"
"""Where a run notes the rule that its ids follow."""


def older_names(store: Store, records: Mapping[str, Record], sandbox: Sandbox) -> dict[str, str]:
    """The names in a run of programs that today's rule calls something else, by today's id.

    Without them a resumed run would not know its own programs when they are proposed again.

    Args:
        store: of the run.
        records: its programs, by their names.
        sandbox: reads their sources.
    """
    if store.meta(META) == RULE:
        return {}
    names: dict[str, str] = {}
    for name, record in records.items():
        names.setdefault(sandbox.inspect(record.program.source).id, name)
    return {today: name for today, name in names.items() if today and today != name}
