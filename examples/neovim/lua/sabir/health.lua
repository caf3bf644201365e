--- `:checkhealth sabir`
local M = {}

-- Neovim 0.10 has shorter names.
local health = vim.health or require("health")
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local fail = health.error or health.report_error

local function check_program()
  local command = require("sabir").options.command
  local program = type(command) == "table" and command[1] or command
  if vim.fn.executable(program) == 0 then
    fail("no program `" .. program .. "`", { "install sabir, or set `command` in setup()" })
    return
  end
  local said = vim.fn.system({ program, "--version" })
  local help = vim.fn.system({ program, "serve", "--help" })
  if not help:find("--host", 1, true) then
    fail(vim.trim(said) .. " has no `serve --host`", { "install a newer sabir" })
    return
  end
  ok(vim.trim(said) .. " (" .. vim.fn.exepath(program) .. ")")
end

local function check_server()
  local status = require("sabir").status()
  if status.state == "stopped" then
    warn("the server is not running" .. (status.last_error and ": " .. status.last_error or ""), {
      "call require('sabir').setup(), or run :SabirStart",
    })
    return
  end
  if not status.listening then
    warn("the server is starting")
    return
  end
  ok("listening on " .. status.listening.url)
  local lock = status.listening.lockFile
  if lock and vim.fn.getfperm(lock) == "rw-------" then
    ok("lock file " .. lock)
  else
    fail("the lock file is missing or others can read it: " .. tostring(lock))
  end
  local count = vim.tbl_count(status.clients)
  if count == 0 then
    ok("no client is connected: run `claude --ide`, or `/ide` in Claude Code")
  end
  for _, client in pairs(status.clients) do
    local name = (client.client or {}).name or "a client"
    ok(name .. " is connected (" .. client.state .. ")")
  end
end

function M.check()
  start("sabir")
  if vim.fn.has("nvim-0.7") == 1 then
    ok("Neovim 0.7 or later")
  else
    fail("Neovim 0.7 or later is needed")
  end
  check_program()
  check_server()
  if vim.fn.executable("claude") == 1 then
    ok("Claude Code: " .. vim.fn.exepath("claude"))
  else
    warn("no program `claude`", { "npm install -g @anthropic-ai/claude-code" })
  end
end

return M
