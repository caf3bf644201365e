#!/usr/bin/env python3
"""Calls operations of real descriptions through Sabir, and Prism checks every request.

usage: prism.py SABIR PRISM FILE… [--operations N]

Prism mocks each description and refuses a request that breaks it. The arguments are generated from
the schemas that Sabir gives. Fails if Prism calls a request wrong, in its answer or in its log.
"""

import argparse
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import exrex
import jsonschema
import yaml

# What Prism writes to its log, or answers, when a request breaks the description.
WRONG = re.compile(r"did not pass the validation rules|errors#(UNPROCESSABLE_ENTITY|NO_PATH_MATCHED|NO_METHOD_MATCHED|NO_SERVER|UNAUTHORIZED|INVALID_CONTENT_TYPE)")
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

    def call(self, name, arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        texts = [block.get("text", "") for block in result.get("content", [])]
        return "\n".join(texts) or json.dumps(result)

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
        for name, property in schema.get("properties", {}).items():
            chosen = hashlib.md5(f"{path}/{name}".encode()).digest()[0] < 128 and depth < 4
            if name in schema.get("required", []) or chosen:
                result[name] = value(property, root, f"{path}/{name}", depth + 1)
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
            if fits and re.search(schema["pattern"], text) and text.strip() and text.isprintable() and text.isascii():
                return text
        raise ValueError(f"no text for {schema['pattern']!r}")
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    text = str(schema.get("default") or "text")
    text += "x" * (schema.get("minLength", 0) - len(text))
    return text[: schema.get("maxLength", len(text))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def schemes(document):
    """`auth` entries for every scheme that the description declares."""
    declared = document.get("securityDefinitions") or document.get("components", {}).get("securitySchemes") or {}
    entries = []
    for name, scheme in declared.items():
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


def start_prism(prism, path, port, log):
    """Prism and its log, or why it does not start."""
    with open(log, "ab") as out:
        process = subprocess.Popen([prism, "mock", path, "-p", str(port), "-h", "127.0.0.1", "--errors"], stdout=out, stderr=out)
    for _ in range(600):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.1)
    process.kill()
    return log.read_text()[-300:]


def pick(keys, count):
    return sorted(keys, key=lambda key: hashlib.md5(key.encode()).hexdigest())[:count]


def check(sabir, prism, path, count):
    """The calls of one description: how many, and those that Prism called wrong."""
    document = yaml.safe_load(path.read_text()) if path.suffix == ".yaml" else json.loads(path.read_text())
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = start_prism(prism, path, port, Path(folder, "log"))
        if isinstance(server, str):
            return 0, 0, [], f"Prism cannot mock it: {server.strip().splitlines()[-1] if server.strip() else 'no reason'}"
        log = open(Path(folder, "log"))
        auth = ",\n".join(schemes(document))
        Path(folder, "sabir.toml").write_text(
            f'[[openapi]]\nname = "a"\nprefix = ""\npath = {json.dumps(str(path))}\nbase_url = "http://127.0.0.1:{port}"\n'
            f'methods = ["*"]\nmax_tools = 30\nhosts = ["127.0.0.1"]\nauth = [\n{auth}\n]\n'
        )
        client = Sabir(sabir, folder)
        tools = {tool["name"]: tool["inputSchema"] for tool in client.tools()}
        calls = skipped = 0
        wrong = []
        if "call_operation" in tools:
            methods = {"get", "put", "post", "delete", "patch", "head", "options"}
            keys = [f"{m.upper()} {p}" for p, item in document["paths"].items() for m in item if m in methods]
            chosen = []
            for key in pick(keys, count):
                text = client.call("describe_operation", {"operation": key})
                chosen.append((key, json.loads(text.split("Arguments, as a JSON Schema:\n", 1)[1])))
        else:
            chosen = [(name, tools[name]) for name in pick(tools, count)]
        for name, schema in chosen:
            try:
                arguments = value(schema, schema, name)
                jsonschema.Draft202012Validator(schema).validate(arguments)
            except (ValueError, re.error, RecursionError, jsonschema.ValidationError):
                skipped += 1
                continue
            if "call_operation" in tools:
                answer = client.call("call_operation", {"operation": name, "arguments": arguments})
            else:
                answer = client.call(name, arguments)
            calls += 1
            if WRONG.search(answer + log.read()) or "Invalid arguments" in answer:
                wrong.append(f"{path.name}: {name} {json.dumps(arguments)[:300]}\n    {answer[:700]}")
        client.close()
        server.terminate()
        server.wait(20)
    return calls, skipped, wrong, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sabir")
    parser.add_argument("prism")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--operations", type=int, default=10)
    args = parser.parse_args()
    calls = skipped = mocked = 0
    wrong = []
    for path in args.files:
        called, left, found, reason = check(args.sabir, args.prism, path, args.operations)
        if reason:
            print(f"{path.name}: {reason}")
        mocked += reason is None
        calls, skipped, wrong = calls + called, skipped + left, wrong + found
    print(f"{mocked} descriptions, {calls} requests, {len(wrong)} invalid, {skipped} operations without a generated argument")
    for one in wrong:
        print(one, file=sys.stderr)
    if wrong or calls == 0:
        sys.exit("error: Prism refused requests" if wrong else "error: nothing was called")


main()
