--- An editor for Claude Code: Neovim's tools, offered through `sabir serve --host`.
local pipe = require("sabir.pipe")

local M = {}

--- The options of `setup()`, with their defaults.
M.options = {
  command = "sabir", -- the program, or a list of the program and its first arguments
  config = nil, -- a sabir.toml; default: that of the plug-in
  auto_start = true, -- start with `setup()`
  tools = true, -- register the tools that editors offer
  track_selection = true, -- tell clients what is selected
  debounce = 100, -- milliseconds of silence before a selection is told
  keymaps = nil, -- for example { accept = "<leader>ca", reject = "<leader>cr", mention = "<leader>cm" }
}

--- Registers a tool. Clients see it at once.
---
---@param name string
---@param schema table `{ description = …, inputSchema = … }`, or a JSON Schema
---@param handler function called with the arguments and a call; returns the result, or nothing if
---  it answers later with `call.respond(result)` or `call.fail(message)`. A string becomes a text, a
---  table with `content` is the result itself, any other table becomes JSON in a text. An error
---  becomes a result with `isError`.
function M.register_tool(name, schema, handler)
  vim.validate({
    name = { name, "string" },
    schema = { schema, "table" },
    handler = { handler, "function" },
  })
  pipe.register(name, schema, handler)
end

--- Removes a tool.
function M.unregister_tool(name)
  pipe.unregister(name)
end

--- Whether a client is connected that has completed its handshake.
function M.is_connected()
  return pipe.state() == "ready"
end

--- `stopped`, `waiting` for a client, `initializing`, or `ready`.
function M.state()
  return pipe.state()
end

--- What `:SabirStatus` and `:checkhealth sabir` show.
function M.status()
  return pipe.status()
end

--- Sends a notification to every client that is ready.
function M.notify(method, params)
  pipe.notify(method, params)
end

--- Mentions lines of a file in the client's prompt. Lines count from 1; without a file, the current
--- one; without lines, the whole file.
function M.mention(file, first, last)
  file = vim.fn.fnamemodify(file or vim.api.nvim_buf_get_name(0), ":p")
  local params = { filePath = file }
  if first then
    params.lineStart = first - 1
    params.lineEnd = (last or first) - 1
  end
  pipe.notify("at_mentioned", params)
end

--- Starts the server.
function M.start()
  local command = M.options.command
  command = type(command) == "table" and vim.deepcopy(command) or { command }
  local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h")
  vim.list_extend(command, {
    "serve",
    M.options.config or (here .. "/sabir.toml"),
    "--host",
    "--ide=Neovim",
    "--workspace",
    vim.fn.getcwd(),
  })
  return pipe.start(command)
end

--- Stops the server. Diffs that are open are rejected.
function M.stop()
  require("sabir.diff").reject_all()
  pipe.stop()
end

--- Configures the plug-in, and starts the server unless `auto_start` is false.
function M.setup(options)
  M.options = vim.tbl_extend("force", M.options, options or {})
  if M.options.tools then
    require("sabir.tools").register(M.register_tool)
  end
  local group = vim.api.nvim_create_augroup("sabir", { clear = true })
  vim.api.nvim_create_autocmd("VimLeavePre", { group = group, callback = M.stop })
  vim.api.nvim_create_autocmd("DirChanged", {
    group = group,
    callback = function()
      pipe.notify("notifications/host/workspace", { folders = { vim.fn.getcwd() } })
    end,
  })
  if M.options.track_selection then
    require("sabir.selection").track(group, M.options.debounce)
  end
  local keymaps = M.options.keymaps or {}
  local function map(key, command, modes)
    if key then
      vim.keymap.set(modes or "n", key, command, { desc = "Sabir" })
    end
  end
  map(keymaps.accept, "<cmd>SabirAccept<cr>")
  map(keymaps.reject, "<cmd>SabirReject<cr>")
  map(keymaps.mention, ":SabirMention<cr>", { "n", "x" })
  if M.options.auto_start then
    M.start()
  end
end

return M
