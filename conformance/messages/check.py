"""Checks recorded messages against the official schemas, each in its own revision.

    python check.py [--schema FOLDER] RECORDS…

A record is one line of JSON: `revision`, `direction` (who sent it: `client` or
`server`), `kind` (the method that it belongs to, also for an answer), `message`.

With a folder of the specification's schemas (REVISION.json) every revision is
checked against its own. Without `--schema`, the models of PyPI's `mcp-types` stand in;
they know two revisions, and it is said how many messages were left to the
tables of our own tests. Needs `jsonschema` or `mcp-types`: both are in
clients/python/requirements.txt. Exit code 1: a message is wrong.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MODELLED = ("2025-11-25", "2026-07-28")  # what `mcp-types` has models of its own for


class Wrong(Exception):
    """A message breaks the schema of its revision; the text says where and why."""


class Unchecked(Exception):
    """There is nothing here to check the message against."""


@dataclass(frozen=True)
class Record:
    place: str
    revision: str
    direction: str
    kind: str
    message: dict

    @property
    def shape(self) -> str:
        """The message itself says which of the four it is."""
        if "method" in self.message:
            return "request" if "id" in self.message else "notification"
        return "result" if "result" in self.message else "error"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schema", type=Path, metavar="FOLDER")
    parser.add_argument("records", type=Path, nargs="+")
    options = parser.parse_args()
    by_schema = options.schema is not None
    if by_schema and not options.schema.is_dir():
        parser.error(f"no such folder: {options.schema} (expected the specification's schemas)")
    check = against_schemas(options.schema) if by_schema else against_models

    checked, unchecked, wrong = Counter(), Counter(), 0
    for record in (record for path in options.records for record in read(path)):
        try:
            check(record)
            checked[record.revision] += 1
        except Unchecked:
            unchecked[record.revision] += 1
        except Wrong as failure:
            wrong += 1
            print(f"WRONG {record.place}: {record.revision} {record.direction} {record.kind}")
            print(f"    {failure}\n    {shorten(json.dumps(record.message))}")
    source = "the specification's schemas" if by_schema else "the models of mcp-types"
    for revision in sorted(checked | unchecked):
        print(f"{revision}: {checked[revision]} messages agree with {source}", end="")
        print(f", {unchecked[revision]} left to our own tables" if unchecked[revision] else "")
    print(f"messages: {sum(checked.values())} right, {wrong} wrong, {sum(unchecked.values())} unchecked")
    return 1 if wrong or not checked else 0


def read(path: Path) -> Iterator[Record]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fields = json.loads(line)
        record = Record(f"{path.name}:{number}", **fields)
        if record.direction not in ("client", "server"):
            raise SystemExit(f"{record.place}: direction is `client` or `server`")
        yield record


def against_schemas(folder: Path) -> Callable[[Record], None]:
    """Checks with the definition that the schema itself has for method and direction."""
    from jsonschema import validators

    @cache
    def schema(revision: str) -> dict:
        path = folder / f"{revision}.json"
        if not path.exists():
            raise Wrong(f"there is no revision {revision}")
        return json.loads(path.read_text())

    @cache
    def validator(revision: str, name: str):
        whole = schema(revision)
        key = definitions_key(whole)
        picked = {**whole, "$ref": f"#/{key}/{name}"}
        return validators.validator_for(whole)(picked)

    def fits(record: Record, name: str, value: object) -> None:
        errors = sorted(validator(record.revision, name).iter_errors(value), key=lambda e: e.path)
        if errors:
            worst = max(errors, key=lambda error: len(error.path))
            where = "/".join(map(str, worst.absolute_path)) or "the whole"
            raise Wrong(f"not a {name}: {where}: {shorten(worst.message)}")

    def check(record: Record) -> None:
        whole = schema(record.revision)
        names = whole[definitions_key(whole)]
        for name, value in definitions_for(record, names):
            fits(record, name, value)

    return check


def definitions_key(schema: dict) -> str:
    return "$defs" if "$defs" in schema else "definitions"


def definitions_for(record: Record, names: dict) -> list[tuple[str, object]]:
    """Which definitions a message must fit, with the part of it that must fit each."""
    message = record.message
    if record.shape == "error":
        # JSON-RPC wants a null id where none could be read; the schemas do not say so.
        shown = {**message, "id": 0} if message.get("id", 0) is None else message
        return [("JSONRPCErrorResponse" if "JSONRPCErrorResponse" in names else "JSONRPCError", shown)]
    if record.shape in ("request", "notification"):
        if message["method"] != record.kind:
            raise Wrong(f"recorded as {record.kind}, but it is {message['method']}")
        name = request_name(record.direction, record.kind, names)
        return [(f"JSONRPC{record.shape.capitalize()}", message), (name, message)]
    asker = "client" if record.direction == "server" else "server"
    base = request_name(asker, record.kind, names).removesuffix("Request")
    if f"{base}ResultResponse" in names:
        return [(f"{base}ResultResponse", message)]
    envelope = "JSONRPCResultResponse" if "JSONRPCResultResponse" in names else "JSONRPCResponse"
    result = f"{base}Result" if f"{base}Result" in names else "EmptyResult"
    if result == "EmptyResult" and set(message["result"]) - {"_meta"}:
        raise Wrong(f"an empty result is wanted for {record.kind}")
    if base == "CallTool" and "task" in message["result"] and "CreateTaskResult" in names:
        result = "CreateTaskResult"
    return [(envelope, message), (result, message["result"])]


def request_name(sender: str, method: str, names: dict) -> str:
    """The definition of a request or notification, by its method, among what `sender` may send."""
    for union in (f"{sender.capitalize()}Request", f"{sender.capitalize()}Notification"):
        definition = names.get(union, {})
        for option in definition.get("anyOf", [definition]):
            # A union of one is written out instead of referred to.
            name = option["$ref"].rpartition("/")[2] if "$ref" in option else union
            if names.get(name, {}).get("properties", {}).get("method", {}).get("const") == method:
                return name
    raise Wrong(f"this revision has no {method} from the {sender}")


def against_models(record: Record) -> None:
    """Checks with `mcp-types`, for the two revisions that it has models for."""
    if record.revision not in MODELLED or record.shape == "error":
        raise Unchecked
    from mcp_types import methods
    from pydantic import ValidationError

    asker = record.direction
    if record.shape == "result":
        asker = "client" if record.direction == "server" else "server"
    check = getattr(methods, f"parse_{record.direction}_{record.shape}")
    value = record.message.get("result") if record.shape == "result" else record.message.get("params")
    try:
        check(record.kind, record.revision, value)
    except KeyError:
        raise Wrong(f"this revision has no {record.kind} from the {asker}") from None
    except ValidationError as failure:
        first = failure.errors()[0]
        where = "/".join(map(str, first["loc"])) or "the whole"
        raise Wrong(f"{where}: {first['msg']}") from None


def shorten(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"


if __name__ == "__main__":
    sys.exit(main())
