#!/usr/bin/env node
// Starts the binary of this platform. Signals, the end of input and the exit code pass through.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`@OWNER/sabir-${platform}/bin/sabir`);
} catch {
  console.error(
    `sabir: there is no binary for ${platform}. ` +
      "If the platform is supported, optional dependencies were left out " +
      "(npm install --include=optional); else build it: cargo install sabir-cli",
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`sabir: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
